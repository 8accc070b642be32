"""What a database of tuning is: workloads, what was measured of them, and the best of it.

TVM's methods and file format are kept, so that databases of TVM's users can be read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.module import IRModule
from weft.meta_schedule.arg_info import ArgInfo
from weft.meta_schedule.protocols import Part
from weft.target import Target
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace


@dataclass(frozen=True, eq=False)
class Workload:
    """A module that is tuned, known by its structure."""

    mod: IRModule


@dataclass(frozen=True, eq=False)
class TuningRecord:
    """One measured schedule of a workload: seconds of each run, or None where it failed."""

    trace: Trace
    workload: Workload
    run_secs: Sequence[float] | None = None
    target: Target | None = None
    args_info: Sequence[ArgInfo] | None = None


class Database(Part):
    """Keeps records; those that derive from it say how."""

    @abstractmethod
    def has_workload(self, mod: IRModule) -> bool:
        """Whether a module with this structure is known."""

    @abstractmethod
    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of a module, which is added if it is not there."""

    @abstractmethod
    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record."""

    @abstractmethod
    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The fastest records of a workload, fastest first."""

    @abstractmethod
    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of records."""

    @abstractmethod
    def query_tuning_record(
        self, mod: IRModule, target: Target, workload_name: str
    ) -> TuningRecord | None:
        """The fastest record of a module; None if there is none."""

    @abstractmethod
    def query_schedule(self, mod: IRModule, target: Target, workload_name: str) -> Schedule | None:
        """The fastest schedule of a module; None if there is none."""

    @abstractmethod
    def query_ir_module(self, mod: IRModule, target: Target, workload_name: str) -> IRModule | None:
        """The module as its fastest schedule leaves it; None if there is none."""
