"""Several databases asked as one."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.database.record import TuningRecord
from weft.support.errors import wrong_type
from weft.target import Target


class OrderedUnionDatabase(Database):
    """Databases that are asked in order: the first that knows a module answers.

    It answers queries alone; records are added to one of its databases.
    """

    def __init__(self, *databases: Database) -> None:
        super().__init__()
        for database in databases:
            if not isinstance(database, Database):
                raise wrong_type(f"{type(self).__name__}: expected databases", database)
        self.databases = databases

    def _answers(self, mod: IRModule, target: Target, name: str | None) -> list[TuningRecord]:
        """What each database that knows the module answers, in order."""
        answers = (each.query_tuning_record(mod, target, name) for each in self.databases)
        return [answer for answer in answers if answer is not None]

    def query_tuning_record(
        self, mod: IRModule, target: Target, workload_name: str | None = None
    ) -> TuningRecord | None:
        return next(iter(self._answers(mod, target, workload_name)), None)


class UnionDatabase(OrderedUnionDatabase):
    """Databases that are all asked: the fastest answer counts."""

    def query_tuning_record(
        self, mod: IRModule, target: Target, workload_name: str | None = None
    ) -> TuningRecord | None:
        answers = self._answers(mod, target, workload_name)
        return min(answers, key=lambda record: record.mean_secs, default=None)
