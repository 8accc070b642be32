"""Databases of tuning: workloads, records of what was measured, and the best of each."""

from weft.support.facade import module_getattr

_NAMES = {
    "Database": "weft.meta_schedule.database.base",
    "DatabaseWarning": "weft.meta_schedule.database.base",
    "JSONDatabase": "weft.meta_schedule.database.json_database",
    "MemoryDatabase": "weft.meta_schedule.database.memory_database",
    "OrderedUnionDatabase": "weft.meta_schedule.database.union_database",
    "PyDatabase": "weft.meta_schedule.database.base",
    "ScheduleFnDatabase": "weft.meta_schedule.database.schedule_fn_database",
    "TuningRecord": "weft.meta_schedule.database.record",
    "UnionDatabase": "weft.meta_schedule.database.union_database",
    "Workload": "weft.meta_schedule.database.record",
    "create": "weft.meta_schedule.database.base",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
