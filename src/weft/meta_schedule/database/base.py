"""What a database of tuning is: workloads, what was measured of them, and the best of it.

TVM's methods and file format are kept, so that databases of TVM's users can be read.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NoReturn, Self, TypeAlias

from weft.ir.module import IRModule
from weft.meta_schedule.database.module_equality import EQUALITIES, ModuleEquality
from weft.meta_schedule.database.record import TuningRecord, Workload
from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Part
from weft.support.errors import IRValueError, ScheduleError, TVMError, UnsupportedError
from weft.support.scopes import Scopes
from weft.target import Target
from weft.tir.schedule.schedule import Schedule

_OPEN: Final[Scopes[Any]] = Scopes("database")
_FOLDER: Final = "weft.meta_schedule.database"
_KINDS: Final = {
    "json": f"{_FOLDER}.json_database:JSONDatabase",
    "memory": f"{_FOLDER}.memory_database:MemoryDatabase",
    "union": f"{_FOLDER}.union_database:UnionDatabase",
    "ordered_union": f"{_FOLDER}.union_database:OrderedUnionDatabase",
}
_NEXT_BEST: Final = 16
"""How many records are tried in turn where schedules of a workload do not fit it any more."""


class DatabaseWarning(UserWarning):
    """A part of a database cannot be used; the rest is."""


class Database(Part):
    """Keeps records; those that derive from it say how.

    A class of the user derives from it (``PyDatabase`` is the same class) and overrides
    ``has_workload``, ``commit_workload``, ``commit_tuning_record``, ``get_top_k``,
    ``get_all_tuning_records`` and ``__len__``; the queries follow from these.

    ``with database:`` makes it current, for ``relax.transform.MetaScheduleApplyDatabase``.

    Args:
        module_equality: when two modules are the same workload: ``"structural"``,
            ``"ignore-ndarray"`` (constants count by type and shape) or ``"anchor-block"`` (only the
            reduction with the most arithmetic counts).
    """

    module_equality: ModuleEquality = EQUALITIES["structural"]

    def __init__(self, module_equality: str = "structural") -> None:
        if module_equality not in EQUALITIES:
            raise IRValueError(
                f"{type(self).__name__}: expected module_equality of "
                f"{', '.join([repr(name) for name in EQUALITIES])}, got {module_equality!r}"
            )
        self.module_equality = EQUALITIES[module_equality]

    # ---- what those that derive from it say

    @abstractmethod
    def has_workload(self, mod: IRModule) -> bool:
        """Whether a module with this structure is known."""
        self._refuse("has_workload")

    @abstractmethod
    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of a module, which is added if it is not there."""
        self._refuse("commit_workload")

    @abstractmethod
    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record."""
        self._refuse("commit_tuning_record")

    @abstractmethod
    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest records of a workload, fastest first; records of failures are left out."""
        self._refuse("get_top_k")

    @abstractmethod
    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records."""
        self._refuse("get_all_tuning_records")

    @abstractmethod
    def __len__(self) -> int:
        """The number of records."""
        return len(self.get_all_tuning_records())

    def __bool__(self) -> bool:
        """A database without records is still a database."""
        return True

    def _refuse(self, method: str) -> NoReturn:
        name = type(self).__name__
        raise UnsupportedError(
            f"{name}.{method}: {name} has no such operation: use a database that has it "
            "(MemoryDatabase, JSONDatabase), or override the method in a class of your own"
        )

    # ---- queries

    def query_tuning_record(
        self, mod: IRModule, target: Target, workload_name: str | None = None
    ) -> TuningRecord | None:
        """The fastest record of a module; None if there is none."""
        if not self.has_workload(mod):
            return None
        return next(iter(self.get_top_k(self.commit_workload(mod), 1)), None)

    def query_schedule(
        self, mod: IRModule, target: Target, workload_name: str | None = None
    ) -> Schedule | None:
        """The fastest schedule of a module; None if there is none.

        A schedule of another version of weft may not fit the program any more: then a warning says
        why, and the next best is used.
        """
        best = self.query_tuning_record(mod, target, workload_name)
        if best is None:
            return None
        try:
            return best.replay()
        except TVMError as error:
            _warn_of_misfit(best, error)
        return self._next_best(best)

    def _next_best(self, best: TuningRecord) -> Schedule | None:
        try:
            others = self.get_top_k(best.workload, _NEXT_BEST)
        except UnsupportedError:
            return None
        for record in others:
            try:
                if record is not best:
                    return record.replay()
            except TVMError:
                continue
        return None

    def query_ir_module(
        self, mod: IRModule, target: Target, workload_name: str | None = None
    ) -> IRModule | None:
        """The module as its fastest schedule leaves it; None if there is none."""
        schedule = self.query_schedule(mod, target, workload_name)
        return None if schedule is None else schedule.mod

    def query(
        self,
        mod: IRModule,
        target: Target,
        *,
        workload_name: str = "main",
        kind: Literal["schedule", "record", "ir_module"] = "schedule",
    ) -> Schedule | IRModule | TuningRecord | None:
        """What ``query_schedule``, ``query_tuning_record`` or ``query_ir_module`` gives."""
        methods: dict[str, Callable[..., Any]] = {
            "schedule": self.query_schedule,
            "record": self.query_tuning_record,
            "ir_module": self.query_ir_module,
        }
        if kind not in methods:
            raise IRValueError(f"Database.query: expected kind of {[*methods]}, got {kind!r}")
        result: Schedule | IRModule | TuningRecord | None = methods[kind](
            mod, target, workload_name
        )
        return result

    def dump_pruned(self, destination: Database) -> None:
        """Add the fastest record of each workload to another database."""
        best: dict[int, TuningRecord] = {}
        for record in self.get_all_tuning_records():
            known = best.get(id(record.workload))
            if record.is_valid() and (known is None or record.mean_secs < known.mean_secs):
                best[id(record.workload)] = record
        for record in best.values():
            workload = destination.commit_workload(record.workload.mod)
            destination.commit_tuning_record(record.with_workload(workload))

    # ---- the current database

    def __enter__(self) -> Self:
        _OPEN.push(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _OPEN.pop()

    @staticmethod
    def current() -> Database | None:
        """The database of the innermost ``with``; None if there is none."""
        return _OPEN.innermost

    @staticmethod
    def create(
        kind: str | Callable[[Schedule], bool] = "json", *args: Any, **kwargs: Any
    ) -> Database:
        """A database of a kind: "json", "memory", "union", "ordered_union".

        A function that changes a schedule, and returns whether it did, gives a ScheduleFnDatabase.

        >>> len(Database.create("memory"))
        0
        """
        if callable(kind):
            kinds = {"function": f"{_FOLDER}.schedule_fn_database:ScheduleFnDatabase"}
            return class_of_kind(Database, kinds, "function")(kind, *args, **kwargs)
        return class_of_kind(Database, _KINDS, kind)(*args, **kwargs)


def fastest(records: Iterable[TuningRecord], top_k: int) -> list[TuningRecord]:
    """The ``top_k`` records with the least mean time, fastest first, without those of failures."""
    if top_k < 0:
        raise IRValueError(f"Database.get_top_k: expected top_k of at least 0, got {top_k}")
    valid = [record for record in records if record.is_valid()]
    return sorted(valid, key=lambda record: record.mean_secs)[:top_k]


def _warn_of_misfit(record: TuningRecord, error: TVMError) -> None:
    reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    kind = "a primitive refuses" if isinstance(error, ScheduleError) else "it cannot be replayed"
    warnings.warn(
        f"a record of the database does not fit its program any more ({kind}: {reason}); the next "
        "best is used: tune again for a schedule of this version",
        DatabaseWarning,
        stacklevel=3,
    )


create = Database.create
PyDatabase: TypeAlias = Database
"""TVM's name of the class that users derive from."""
