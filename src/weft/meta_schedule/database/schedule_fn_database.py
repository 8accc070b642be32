"""A function in place of a database: it schedules what it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.module import IRModule
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.database.record import TuningRecord, Workload
from weft.target import Target
from weft.tir.schedule.schedule import Schedule


class ScheduleFnDatabase(Database):
    """Asks a function for every schedule.

    Args:
        schedule_fn: changes the schedule that it gets, and returns whether it did. The attribute
            ``task_name`` of ``sch.mod`` is the name of the workload.
    """

    def __init__(
        self, schedule_fn: Callable[[Schedule], bool], module_equality: str = "structural"
    ) -> None:
        super().__init__(module_equality)
        self.schedule_fn = schedule_fn

    def query_schedule(
        self, mod: IRModule, target: Target, workload_name: str | None = None
    ) -> Schedule | None:
        named = mod if workload_name is None else mod.with_attr("task_name", workload_name)
        sch = Schedule(named)
        return sch if self.schedule_fn(sch) else None

    def query_tuning_record(
        self, mod: IRModule, target: Target, workload_name: str | None = None
    ) -> TuningRecord | None:
        sch = self.query_schedule(mod, target, workload_name)
        if sch is None or sch.trace is None:
            return None
        return TuningRecord(sch.trace, Workload(mod), target=target)
