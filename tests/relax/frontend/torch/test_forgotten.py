"""Numbers and tensors that a model keeps and a compiled model forgets: a warning names them."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from weft.relax.frontend.torch.capture import capture

pytestmark = pytest.mark.torch


class Counts(nn.Module):
    """A number that is counted up."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class Begins(nn.Module):
    """A state that is None before the first call."""

    def __init__(self):
        super().__init__()
        self.state = None

    def forward(self, x):
        self.state = x if self.state is None else self.state + x
        return self.state


class Grows(nn.Module):
    """A list of the inputs so far, in an object of its own, and a buffer that is followed."""

    def __init__(self):
        super().__init__()
        self.memory = {"rows": []}
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.memory["rows"].append(x)
        self.total += x
        return sum(self.memory["rows"]) + self.total


class Starts(nn.Module):
    """A flag, in an inner module."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()
        self.inner.began = False

    def forward(self, x):
        y = x + 1 if self.inner.began else x
        self.inner.began = True
        return y


FORGETFUL = [(Counts, "calls"), (Begins, "state"), (Grows, r"memory\['rows'\]\[0\]"),
             (Starts, "inner.began")]  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), FORGETFUL)
def test_a_value_that_the_next_call_needs_is_named(kind, name):
    model = kind().eval()
    with pytest.warns(RuntimeWarning, match=f"a call of {kind.__name__} changes {name}, and the"):
        capture(model, (torch.ones(3),))


@pytest.mark.parametrize("kind", [kind for kind, _ in FORGETFUL])
def test_looking_for_them_leaves_the_model_as_it_was(kind):
    model, x = kind().eval(), torch.ones(3)
    with pytest.warns(RuntimeWarning):
        capture(model, (x,))
    assert torch.equal(x, torch.ones(3))
    assert torch.equal(model(x), kind()(torch.ones(3)))


class Keeps(nn.Module):
    """What is kept for others to look at, computed once, or followed by the program."""

    def __init__(self):
        super().__init__()
        self.calls, self.shape, self.last, self.table = 0, None, None, None
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("mean", torch.zeros(3))
        self.older = torch.zeros(3)

    def forward(self, x):
        self.calls += 1
        self.shape, self.last = x.shape[0], x * 2
        self.table = torch.arange(3.0) if self.table is None else self.table
        self.older = self.older + x
        self.mean += self.older
        return self.dropout(self.last) + self.table + self.mean


class Fails(Counts):
    """A second call of it fails."""

    def forward(self, x):
        if self.calls > 0:
            raise ValueError("once only")
        return super().forward(x)


@pytest.mark.parametrize("model", [Keeps(), Fails()])
def test_nothing_is_said_where_nothing_can_be_told(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        capture(model, (torch.ones(3),))
    assert model.calls == 0
