"""A database that lives as long as its object."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.meta_schedule.database.base import Database, fastest
from weft.meta_schedule.database.record import TuningRecord, Workload


class MemoryDatabase(Database):
    """Keeps workloads and records in memory.

    >>> import weft
    >>> database = MemoryDatabase()
    >>> mod = weft.IRModule({})
    >>> database.commit_workload(mod) is database.commit_workload(mod.clone())
    True
    >>> database.has_workload(mod), len(database)
    (True, 0)
    """

    def __init__(self, module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self.records: list[TuningRecord] = []
        self._workloads: dict[bytes, Workload] = {}
        self._digests: dict[Workload, bytes] = {}

    @property
    def workloads(self) -> list[Workload]:
        """All workloads."""
        return list(self._workloads.values())

    def _digest(self, workload: Workload) -> bytes:
        """The digest of a workload, which another database may have given."""
        if workload not in self._digests:
            self._digests[workload] = self.module_equality.digest(workload.mod)
        return self._digests[workload]

    def has_workload(self, mod: IRModule) -> bool:
        return self.module_equality.digest(mod) in self._workloads

    def commit_workload(self, mod: IRModule) -> Workload:
        digest = self.module_equality.digest(mod)
        if digest not in self._workloads:
            self._add_workload(digest, Workload(mod))
        return self._workloads[digest]

    def _add_workload(self, digest: bytes, workload: Workload) -> None:
        self._digests[workload] = digest
        self._workloads[digest] = workload

    def commit_tuning_record(self, record: TuningRecord) -> None:
        self.records.append(record)

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        digest = self._digest(workload)
        return fastest([r for r in self.records if self._digest(r.workload) == digest], top_k)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return list(self.records)

    def __len__(self) -> int:
        return len(self.records)
