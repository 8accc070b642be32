"""Marks on the root block that say how far loops are run in parallel, in vectors, unrolled."""

from __future__ import annotations

from collections.abc import Sequence

from weft.meta_schedule.annotations import (
    PARALLEL,
    UNROLL_EXPLICIT,
    UNROLL_IMPLICIT,
    VECTORIZE,
)
from weft.meta_schedule.block_questions import in_spatial_function, is_root
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.target_facts import cores, target_of
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule


class ParallelizeVectorizeUnroll(ScheduleRule):
    """Marks the root block; ``RewriteParallelVectorizeUnroll`` acts on the marks.

    Args:
        max_jobs_per_core: how many iterations a parallel loop has for each core, at most; -1 for
            no parallel loops.
        max_vectorize_extent: the most elements that a vector loop runs over; -1 for no vectors.
        unroll_max_steps: the numbers of steps to choose from, up to which loops are unrolled; None
            for no unrolling. Functions without reductions are not unrolled.
        unroll_explicit: whether the loops are written out, or unrolled by the compiler behind.
    """

    def __init__(
        self,
        max_jobs_per_core: int = 16,
        max_vectorize_extent: int = 16,
        unroll_max_steps: Sequence[int] | None = None,
        unroll_explicit: bool = True,
    ) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self.max_vectorize_extent = max_vectorize_extent
        self.unroll_max_steps = list(unroll_max_steps or ())
        self.unroll_explicit = unroll_explicit
        self._most_parallel = -1

    def _initialize_with_tune_context(self, context: Context) -> None:
        if self.max_jobs_per_core != -1:
            target = target_of(context, "ParallelizeVectorizeUnroll")
            self._most_parallel = cores(target) * self.max_jobs_per_core

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """``[sch]``, whose block has the marks if it is the root."""
        if not is_root(sch, block):
            return [sch]
        if self.max_jobs_per_core != -1:
            sch.annotate(block, PARALLEL, self._most_parallel)
        if self.max_vectorize_extent != -1:
            sch.annotate(block, VECTORIZE, self.max_vectorize_extent)
        if self.unroll_max_steps and not in_spatial_function(sch, block):
            count = len(self.unroll_max_steps)
            steps = sch.sample_categorical(self.unroll_max_steps, [1.0 / count] * count)
            sch.annotate(block, UNROLL_EXPLICIT if self.unroll_explicit else UNROLL_IMPLICIT, steps)
        return [sch]
