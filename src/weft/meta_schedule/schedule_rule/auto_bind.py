"""Binding blocks that nothing else has bound to the threads of a GPU."""

from __future__ import annotations

from collections.abc import Sequence

from weft.meta_schedule.protocols import Context
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.target_facts import needed_number, target_of
from weft.meta_schedule.thread_binding import Limits, bind_block, sampled_count
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_EXTENTS = (32, 64, 128, 256, 512, 1024)


class AutoBind(ScheduleRule):
    """Binds the spatial loops of a block to ``blockIdx.x`` and ``threadIdx.x``.

    Args:
        max_threadblocks: the most blocks of threads.
        thread_extents: the numbers of threads to choose from; None for 32 to 1,024.
        max_threads_per_block: the most threads of a block; what the target says replaces it.
    """

    def __init__(
        self,
        max_threadblocks: int = 256,
        thread_extents: Sequence[int] | None = None,
        max_threads_per_block: int = -1,
    ) -> None:
        self.max_threadblocks = max_threadblocks
        self.thread_extents = list(_EXTENTS if thread_extents is None else thread_extents)
        self.max_threads_per_block = max_threads_per_block

    def _initialize_with_tune_context(self, context: Context) -> None:
        target = target_of(context, "AutoBind")
        self.max_threads_per_block = needed_number(target, "max_threads_per_block", "AutoBind")

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """``[sch]``, in which the block is bound."""
        limits = Limits(self.max_threadblocks, self.max_threads_per_block)
        bind_block(sch, block, limits, sampled_count(sch, self.thread_extents))
        return [sch]
