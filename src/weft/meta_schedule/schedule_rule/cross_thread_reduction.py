"""Reductions whose steps the threads of a block share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.ir.expr import IntImm, PrimExpr
from weft.meta_schedule.block_questions import (
    is_root,
    is_thread,
    loops_around,
    needs_multi_level_tiling,
    needs_parallel_reduction,
    reference,
)
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.schedule_rule.reduction_loops import fused_reduction
from weft.meta_schedule.target_facts import number, target_of, warp_size
from weft.support.errors import IRValueError
from weft.tir.expr import IterType
from weft.tir.schedule import tree
from weft.tir.schedule.analysis.block_kinds import get_loop_iter_type
from weft.tir.schedule.random_variable import BlockRV, ExprRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace
from weft.tir.stmt import Block

_THREAD = "threadIdx.x"


class _Place(NamedTuple):
    """Where a reduction is computed: in a loop of a consumer, whose innermost loop is ``last``."""

    loop: LoopRV
    consumer: BlockRV
    last: LoopRV


class CrossThreadReduction(ScheduleRule):
    """Binds part of a reduction to ``threadIdx.x``, inside the loops of the consumer if it can be.

    Gives the schedule with the bound reduction and the one without. It does nothing for targets
    that do not say ``max_threads_per_block``.

    Args:
        thread_extents: the numbers of threads to choose from.
    """

    def __init__(self, thread_extents: Sequence[int]) -> None:
        if any(extent <= 0 for extent in thread_extents):
            raise IRValueError(
                f"thread_extents: expected positive numbers, got {list(thread_extents)}"
            )
        self.thread_extents = list(thread_extents)
        self.max_threads_per_block: int | None = None

    def _initialize_with_tune_context(self, context: Context) -> None:
        target = target_of(context, "CrossThreadReduction")
        most = number(target, "max_threads_per_block")
        self.max_threads_per_block = None if warp_size(target) is None else most
        if self.max_threads_per_block is None:
            context.logger.warning(
                "CrossThreadReduction is not applied: %s says no max_threads_per_block", target
            )

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedule with threads that share the reduction, and ``sch``."""
        most = self.max_threads_per_block
        if most is None or is_root(sch, block) or not needs_parallel_reduction(sch, block, most):
            return [sch]
        bound = sch.copy()
        place = _place_in_consumer(bound, block)
        count = len(self.thread_extents)
        extent: ExprRV = bound.sample_categorical(self.thread_extents, [1.0 / count] * count)
        if place is not None:
            extent = _join(bound, block, place, extent)
        _, reduced = fused_reduction(bound, block)
        bound.bind(bound.split(reduced, [None, extent])[1], _THREAD)
        return [bound, sch]


def _join(sch: Schedule, block: BlockRV, place: _Place, extent: ExprRV) -> ExprRV:
    """Compute the block in the loops of its consumer; how many threads run these."""
    loop = place.loop
    if any(is_thread(item) for item in loops_around(sch, place.consumer)):
        extent = _bound_extent(sch.trace)
    else:
        outer, inner = sch.split(place.last, [None, extent])
        sch.bind(inner, _THREAD)
        loop = outer if place.last is place.loop else place.loop
    sch.compute_at(block, loop, preserve_unit_loops=True)
    sch.set_scope(block, 0, "shared")
    return extent


def _bound_extent(trace: Trace | None) -> ExprRV:
    """The number by which the trace split the first loop that it bound to the threads."""
    assert trace is not None
    split_by: dict[object, object] = {}
    for inst in trace.insts:
        if inst.kind.name == "Split":
            split_by.update(zip(inst.outputs, inst.inputs[1:], strict=False))
        elif inst.kind.name == "Bind" and inst.attrs == [_THREAD]:
            extent = split_by.get(inst.inputs[0])
            if isinstance(extent, PrimExpr):
                return extent
            if isinstance(extent, int):
                return IntImm("int32", extent)
    raise IRValueError(
        f"CrossThreadReduction: the loop bound to {_THREAD} was not split by a number of threads"
    )


def _place_in_consumer(sch: Schedule, block: BlockRV) -> _Place | None:
    """The innermost loop of the consumer that the block can be computed in."""
    stmt: Block = sch.get(block)
    if len(stmt.writes) != 1:
        return None
    consumers = sch.get_consumers(block)
    if not consumers or needs_multi_level_tiling(sch, consumers[0]):
        return None
    common = tree.lowest_common_ancestor([reference(sch, item) for item in consumers])
    if len(consumers) > 1 and isinstance(common.stmt, Block):
        return None
    loops = sch.get_loops(consumers[0])
    place = -1
    for own, other in zip(sch.get_loops(block), loops, strict=False):
        if get_loop_iter_type(sch, own) != IterType.DataPar:
            break
        place += 1
        if sch.get_sref(other) is common:
            break
    return None if place < 0 else _Place(loops[place], consumers[0], loops[-1])
