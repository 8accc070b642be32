"""How many of the outer loops are fused into one parallel loop."""

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

_BALANCED: Final = 0.9
"""Loops are fused until the cores are busy for more than this share of the time."""


def parallel_depth(sch: Schedule, order: Sequence[LoopRV], machine: Machine) -> int:
    """How many of the loops ``order``, outermost first, to fuse; 0 if they have one iteration.

    A loop whose last tile is cut off is not fused into others. The guard of that tile would then
    test a remainder of the fused loop, which lowering cannot move out of the tile.
    """
    extents = [sch.get(loop).extent for loop in order]
    counts = [extent.value if isinstance(extent, IntImm) else None for extent in extents]
    return depth_of_counts(counts, [_is_cut_off(sch, loop) for loop in order], machine.cores)


def depth_of_counts(counts: Sequence[int | None], cut_off: Sequence[bool], cores: int) -> int:
    """``parallel_depth`` of loops with ``counts`` iterations; ``cut_off`` says whose last tile is.

    Three iterations keep two cores busy for 75 % of the time, fifteen for 94 %:

    >>> depth_of_counts([3, 5, 8], [False, False, False], 2)
    2
    >>> depth_of_counts([3, 5], [False, True], 2)
    1

    A symbolic extent (None) may be 1, as that of a batch often is, so it keeps no core busy:

    >>> depth_of_counts([None, 4, 8], [False, False, False], 2)
    2

    It is not fused into a loop whose last tile is cut off. Of a loop that was fused with others,
    the guard tests a quotient, and lowering knows where that is largest for constants only:

    >>> depth_of_counts([3, None, 8], [True, False, False], 2)
    1
    """
    count, depth, is_one, guarded = 1, 0, True, False
    for size, is_cut in zip(counts, cut_off, strict=True):
        if not is_one and (is_cut or (size is None and guarded)):
            break
        guarded = guarded or is_cut
        depth += 1
        count *= size or 1
        is_one = is_one and size == 1
        if _balance(count, cores) > _BALANCED:
            break
    return 0 if is_one else depth


def _is_cut_off(sch: Schedule, loop: LoopRV) -> bool:
    """Whether a guard inside of a loop tests its variable, so that its last tile is smaller."""
    var = sch.get(loop).loop_var
    tests = [realize.predicate for realize in collect(sch.get(loop).body, BlockRealize)]
    return any(var in collect(test, Var) for test in tests)


def _balance(count: int, cores: int) -> float:
    """The share of the time for which ``count`` equal parts keep the cores busy."""
    return count / (-(-count // cores) * cores)
