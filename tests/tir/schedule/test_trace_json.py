"""Traces of JSON that says something else than ``as_json``: refused with the instruction."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest

from weft import tir
from weft.script import tir as T
from weft.support.errors import IRValueError, TVMError
from weft.tir.schedule.trace import Trace


@T.prim_func
def doubled(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")) -> None:
    for i in range(16):
        with T.block("b"):
            vi = T.axis.spatial(16, i)
            b[vi] = a[vi] * T.float32(2)


def trace() -> list[Any]:
    """``get_block``, ``get_loops``, ``split`` as JSON."""
    schedule = tir.Schedule(doubled)
    (loop,) = schedule.get_loops(schedule.get_block("b"))
    schedule.split(loop, [4, None])
    return copy.deepcopy(schedule.trace.as_json())


def apply(given: Any) -> tir.Schedule:
    """The schedule that a trace makes."""
    schedule = tir.Schedule(doubled)
    Trace.apply_json_to_schedule(given, schedule)
    return schedule


def test_what_as_json_writes_is_taken() -> None:
    assert "range(4)" in str(apply(trace()).mod) or "T.grid(4, 4)" in str(apply(trace()).mod)


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        ((0,), 5, "expected a list of instructions, got int"),
        ((1,), 7, "expected decisions as a list of"),
        ((1,), [[0]], "expected decisions as a list of"),
        ((1,), [["x", 1]], "expected decisions as a list of"),
        ((0, 1), None, "instruction 1: expected .name, inputs, attributes, outputs., a text and"),
        ((0, 1, 0), ["GetLoops"], "instruction 1: expected .name"),
        ((0, 1, 0), "GetNothing", "there is no instruction 'GetNothing'"),
        ((0, 1, 1), {"b0": 1}, "instruction 1: expected .name"),
        ((0, 1, 3), [["l1"]], "instruction 1: expected .name"),
        ((0, 1, 1), ["b9"], "b9 is used before a call returned it"),
        ((0, 1, 3), [], "get_loops returned 1 values, 0 were recorded"),
        ((0, 2, 1), [], "Split: the input .* is missing"),
        ((0, 2, 2), [], "Split: expected 2 attributes, got 0|Split: expected . attributes, got 0"),
    ],
)  # fmt: skip
def test_another_form_is_refused(place: tuple[int, ...], value: Any, told: str) -> None:
    given = trace()
    owner = given
    for step in place[:-1]:
        owner = owner[step]
    owner[place[-1]] = value
    with pytest.raises(TVMError, match=told):
        apply(given)


@pytest.mark.parametrize("value", [{"x": 1}, 1.5, [[1]], 2**80, True, "None"])
@pytest.mark.parametrize("part", [1, 2])
@pytest.mark.parametrize("index", range(3))
def test_arguments_of_another_type_are_refused_or_mean_something(
    index: int, part: int, value: Any
) -> None:
    given = trace()
    for place in range(len(given[0][index][part])):
        changed = copy.deepcopy(given)
        changed[0][index][part][place] = value
        with suppress(TVMError):
            apply(changed)


@pytest.mark.no_replay
def test_the_instruction_is_named_where_a_primitive_stumbles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = trace()

    def stumbling(*args: Any, **kwargs: Any) -> Any:
        raise TypeError("unhashable type: 'dict'")

    monkeypatch.setattr(tir.Schedule, "split", stumbling)
    with pytest.raises(IRValueError, match=r"instruction 2 \(Split\) has arguments that the prim"):
        apply(given)


def test_a_trace_is_read_without_a_schedule() -> None:
    given = trace()
    again = Trace.from_json(given)
    assert again.as_json() == given
    schedule = tir.Schedule(doubled)
    again.apply_to_schedule(schedule)
    tir.schedule.testing.assert_structural_equal_ignore_global_symbol(
        schedule.mod, apply(given).mod
    )
    assert again.with_decision(again.insts[0], [1], False).get_decision(again.insts[0]) == [1]


@pytest.mark.parametrize("given", [None, [[]], [[["Split", []]], []], [[["Fly", [], [], []]], []]])
def test_what_is_no_trace_is_not_read(given: Any) -> None:
    with pytest.raises(TVMError, match="expected|there is no instruction 'Fly'"):
        Trace.from_json(given)
