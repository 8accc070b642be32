"""Models that keep tensors from call to call which are no buffers."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import weft
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch


class Written(nn.Module):
    """A tensor in an attribute, which is written to."""

    def __init__(self):
        super().__init__()
        self.cache = torch.zeros(4, 3)

    def forward(self, x, place):
        self.cache.index_copy_(0, place, x)
        return self.cache.sum(0) * 2


class Store:
    """An object of the user's."""

    def __init__(self):
        self.rows = [torch.zeros(4, 3)]


class InAnObject(nn.Module):
    """A tensor in a list in an object; a view of it is written to."""

    def __init__(self):
        super().__init__()
        self.store = Store()

    def forward(self, x, place):
        self.store.rows[0][1:].t().add_(x.T)
        return self.store.rows[0] + place


class Assigned(nn.Module):
    """An attribute that gets another tensor in each call."""

    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(1, 3)

    def forward(self, x, place):
        self.mean = self.mean * 0.5 + x
        return self.mean + place


class Inner(nn.Module):
    """An assigned attribute of a module within."""

    def __init__(self):
        super().__init__()
        self.inner = Assigned()

    def forward(self, x, place):
        return self.inner(x, place) * 3


class InnerBuffer(nn.Module):
    """A buffer of a module within that gets another tensor in each call, twice."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.inner.register_buffer("mean", torch.zeros(3))
        self.count = nn.Module()
        self.count.register_buffer("calls", torch.tensor(0))

    def forward(self, x, place):
        self.inner.mean = self.inner.mean * 0.5
        self.inner.mean = self.inner.mean + x[0]
        self.count.calls = self.count.calls + 1
        return self.inner(x) + self.inner.mean + place + self.count.calls


class BothWays(nn.Module):
    """A buffer's own tensor in an object, as transformers' static caches are exported."""

    def __init__(self):
        super().__init__()
        self.store = Store()
        self.register_buffer("rows", self.store.rows[0], persistent=False)

    def forward(self, x, place):
        self.store.rows[0].index_copy_(0, place, x)
        return self.store.rows[0] * 2


@pytest.mark.parametrize("kind", [Written, InAnObject, Assigned, Inner, InnerBuffer, BothWays])
@pytest.mark.parametrize("cache", [True, False])
def test_what_a_model_keeps_is_kept(kind, cache):
    torch.manual_seed(0)
    model = kind()
    twin = copy.deepcopy(model)
    inputs = [(torch.randn(1, 3), torch.tensor([i])) for i in range(3)]
    for _ in range(2):  # the second time the first model may come from the cache
        compiled = weft.compile(model, inputs[0], cache=cache)
        for given in inputs:
            torch.testing.assert_close(compiled(*given), twin(*given))
        torch.manual_seed(0)
        model = kind()
        twin = copy.deepcopy(model)


def test_the_attributes_are_as_before():
    model = Assigned()
    before = model.mean
    weft.compile(model, (torch.randn(1, 3), torch.tensor([0])), cache=False)
    assert model.mean is before
    assert torch.equal(before, torch.zeros(1, 3))
    assert not dict(model.named_buffers())


class Seen(nn.Module):
    """What only others read may have any shape."""

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(1)

    def forward(self, x):
        self.last = x * 2
        return x + 1


def test_an_attribute_that_the_model_never_reads_is_no_state():
    x = torch.randn(5)
    torch.testing.assert_close(weft.compile(Seen(), (x,), cache=False)(x), x + 1)


class Growing(nn.Module):
    """A cache that gets longer."""

    def __init__(self):
        super().__init__()
        self.rows = torch.zeros(1, 3)

    def forward(self, x):
        self.rows = torch.cat([self.rows, x])
        return self.rows.sum(0)


def test_a_kept_tensor_that_grows_is_refused():
    told = r"keeps rows .* its shape from \[1, 3\] to \[2, 3\]; make it an input and a result"
    with pytest.raises(UnsupportedError, match=told):
        weft.compile(Growing(), (torch.randn(1, 3),), cache=False)


class Cast(nn.Module):
    """A table that is cast to the type of the data."""

    def __init__(self):
        super().__init__()
        self.table = torch.arange(3.0, dtype=torch.float64)

    def forward(self, x):
        self.table = self.table.to(x.dtype)
        return x + self.table


def test_a_cast_of_what_a_model_keeps_is_no_state():
    x = torch.randn(3)
    torch.testing.assert_close(weft.compile(Cast(), (x,), cache=False)(x), x + torch.arange(3.0))
