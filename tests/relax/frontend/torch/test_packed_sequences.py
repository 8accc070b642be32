"""Recurrent layers over packed sequences beside torch's."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import rnn
from torch.nn.utils.rnn import pack_padded_sequence as packed  # under a name of its own

import weft
from weft.relax.frontend.torch import packed_sequences
from weft.relax.frontend.torch.capture import CaptureError
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch
ROWS, STEPS = torch.export.Dim("rows", max=9), torch.export.Dim("steps", max=40)


class Tagger(nn.Module):
    """Layers over sequences of the lengths that it is given."""

    def __init__(self, layer, **padding):
        super().__init__()
        self.layer, self.padding = layer, padding

    def forward(self, x, lengths):
        first = self.layer.batch_first
        sequence = packed(x, lengths.cpu(), batch_first=first, enforce_sorted=False)
        outputs, states = self.layer(sequence)
        return *rnn.pad_packed_sequence(outputs, first, **self.padding), states


def assert_same(results, wanted):
    flat, expected = (torch.utils._pytree.tree_leaves(item) for item in (results, wanted))
    for result, value in zip(flat, expected, strict=True):
        torch.testing.assert_close(result, value)


@pytest.mark.parametrize(
    "layer",
    [
        nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True),
        nn.GRU(4, 3, batch_first=True, bidirectional=True),
        nn.RNN(4, 3, batch_first=True, bias=False),
        nn.RNN(4, 3, batch_first=True, nonlinearity="relu"),
    ],
    ids=["lstm", "gru", "rnn", "rnn relu"],
)
def test_layers_end_with_their_sequences(layer):
    model = Tagger(layer).eval()
    example = torch.randn(3, 7, 4), torch.tensor([4, 6, 2])
    shapes = ({0: ROWS, 1: STEPS}, {0: ROWS})
    compiled = weft.compile(model, example, dynamic_shapes=shapes, cache=False)
    for inputs in (example, (torch.randn(2, 9, 4), torch.tensor([1, 9]))):
        assert_same(compiled(*inputs), model(*inputs))


@pytest.mark.parametrize("total", [7, 12])
def test_padding_has_a_value_and_a_length(total):
    model = Tagger(nn.LSTM(4, 5), padding_value=-1.0, total_length=total).eval()
    inputs = torch.randn(7, 2, 4), torch.tensor([4, 6])
    assert_same(weft.compile(model, inputs, cache=False)(*inputs), model(*inputs))


def test_lengths_may_be_numbers_and_states_may_be_given():
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.GRU(4, 5)

        def forward(self, x, state):
            outputs, last = self.layer(packed(x, [6, 3]), state)
            return rnn.pad_packed_sequence(outputs)[0], last

    model, inputs = Listed(), (torch.randn(7, 2, 4), torch.randn(1, 2, 5))
    assert_same(weft.compile(model, inputs, cache=False)(*inputs), model(*inputs))


def test_a_length_beyond_the_data_is_an_error():
    inputs = torch.randn(7, 2, 4), torch.tensor([4, 6])
    compiled = weft.compile(Tagger(nn.LSTM(4, 5)).eval(), inputs, cache=False)
    with pytest.raises(weft.TVMError):
        compiled(torch.randn(7, 2, 4), torch.tensor([4, 8]))


def test_the_rows_of_a_packed_sequence_are_refused():
    class Rows(nn.Module):
        def forward(self, x, lengths):
            return packed(x, lengths).data * 2

    with pytest.raises((CaptureError, UnsupportedError), match="got a use of its data"):
        weft.compile(Rows(), (torch.randn(7, 2, 4), torch.tensor([6, 4])), cache=False)


def test_a_projection_is_refused():
    inputs = torch.randn(7, 2, 4), torch.tensor([6, 4])
    with pytest.raises((CaptureError, UnsupportedError), match="proj_size=3"):
        weft.compile(Tagger(nn.LSTM(4, 5, proj_size=3)).eval(), inputs, cache=False)


def test_the_operator_itself():
    layer = nn.LSTM(4, 5, bidirectional=True)
    data, lengths, zeros = torch.randn(7, 2, 4), torch.tensor([3, 6]), torch.zeros(2, 2, 5)
    weights = layer._flat_weights
    results = packed_sequences.recurrent(
        data, lengths, [zeros, zeros], weights, "LSTM", True, 1, True
    )
    outputs, states = layer(packed(data, lengths, enforce_sorted=False))
    assert_same(results, [rnn.pad_packed_sequence(outputs, total_length=7)[0], *states])
