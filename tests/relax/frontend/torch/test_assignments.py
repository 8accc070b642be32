"""Models that put other tensors in the place of those which they keep from call to call."""

from __future__ import annotations

import collections
import copy
import dataclasses

import pytest
import torch
from torch import nn

import weft
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch


def zeros_and_ones():
    return [torch.zeros(3), torch.ones(3)]


@dataclasses.dataclass
class Memory:
    """An object of the user's."""

    rows: torch.Tensor
    calls: int = 0


class Slotted:
    """An object without a dict."""

    __slots__ = ("rows",)

    def __init__(self):
        self.rows = torch.zeros(3)


class Keeps(nn.Module):
    """What the tests below assign to."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 3)
        self.register_buffer("first", torch.zeros(3))
        self.register_buffer("second", torch.ones(3))
        self.older, self.newer = zeros_and_ones()
        self.items = zeros_and_ones()
        self.named = {"h": torch.zeros(3), "deep": zeros_and_ones()}
        self.state = (torch.zeros(1, 3), torch.zeros(1, 3))
        self.window = collections.deque(zeros_and_ones(), maxlen=2)
        self.memory = Memory(torch.zeros(3))
        self.slotted = Slotted()


class Buffers(Keeps):
    """An input and a buffer become buffers."""

    def forward(self, x):
        before = self.first * 3 + self.second
        self.first = self.second
        self.second = x
        return before


class SwappedBuffers(Keeps):
    """Two buffers change their places."""

    def forward(self, x):
        self.first, self.second = self.second, self.first
        return self.first + x * self.second


class SwappedAttributes(Keeps):
    """Two attributes change their places."""

    def forward(self, x):
        self.older, self.newer = self.newer, self.older + x
        return self.older + x * self.newer


class Items(Keeps):
    """Items of a list, which read one another."""

    def forward(self, x):
        self.items[0], self.items[1] = self.items[1], self.items[0] + x
        self.items[1] = self.items[1] * 0.5
        return self.items[1] * 2 + self.items[0]


class NewList(Keeps):
    """A window of the last inputs, as a new list."""

    def forward(self, x):
        self.items = [*self.items[1:], x]
        return torch.stack(self.items).sum(0)


class Named(Keeps):
    """Items of a dict and of a list within."""

    def forward(self, x):
        self.named["h"] = self.named["h"] * 0.5 + x
        self.named["deep"][1] = self.named["deep"][1] + self.named["h"]
        return self.named["deep"][1] * 2


class State(Keeps):
    """The two states of a cell, in a tuple."""

    def forward(self, x):
        self.state = self.cell(x[None], self.state)
        return self.state[0]


class Window(Keeps):
    """A queue of bounded length."""

    def forward(self, x):
        self.window.append(x)
        return self.window[0] * 2 + self.window[1]


class Attributes(Keeps):
    """Attributes of objects, one of which is replaced itself."""

    def forward(self, x):
        self.slotted.rows = self.slotted.rows + x
        self.memory = Memory(self.memory.rows - x)
        return self.memory.rows * self.slotted.rows


class Within(nn.Module):
    """A module that keeps something, within another."""

    def __init__(self):
        super().__init__()
        self.inner = Items()

    def forward(self, x):
        return self.inner(x) + 1


@pytest.mark.parametrize(
    "kind",
    [
        Buffers, SwappedBuffers, SwappedAttributes, Items, NewList, Named, State, Window,
        Attributes, Within,
    ],
)  # fmt: skip
def test_what_takes_the_place_of_a_tensor_is_kept(kind):
    torch.manual_seed(0)
    model = kind()
    twin = copy.deepcopy(model)
    inputs = list(torch.randn(4, 3))
    compiled = weft.compile(model, (inputs[0],), cache=False)
    for x in inputs:
        torch.testing.assert_close(compiled(x), twin(x))


def test_the_model_holds_what_it_held_with_the_values_of_the_calls():
    model = Items()
    held = [*model.items]
    compiled = weft.compile(model, (torch.ones(3),), cache=False)
    assert [item.tolist() for item in held] == [[0.0] * 3, [1.0] * 3]
    compiled(torch.ones(3))
    assert all(item is other for item, other in zip(model.items, held, strict=True))
    assert [item.tolist() for item in held] == [[1.0] * 3, [0.5] * 3]


class Shared(nn.Module):
    """One tensor twice in a list."""

    def __init__(self):
        super().__init__()
        self.items = [torch.zeros(3)] * 2

    def forward(self, x):
        self.items[0] = self.items[0] + x
        return self.items[0] * self.items[1]


def test_a_tensor_that_stands_at_two_places_is_refused():
    told = r"place of items\[0\], which is items\[1\], too; give each a tensor of its own"
    with pytest.raises(UnsupportedError, match=told):
        weft.compile(Shared(), (torch.randn(3),), cache=False)


class Growing(Keeps):
    """An item that gets longer."""

    def forward(self, x):
        self.items[0] = torch.cat([self.items[0], x])
        return self.items[0].sum()


def test_an_item_that_grows_is_refused():
    told = r"keeps items\[0\] .* its shape from \[3\] to \[6\]; make it an input and a result"
    with pytest.raises(UnsupportedError, match=told):
        weft.compile(Growing(), (torch.randn(3),), cache=False)


class Records(Keeps):
    """What only others read, which may have any shape."""

    def forward(self, x):
        self.items[0] = x[:2]
        self.named["last"] = x * 2
        self.window.clear()
        return x + 1


def test_what_the_model_never_reads_is_no_state():
    x, model = torch.randn(3), Records()
    torch.testing.assert_close(weft.compile(model, (x,), cache=False)(x), x + 1)
    assert model.items[0].tolist() == [0.0] * 3
