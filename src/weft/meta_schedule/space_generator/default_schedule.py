"""The schedule that a target's backend gives without tuning, as a design space of one sketch."""

from __future__ import annotations

from weft.codegen.backend import backend_of, has_backend
from weft.dlight.apply import first_schedule
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.space_generator.base import SpaceGenerator
from weft.support.errors import ScheduleError
from weft.target import Target
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import Stmt


class DefaultSchedule(SpaceGenerator):
    """What the backend of the target makes of a function; empty if its rules do not fit it.

    Nothing in it is sampled. ``tune_tir`` and ``tune_relax`` join it with the space of the target's
    rules, so that what they find is not slower than the default.
    """

    _target: Target | None = None

    def _initialize_with_tune_context(self, context: Context) -> None:
        super()._initialize_with_tune_context(context)
        self._target = context.target

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The schedule in a list; an empty list if there is none that its trace repeats."""
        target, [function] = self._target, list(mod.functions.values())
        if target is None or not has_backend(target.kind) or not isinstance(function, PrimFunc):
            return []
        try:
            scheduled = first_schedule(function, backend_of(target).schedules(target), target)
        except ScheduleError:
            return []
        repeated = None if scheduled is None else _repeated(mod, scheduled)
        return [] if repeated is None else [repeated]


def _repeated(mod: IRModule, scheduled: Schedule) -> Schedule | None:
    """The same schedule by its trace; None if that does not tell all (joined symbolic rows)."""
    if scheduled.trace is None or not scheduled.trace.insts:
        return None
    sch = Schedule(mod, error_render_level="none")
    try:
        scheduled.trace.apply_to_schedule(sch)
    except ScheduleError:
        return None
    return sch if structural_equal(_body(sch), _body(scheduled)) else None


def _body(sch: Schedule) -> Stmt:
    [function] = sch.mod.functions.values()
    assert isinstance(function, PrimFunc)
    return function.body
