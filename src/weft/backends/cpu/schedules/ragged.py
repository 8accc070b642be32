"""Reductions some of whose steps are left out, others for each element: windows of several sizes.

An adaptive pool of 20 pixels to 7 has windows of three and of four:
``sum(x[j * 20 // 7 + k] if k < length(j) else 0 for k in range(4))``. Few elements and steps are
unrolled, so that all positions and conditions are constants. Rows of elements run in parallel.
"""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.schedules.elementwise import extent_of, run_in_parallel
from weft.backends.cpu.schedules.parallel_depth import parallel_depth
from weft.dlight.nest import Nest, loops_of, product
from weft.ir.functor import collect, mentions
from weft.target.machine import Machine
from weft.tir.expr import Call, is_call
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_FEW: Final = 256
"""Fewer steps than these are unrolled, those of all elements of a row together."""


def fits(nest: Nest) -> bool:
    """Whether the last axis of the result decides which steps of a reduction are left out."""
    if not (nest.is_plain and nest.is_reduction and nest.spatial):
        return False
    tests = [
        call.args[0] for call in collect(nest.block.body, Call) if is_call(call, "if_then_else")
    ]
    last = nest.spatial[-1]
    return any(
        mentions(test, last) and any(mentions(test, axis) for axis in nest.reduced)
        for test in tests
    )


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a reduction that ``fits``; False for any other block."""
    nest = Nest(sch, block)
    loops = loops_of(sch, nest) if fits(nest) else {}
    outer = [loops[axis] for axis in nest.spatial if axis in loops]
    steps = [loops[axis] for axis in nest.reduced if axis in loops]
    if not steps or not outer:
        return False
    sizes = [extent_of(sch, loop) for loop in (outer[-1], *steps)]
    if (product(sizes) or _FEW) < _FEW:
        for loop in (outer.pop(), *steps):
            sch.unroll(loop)
    depth = parallel_depth(sch, outer, machine)
    if depth:
        run_in_parallel(sch, outer[:depth], machine)
    sch.decompose_reduction(block, steps[0])
    return True
