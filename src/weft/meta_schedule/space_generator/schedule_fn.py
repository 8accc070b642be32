"""``ScheduleFn``: the design space that a function of the user's describes."""

from __future__ import annotations

from typing import Unpack

from weft.ir.module import IRModule
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.space_generator.base import ScheduleFnType, SpaceGenerator, SpaceParts
from weft.support.errors import IRTypeError
from weft.tir.schedule.schedule import Schedule


class ScheduleFn(SpaceGenerator):
    """The schedules that a function makes of a module; its sampling calls span the space.

    Args:
        sch_fn: takes a schedule of the module; returns nothing, a schedule or a list of schedules.
        parts: as in ``SpaceGenerator``; the function is not bound to use the rules.
    """

    def __init__(self, sch_fn: ScheduleFnType, **parts: Unpack[SpaceParts]) -> None:
        super().__init__(**parts)
        self.sch_fn = sch_fn
        self._seed: int | None = None

    def _initialize_with_tune_context(self, context: Context) -> None:
        super()._initialize_with_tune_context(context)
        self._seed = context.fork_seed()

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The schedules of the space, each with its trace."""
        sch = Schedule(mod, seed=self._seed)
        answer = self.sch_fn(sch)
        if answer is None:
            return [sch]
        schedules: list[Schedule] = []
        for item in answer if isinstance(answer, (list, tuple)) else (answer,):
            if not isinstance(item, Schedule):
                raise IRTypeError(
                    "ScheduleFn: expected the function to return None, a Schedule or a list of "
                    f"them, got {type(item).__name__}"
                )
            schedules.append(item)
        return schedules
