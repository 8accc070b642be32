"""Reductions in two steps: partial results in parallel or in vectors, then their sum."""

from __future__ import annotations

from weft.meta_schedule.annotations import RANDOM_PRODUCER
from weft.meta_schedule.block_questions import is_root, needs_parallel_reduction
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.schedule_rule.reduction_loops import fused_reduction
from weft.meta_schedule.target_facts import cores, target_of
from weft.support.errors import ScheduleError
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule


class AddRFactor(ScheduleRule):
    """Splits the reduction of a block by ``rfactor`` where its spatial loops keep few cores busy.

    Gives the schedule as it was, and one each for the outer and the inner part of the split
    reduction becoming an axis of the partial results.

    Args:
        max_jobs_per_core: how many jobs a core is given; more spatial work than that needs no
            split. -1 for no limit.
        max_innermost_factor: the most steps of the inner part; None for no limit.
    """

    def __init__(
        self, max_jobs_per_core: int = 16, max_innermost_factor: int | None = None
    ) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self.max_innermost_factor = -1 if max_innermost_factor is None else max_innermost_factor
        self._most_parallel = -1

    def _initialize_with_tune_context(self, context: Context) -> None:
        if self.max_jobs_per_core != -1:
            target = target_of(context, "AddRFactor")
            self._most_parallel = cores(target) * self.max_jobs_per_core

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules with a split reduction, then the one without."""
        if is_root(sch, block) or not needs_parallel_reduction(sch, block, self._most_parallel):
            return [sch]
        unchanged = sch.copy()
        spatial, reduced = fused_reduction(sch, block)
        factors = sch.sample_perfect_tile(reduced, 2, self.max_innermost_factor)
        results = []
        for loop in sch.split(reduced, factors):
            other = sch.copy()
            try:
                other.rfactor(loop, spatial)
            except ScheduleError:  # such as a reduction that is not a known one
                continue
            other.annotate(block, RANDOM_PRODUCER, 1)
            results.append(other)
        return [*results, unchanged]
