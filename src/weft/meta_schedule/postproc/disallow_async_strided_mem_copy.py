"""Refusing copies beside the computation that do not go through memory in order."""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.linear import detect_linear_equation
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.transform import Sequential
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.postproc.scheduled_functions import functions
from weft.tir import op, transform
from weft.tir.analysis.software_pipeline import pipelined_stmts
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import BufferStore, For, Stmt


class DisallowAsyncStridedMemCopy(Postproc):
    """Refuses a schedule with a strided copy in an asynchronous stage of a software pipeline.

    Engines for direct memory access, as Hexagon's, copy elements that lie one after the other.
    """

    def apply(self, sch: Schedule) -> bool:
        """Whether all such copies are in order; nothing changes."""
        module = IRModule(dict(functions(sch)))
        lowered = Sequential(
            [
                transform.LowerInitBlock(),
                transform.PlanAndUpdateBufferAllocationLocation(),
                transform.ConvertBlocksToOpaque(),
                transform.CompactBufferAllocation(),
                transform.LowerMatchBuffer(),
                transform.Simplify(),
            ]
        )(module)
        return all(
            _is_in_order(item.stmt)
            for func in lowered.functions.values()
            if isinstance(func, PrimFunc)
            for loop in collect(func.body, For)
            for item in pipelined_stmts(loop)
            if item.is_async
        )


def _is_in_order(stmt: Stmt) -> bool:
    """Whether each copy of a statement reads and writes elements one after the other."""
    loops = collect(stmt, For)
    return all(
        _is_contiguous(store.buffer, store.indices, loops)
        and _is_contiguous(store.value.buffer, store.value.indices, loops)
        for store in collect(stmt, BufferStore)
        if isinstance(store.value, BufferLoad)
    )


def _is_contiguous(buffer: Buffer, indices: Sequence[PrimExpr], loops: Sequence[For]) -> bool:
    """Whether loops go through a buffer without a gap: the innermost by 1, others by whole rows."""
    place: PrimExpr = op.const(0, indices[0].dtype)
    for index, extent in zip(indices, buffer.shape, strict=True):
        if not isinstance(extent, IntImm):
            return False
        place = place * extent.value + index
    terms = detect_linear_equation(place, [loop.loop_var for loop in loops])
    steps = []
    for step, loop in zip(terms, loops, strict=False):
        if not isinstance(step, IntImm) or not isinstance(loop.extent, IntImm):
            return False
        if loop.extent.value > 1 and step.value:
            steps.append((step.value, loop.extent.value))
    reached = 1
    for distance, count in sorted(steps):
        if distance != reached:
            return False
        reached *= count
    return len(terms) > 0
