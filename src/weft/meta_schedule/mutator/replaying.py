"""Mutators that replay a trace to see what its decisions could have been."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.meta_schedule.mutator.base import Mutator
from weft.meta_schedule.protocols import Context
from weft.support.errors import IRValueError
from weft.tir.schedule.schedule import Schedule


class ReplayingMutator(Mutator):
    """A mutator that knows the module of its task."""

    mod: IRModule | None = None

    def _initialize_with_tune_context(self, context: Context) -> None:
        super()._initialize_with_tune_context(context)
        self.mod = context.mod

    def schedule(self) -> Schedule:
        """A schedule of the module as it was before tuning."""
        if self.mod is None:
            raise IRValueError(
                f"{type(self).__name__}: it has no module; give the mutator to a TuneContext"
            )
        seed = self.random.randrange(1, 2**31 - 1)
        return Schedule(self.mod, seed=seed, error_render_level="none")
