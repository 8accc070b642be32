"""No pass is worse than linear: calls of Python functions are counted, at two sizes, not time.

Each form of graph has many of another thing (tests.lib.binding_graphs). What a pass does
for four times as many is at most about four times as much.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest

from tests.lib.binding_graphs import FORMS, passes, stages
from weft.ir import IRModule
from weft.support.errors import TVMError

SMALL, LARGE = 30, 120
TOLERANCE = 1.35
PASSES = passes()


@functools.cache
def inputs(form: str, size: int) -> dict[str, list[IRModule]]:
    """What the passes run on."""
    return stages(FORMS[form](size))


def work(name: str, mod: IRModule) -> int:
    """How many functions a pass calls; 0 if it is not for this form of module."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        PASSES[name](mod)
    except TVMError:
        return 0
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("form", FORMS)
def test_passes_are_linear(form: str) -> None:
    small, large = inputs(form, SMALL), inputs(form, LARGE)
    worse = {}
    for name in PASSES:
        pairs = zip(small.get(name, small[""]), large.get(name, large[""]), strict=True)
        for few, many in pairs:
            less, more = work(name, few), work(name, many)
            if more > TOLERANCE * LARGE / SMALL * less and more > 1000:
                worse[name] = f"{less} calls, then {more}"
    assert not worse


def test_work_that_is_not_linear_is_seen(monkeypatch) -> None:
    """The count finds a pass that looks at all bindings for each of them."""

    class Quadratic:
        def __call__(self, mod: IRModule) -> None:
            bindings = [b for block in mod["main"].body.blocks for b in block.bindings]
            for _ in bindings:
                for binding in bindings:
                    id(binding)

    monkeypatch.setitem(PASSES, "Quadratic", Quadratic())
    few, many = (inputs("mixed", size)[""][0] for size in (SMALL, LARGE))
    assert work("Quadratic", many) > 2 * TOLERANCE * LARGE / SMALL * work("Quadratic", few)
