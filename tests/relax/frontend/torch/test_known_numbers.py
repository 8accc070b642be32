"""Models whose control flow and sizes depend on numbers in buffers."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import weft
from weft.relax.frontend.torch.capture import CaptureError

pytestmark = pytest.mark.torch


class Padded(nn.Module):
    """A convolution that pads to whole steps, as codecs of speech do."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 4, stride=3)
        self.register_buffer("size", torch.tensor(4))
        self.register_buffer("stride", torch.tensor(3), persistent=False)
        self.register_buffer("times", torch.tensor([0.0, 0.5, 1.0]))

    def forward(self, x):
        length = x.shape[-1]
        steps = torch.ceil((length - self.size) / self.stride + 1).to(torch.int64) - 1
        missing = steps * self.stride + self.size - length
        if missing > 0:
            x = functional.pad(x, (0, int(missing)))
        if (self.times.diff() > 0).all():
            x = x * self.times[1]
        for time in self.times.tolist():
            x = x + time
        return self.conv(x) * self.stride


def test_a_model_with_numbers_in_buffers():
    model, x = Padded().eval(), torch.randn(1, 2, 12)
    torch.testing.assert_close(weft.compile(model, (x,), cache=False)(x), model(x))
    assert [int(model.size), int(model.stride)] == [4, 3]


def test_the_length_may_be_symbolic():
    """Where the numbers alone decide."""

    class Halves(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("parts", torch.tensor([2]))

        def forward(self, x):
            if self.parts > 1:
                x = x.unflatten(1, (-1, int(self.parts))).sum(-1)
            return x * 2

    model = Halves()
    shapes = ({1: 2 * torch.export.Dim("half", min=2, max=9)},)
    compiled = weft.compile(model, (torch.randn(3, 8),), dynamic_shapes=shapes, cache=False)
    for length in (6, 14):
        x = torch.randn(3, length)
        torch.testing.assert_close(compiled(x), model(x))


class Levels(nn.Module):
    """A table of extents, as models of images make it."""

    def forward(self, x, y):
        shapes = torch.tensor([image.shape for image in (x, y)])
        height, width = shapes[1, 0], shapes[1, 1]
        rows = torch.arange(0, height)
        if rows.shape[0] * int(width) != y.numel():
            return x
        return x.sum() + y * rows[:, None]


def test_a_table_of_extents():
    x, y = torch.randn(4, 6), torch.randn(2, 3)
    torch.testing.assert_close(weft.compile(Levels(), (x, y), cache=False)(x, y), Levels()(x, y))


class Counts(nn.Module):
    """A buffer that decides and changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.calls += 1
        return x * 2 if self.calls > 1 else x


def test_a_number_that_the_model_changes_is_not_known():
    model = Counts()
    twin = copy.deepcopy(model)
    with pytest.raises(CaptureError, match="data-dependent"):
        weft.compile(model, (torch.ones(2),), cache=False)
    assert torch.equal(model.calls, twin.calls)
