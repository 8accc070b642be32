"""MetaScheduleApplyDatabase: kernels get the schedules that a database has for them."""

from __future__ import annotations

import logging
from pathlib import Path

from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.ir.transform import ModulePass, Pass, PassContext, PassInfo
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.database.record import TuningRecord
from weft.meta_schedule.trace_apply import schedule_using_anchor_trace
from weft.meta_schedule.tune_context import current_target, normalized
from weft.support.errors import IRValueError
from weft.target import Target
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.scheduled import SCHEDULED, is_scheduled

logger = logging.getLogger("weft.meta_schedule")


def MetaScheduleApplyDatabase(  # noqa: N802 - TVM's name
    work_dir: str | None = None, enable_warning: bool = False
) -> Pass:
    """Give each PrimFunc the fastest schedule that a database has for it.

    The database is that of the innermost ``with database:``, else the one in ``work_dir``. A
    function that gets a schedule is marked ``tir.is_scheduled``, so that default schedules leave it
    alone. With ``enable_warning``, those without a record are named.
    """

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        target = current_target()
        database = Database.current() or _on_disk(work_dir)
        result = mod.clone()
        for var, func in mod.functions.items():
            if not isinstance(func, PrimFunc) or is_scheduled(func):
                continue
            record = database.query_tuning_record(normalized(func), target, var.name_hint)
            if record is not None:
                result[var] = _scheduled(func, record, target)
            elif enable_warning:
                logger.warning("the database has no schedule for %s", var.name_hint)
        return result

    return ModulePass(run, PassInfo(0, "MetaScheduleApplyDatabase"))


def _on_disk(work_dir: str | None) -> Database:
    if work_dir is None or not Path(work_dir).is_dir():
        raise IRValueError(
            "MetaScheduleApplyDatabase: there is no database: use the pass inside `with database:`,"
            f" or give the folder that tuning wrote (work_dir={work_dir!r})"
        )
    return Database.create("json", work_dir=work_dir)


def _scheduled(func: PrimFunc, record: TuningRecord, target: Target) -> PrimFunc:
    """The function as the schedule of a record leaves it, with its own attributes."""
    mod = normalized(func)
    if structural_equal(mod, record.workload.mod):
        sch = Schedule(record.workload.mod)
        record.trace.apply_to_schedule(sch)
    else:  # the database takes functions with one anchor block for the same
        sch = Schedule(mod)
        schedule_using_anchor_trace(sch, record.trace, target)
    [new] = [item for item in sch.mod.functions.values() if isinstance(item, PrimFunc)]
    return new.with_(attrs=func.attrs).with_attr(SCHEDULED, True)
