"""Numbers of data that a model makes an ``int`` of: ``int(lengths.max())``."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import weft
from weft.relax.frontend.torch.capture import CaptureError
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch
ROWS, STEPS = torch.export.Dim("rows", max=9), torch.export.Dim("steps", max=40)


class Sums(nn.Module):
    """Rows added by group, as layers of graphs do."""

    def forward(self, x, groups):
        count = int(groups.max()) + 1
        return x.new_zeros(count, x.shape[1]).index_add(0, groups, x)


class Masked(nn.Module):
    """A mask of as many steps as the longest sequence has, which are all of the data's."""

    def forward(self, x, lengths):
        mask = torch.arange(int(lengths.max().item())) < lengths[:, None]
        return torch.where(mask, x, 0) / lengths[:, None]


class Cut(nn.Module):
    """The steps of the longest sequence."""

    def forward(self, x, lengths):
        longest = int(torch.max(lengths))
        return x[:, :longest] * (torch.arange(longest) < lengths[:, None])


class Hot(nn.Module):
    """As many classes as there are, and a float of the data."""

    def forward(self, x, groups):
        hot = nn.functional.one_hot(groups, int(groups.max()) + 1)
        return float(x.mean()) * hot, nn.functional.one_hot(groups)


@pytest.mark.parametrize(
    ("model", "numbers"),
    [
        (Sums(), [[0, 2, 1], [4, 0]]),
        (Masked(), [[6, 3, 1], [8, 5]]),
        (Cut(), [[4, 3, 1], [8, 5]]),
        (Hot(), [[4, 0, 1], [1, 0]]),
    ],
)
def test_an_int_of_data_is_an_extent(model, numbers, capsys):
    shapes = ({0: ROWS, 1: STEPS}, {0: ROWS})
    examples = [
        (torch.randn(len(row), 6 + 2 * at), torch.tensor(row)) for at, row in enumerate(numbers)
    ]
    compiled = weft.compile(model, examples[0], dynamic_shapes=shapes, cache=False)
    for example in examples:
        torch.testing.assert_close(compiled(*example), model(*example))
    assert capsys.readouterr().err == ""


def test_a_loop_of_as_many_steps_is_refused_where_it_stands():
    class Doubled(nn.Module):
        def forward(self, x, times):
            for _ in range(int(times)):
                x = x * 2
            return x

    with pytest.raises(CaptureError, match=r"range\(int\(times\)\)"):
        weft.compile(Doubled(), (torch.ones(3), torch.tensor(2)), cache=False)


class Buffered(nn.Module):
    """Counts in a buffer, in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.tensor(0))

    def forward(self, x, lengths):
        count = int(lengths.max())
        self.rows += count
        return x[:, :count] * self.rows


def test_buffers_keep_what_is_added():
    model, inputs = Buffered(), (torch.randn(2, 5), torch.tensor([2, 4]))
    compiled = weft.compile(Buffered(), inputs, cache=False)
    for _ in range(3):
        torch.testing.assert_close(compiled(*inputs), model(*inputs))


def test_what_a_model_assigns_is_not_forgotten():
    """torch's reader of bytecode does not record it."""

    class Assigned(Buffered):
        def forward(self, x, lengths):
            self.last = getattr(self, "last", 0) + x
            return x[:, : int(lengths.max())] * self.last.sum()

    model = Assigned()
    with pytest.raises(CaptureError, match="specialized integer"):
        weft.compile(model, (torch.randn(2, 5), torch.tensor([2, 4])), cache=False)
    assert not hasattr(model, "last")


def test_torch_cannot_compare_sizes_that_only_the_data_tell():
    class Padded(nn.Module):
        def forward(self, x, lengths):
            parts = [x[0, : lengths[0]], x[1, : lengths[1]]]
            return nn.utils.rnn.pad_sequence(parts)

    with pytest.raises(UnsupportedError, match=r"(?s)only the data tell.*torch\.compile"):
        weft.compile(Padded(), (torch.ones(2, 5), torch.tensor([2, 4])), cache=False)


@pytest.mark.filterwarnings("ignore:where received a uint8 condition")
def test_a_mask_of_bytes_chooses():
    """PyTorch's shapes refuse it, its kernels do not."""

    class Chosen(nn.Module):
        def forward(self, mask, x):
            return torch.where(mask, x, -x)

    inputs = torch.tensor([1, 0, 255, 0], dtype=torch.uint8), torch.randn(4)
    torch.testing.assert_close(
        weft.compile(Chosen(), inputs, cache=False)(*inputs), Chosen()(*inputs)
    )
