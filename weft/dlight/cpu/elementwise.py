"""Blocks that compute each element by itself: one parallel loop around one vector loop.

Where all that is read has the place of what is written, the loops are one; else the innermost one
becomes vectors and the others are fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.dlight.nest import Nest, loops_of, product
from weft.ir.expr import IntImm, PrimExpr
from weft.target.machine import Machine
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_VECTORS: Final = 4
"""Vectors in flight: loads of one hide behind the arithmetic of another."""

_PARTS: Final = 8
"""Iterations for each core that keep all of them busy."""


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a spatial block; False if it is none."""
    nest = Nest(sch, block)
    if not nest.is_spatial:
        return False
    loops = sch.get_loops(block)
    if not loops:
        return True
    if len(loops) > 1 and _is_flat(nest):
        loops = [sch.fuse(*loops)]
    outer, inner = loops[:-1], loops[-1]
    size = extent_of(sch, inner)
    lanes = machine.lanes()
    if size is None or size > lanes * _VECTORS:
        around, inner = sch.split(inner, [None, lanes * (_VECTORS if not outer else 1)])
        outer.append(around)
    if size is None or size > 1:
        sch.vectorize(inner)
    if outer:
        run_in_parallel(sch, _enough(sch, outer, machine), machine)
    return True


def _enough(sch: Schedule, outer: Sequence[LoopRV], machine: Machine) -> Sequence[LoopRV]:
    """The loops but the last one where they keep all cores busy, else all.

    What does not depend on the last loop, such as the sigmoid of a channel that all pixels are
    multiplied by, is then computed before it, and places need no divisions.
    """
    count = product([extent_of(sch, loop) for loop in outer[:-1]])
    return outer[:-1] if count is not None and count >= _PARTS * machine.cores else outer


def _is_flat(nest: Nest) -> bool:
    """Whether every access is at the place of the instance, so that axes need not be told apart."""
    axes = [axis.var for axis in nest.axes if nest.extent(axis.var) != 1]
    places = [load.indices for load in nest.loads if load.indices]
    return nest.result_axes() == axes and all(_axes_of(place) == axes for place in places)


def _axes_of(place: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The indices but for those that are always the first."""
    return [index for index in place if not op.is_const_int(index, 0)]


def run_in_parallel(sch: Schedule, outer: Sequence[LoopRV], machine: Machine) -> LoopRV:
    """Fuse loops and run them in parallel; whether that pays is decided by code generation."""
    fused = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    if machine.cores > 1:
        sch.parallel(fused)
    return fused


def vectorize_inside(sch: Schedule, nest: Nest, axis: Var, skip: int, machine: Machine) -> None:
    """Make vectors of the loop that runs an axis, below the ``skip`` outermost loops."""
    loop = loops_of(sch, nest, skip).get(axis)
    if loop is None:
        return
    size = extent_of(sch, loop)
    if size is None or size > machine.lanes() * _VECTORS:
        _, loop = sch.split(loop, [None, machine.lanes()])
    sch.vectorize(loop)


def extent_of(sch: Schedule, loop: LoopRV) -> int | None:
    """The number of iterations; None if it is symbolic."""
    extent = sch.get(loop).extent
    return extent.value if isinstance(extent, IntImm) else None
