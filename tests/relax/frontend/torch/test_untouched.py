"""What a forward pass does to the user's objects while it is traced is undone."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from weft.relax.frontend.torch.capture import capture  # noqa: E402
from weft.relax.frontend.torch.untouched import untouched  # noqa: E402


class State:
    """An object of the user's; ``limits`` and ``total`` belong to the class."""

    limits: list[object] = []
    total = 0

    def __init__(self):
        self.last, self.calls = None, 0


class Slotted:
    __slots__ = ("last", "unset")

    def __init__(self):
        self.last = None


class Guarded(list):
    """A list that refuses to be written to in the ways that its user should not take."""

    def clear(self):
        raise AssertionError("called")

    __setitem__ = __iter__ = clear


class Remembers(torch.nn.Module):
    known: dict[str, object] = {}

    def __init__(self):
        super().__init__()
        self.queue, self.guarded, self.counts = deque([1, 2], maxlen=2), Guarded(), Counter("a")
        self.groups, self.order = defaultdict(list), OrderedDict(a=1, b=2)
        self.states = [State(), (State(), Slotted()), SimpleNamespace(of=State())]
        self.nested = {"deep": ({"deeper": deque([{1}])},)}

    def forward(self, x):
        y = torch.relu(x)
        self.queue.append(y)
        self.guarded.append(y)
        self.counts["a"] += 1
        self.groups["new"].append(y)
        del self.order["a"]
        self.order["c"] = y
        self.nested["deep"][0]["deeper"][0].add(y)
        for state in (self.states[0], self.states[1][0], self.states[2].of):
            state.last, state.new = y, y
            state.calls += 1
        self.states[1][1].last = self.states[1][1].unset = y
        self.states[2].new = y
        self.known["y"] = y
        State.limits.append(y)
        State.total += 1
        State.extra = y
        return y


def description(model):
    """All that a model holds, as text; stand-ins would show in it."""
    first, (second, slotted), space = model.states
    states = [vars(item) for item in (first, second, space.of)]
    slots = [slotted.last, hasattr(slotted, "unset"), hasattr(space, "new")]
    return str([
        model.queue, list.__repr__(model.guarded), model.counts, model.groups, dict(model.order),
        states, slots, model.nested, Remembers.known, State.limits, State.total,
        hasattr(State, "extra"),
    ])  # fmt: skip


def test_containers_and_objects_of_every_kind_hold_what_they_held():
    model = Remembers()
    before, queue = description(model), model.queue
    for _ in range(2):
        capture(model, (torch.ones(3),))
        assert description(model) == before
    assert model.queue is queue
    assert model.queue.maxlen == 2


def test_what_fails_is_undone_too():
    model = Remembers()
    before = description(model)
    with pytest.raises(ZeroDivisionError), untouched(model):
        model(torch.ones(3))
        assert description(model) != before
        raise ZeroDivisionError
    assert description(model) == before


def test_objects_that_others_share_are_left_alone():
    """An object of another package may be used by other threads meanwhile."""
    event = torch.Generator()
    model = torch.nn.Identity()
    model.random, model.module = event, torch
    with untouched(model):
        torch.weft_of_a_test = 1
    assert vars(torch).pop("weft_of_a_test") == 1
