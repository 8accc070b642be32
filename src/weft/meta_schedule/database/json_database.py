"""A database in two files of JSON lines, with TVM's names and layout.

A line of ``database_workload.json`` is a workload, known by its number; one of
``database_tuning_record.json`` is ``[number of its workload, record]``. Any number of processes may
add to the same files at once (``json_lines``).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from weft.ir.module import IRModule
from weft.meta_schedule.database.base import DatabaseWarning
from weft.meta_schedule.database.json_lines import DAMAGED, JsonLines, Line
from weft.meta_schedule.database.memory_database import MemoryDatabase
from weft.meta_schedule.database.record import TuningRecord, Workload
from weft.support.errors import IRValueError, TVMError

_Unreadable = list[tuple[int, str]]
"""Lines that cannot be used: their numbers, from 0, and why."""


class JSONDatabase(MemoryDatabase):
    """Keeps workloads and records in two files.

    Args:
        path_workload: the file of workloads; ``work_dir/database_workload.json`` by default.
        path_tuning_record: the file of records; ``work_dir/database_tuning_record.json``.
        work_dir: the folder of both files.
        allow_missing: begin with empty files where there are none.
        module_equality: as for every Database.

    A line that is damaged, or written by a version of weft whose instructions this one does not
    know, is left out with a DatabaseWarning.
    """

    def __init__(
        self,
        path_workload: str | os.PathLike[str] | None = None,
        path_tuning_record: str | os.PathLike[str] | None = None,
        *,
        work_dir: str | os.PathLike[str] | None = None,
        allow_missing: bool = True,
        module_equality: str = "structural",
    ) -> None:
        super().__init__(module_equality)
        self.path_workload = _path(path_workload, work_dir, "workload")
        self.path_tuning_record = _path(path_tuning_record, work_dir, "tuning_record")
        self._workload_file = JsonLines(self.path_workload, allow_missing=allow_missing)
        self._record_file = JsonLines(self.path_tuning_record, allow_missing=allow_missing)
        self._by_number: dict[int, Workload] = {}
        self._numbers: dict[bytes, int] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read what other processes have added to the files."""
        self._take_workloads(self._workload_file.read_new())
        self._warn_of_cut(self._workload_file)
        self._take_records(self._record_file.read_new())
        self._warn_of_cut(self._record_file)

    def _take_records(self, lines: Iterable[Line]) -> None:
        unreadable: _Unreadable = []
        for number, value in lines:
            try:
                self.records.append(self._record(value))
            except TVMError as error:
                unreadable.append((number, str(error)))
        _warn(self.path_tuning_record, unreadable)

    def _record(self, value: object) -> TuningRecord:
        match value:
            case [int(number), record]:
                if number not in self._by_number:
                    raise IRValueError(f"there is no workload {number}")
                return TuningRecord.from_json(record, self._by_number[number])
        raise IRValueError(
            "it was not written whole" if value is DAMAGED else "expected [workload, record]"
        )

    def _take_workloads(self, lines: Iterable[Line]) -> None:
        unreadable: _Unreadable = []
        for number, value in lines:
            try:
                if value is DAMAGED:
                    raise IRValueError("it was not written whole")
                self._take_workload(number, Workload.from_json(value))
            except TVMError as error:
                unreadable.append((number, str(error)))
        _warn(self.path_workload, unreadable)

    def _take_workload(self, number: int, workload: Workload) -> None:
        digest = self.module_equality.digest(workload.mod)
        if digest not in self._workloads:
            self._add_workload(digest, workload)
            self._numbers[digest] = number
        self._by_number[number] = self._workloads[digest]

    def _warn_of_cut(self, file: JsonLines) -> None:
        if file.cut_off():
            message = "its last line was not written whole"
            warnings.warn(f"{file.path}: {message}; it is left out", DatabaseWarning, stacklevel=4)

    def commit_workload(self, mod: IRModule) -> Workload:
        digest = self.module_equality.digest(mod)
        if digest not in self._numbers:
            with self._workload_file.appending() as (added, write):
                self._take_workloads(added)
                if digest not in self._numbers:
                    workload = Workload(mod)
                    write(workload.as_json())
                    self._take_workload(added[-1].number, workload)
        return self._workloads[digest]

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Add a record; raises TVMError where it cannot be written, as on a full disk.

        The record is then kept in this object all the same.
        """
        self.records.append(record)
        self.commit_workload(record.workload.mod)
        number = self._numbers[self._digest(record.workload)]
        others = self._record_file.append([number, record.as_json()])
        if others:
            self._take_workloads(self._workload_file.read_new())
            self._take_records(others)


def _path(
    path: str | os.PathLike[str] | None, work_dir: str | os.PathLike[str] | None, table: str
) -> str:
    if path is not None:
        return os.fspath(path)
    if work_dir is None:
        raise IRValueError(
            f"JSONDatabase: expected path_{table}, or work_dir (the folder of both), got neither"
        )
    return str(Path(work_dir) / f"database_{table}.json")


def _warn(path: str, unreadable: _Unreadable) -> None:
    if unreadable:
        number, reason = unreadable[0]
        lines = f"line {number + 1}" if len(unreadable) == 1 else f"{len(unreadable)} lines"
        first = "" if len(unreadable) == 1 else f"line {number + 1}: "
        warnings.warn(
            f"{path}: {lines} cannot be read and are left out ({first}{reason.splitlines()[0]})",
            DatabaseWarning,
            stacklevel=4,
        )
