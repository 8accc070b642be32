"""How many of the outer loops become one parallel loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import BlockRealize

_MANY: Final = 64
"""Iterations that a loop of symbolic extent counts as."""
_BALANCED: Final = 0.9
"""The share of the cores' time that parts of one size must keep busy."""


def together(sch: Schedule, order: Sequence[LoopRV], machine: Machine) -> int:
    """How many of the outer loops, fused, keep the cores busy; 0 where there is one tile only.

    A loop whose last tile is cut off stays outside: what is cut off would depend on a remainder of
    the fused loop, and lowering could not take the test out of the tile.
    """
    extents = [sch.get(loop).extent for loop in order]
    counts = [extent.value if isinstance(extent, IntImm) else _MANY for extent in extents]
    return fused(counts, [_is_cut_off(sch, loop) for loop in order], machine.cores)


def fused(counts: Sequence[int], cut_off: Sequence[bool], cores: int) -> int:
    """The same of loops with so many iterations, some of which end with a tile that is cut off.

    >>> fused([3, 5, 8], [False, False, False], 2), fused([3, 5], [False, True], 2)
    (2, 1)
    """
    count, depth = 1, 0
    for size, is_cut in zip(counts, cut_off, strict=True):
        if count > 1 and is_cut:
            break
        depth += 1
        count *= size
        if _balance(count, cores) > _BALANCED:
            break
    return depth if count > 1 else 0


def _is_cut_off(sch: Schedule, loop: LoopRV) -> bool:
    """Whether a test around what a loop holds looks at its variable."""
    var = sch.get(loop).loop_var
    tests = [realize.predicate for realize in collect(sch.get(loop).body, BlockRealize)]
    return any(var in collect(test, Var) for test in tests)


def _balance(count: int, cores: int) -> float:
    """The share of the cores' time that ``count`` equal parts keep busy."""
    return count / (-(-count // cores) * cores)
