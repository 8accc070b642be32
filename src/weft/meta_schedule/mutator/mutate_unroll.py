"""Choosing another number of steps up to which loops are unrolled."""

from __future__ import annotations

from weft.meta_schedule.annotations import UNROLL_EXPLICIT, UNROLL_IMPLICIT
from weft.meta_schedule.mutator.base import Mutator
from weft.meta_schedule.mutator.categorical import annotated_choices, with_other_choice
from weft.tir.schedule.trace import Trace


class MutateUnroll(Mutator):
    """Changes one choice that ``ParallelizeVectorizeUnroll`` made for unrolling."""

    def apply(self, trace: Trace) -> Trace | None:
        """A trace with another number of steps; None if it unrolls nothing."""
        choices = annotated_choices(trace, UNROLL_EXPLICIT, UNROLL_IMPLICIT)
        if not choices:
            return None
        return with_other_choice(trace, self.random.choice(choices), self.random)
