"""Workloads and the records of what was measured of them, with their JSON form."""

from __future__ import annotations

import base64
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.ir.json_text import load_json, save_json
from weft.ir.module import IRModule
from weft.ir.structural import structural_hash
from weft.meta_schedule.arg_info import ArgInfo
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.seconds import as_seconds
from weft.support.errors import IRTypeError, IRValueError, TVMError
from weft.support.lazy_property import lazy_property
from weft.target import Target
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import POSTPROC, Trace

FAILED: Final = 1e10
"""Seconds that stand for a time that was not measured."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A module that is tuned, known by its structure."""

    mod: IRModule

    @lazy_property
    def shash(self) -> int:
        """The structural hash of the module, 64 bits, the same in every process."""
        return structural_hash(self.mod)

    def as_json(self) -> list[object]:
        """``[hash, base64 of the module's JSON]``."""
        text = base64.b64encode(save_json(self.mod).encode()).decode()
        return [str(self.shash), text]

    @staticmethod
    def from_json(json_obj: object) -> Workload:
        """The workload that ``as_json`` wrote. Raises IRValueError for anything else."""
        match json_obj:
            case [str(_), str(text)]:
                mod = _module(text)
                if isinstance(mod, IRModule):
                    return Workload(mod)
        raise IRValueError(
            "Workload.from_json: expected [hash, base64 text of a module], got "
            f"{str(json_obj)[:100]!r}"
        )


def _module(text: str) -> object:
    try:
        decoded = base64.b64decode(text, validate=True).decode()
    except ValueError as error:
        raise IRValueError(
            f"Workload.from_json: expected a module in base64, got {text[:60]!r}"
        ) from error
    try:
        return load_json(decoded)
    except TVMError as error:
        raise IRValueError(
            "Workload.from_json: the module is not in weft's JSON (TVM writes its own: parse the "
            f"TVMScript of the module and commit it instead): {error}"
        ) from error


@dataclass(frozen=True, eq=False)
class TuningRecord:
    """One measured schedule of a workload: seconds of each run, or None where it failed."""

    trace: Trace
    workload: Workload
    run_secs: Sequence[float] | None = None
    target: Target | None = None
    args_info: Sequence[ArgInfo] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.trace, Trace) or not isinstance(self.workload, Workload):
            raise IRTypeError(
                "TuningRecord: expected a Trace and a Workload, got "
                f"{type(self.trace).__name__} and {type(self.workload).__name__}"
            )
        object.__setattr__(self, "run_secs", as_seconds(self.run_secs))

    @property
    def mean_secs(self) -> float:
        """The mean of the runs; ``FAILED`` if there are none."""
        return statistics.fmean(self.run_secs) if self.run_secs else FAILED

    def is_valid(self) -> bool:
        """Whether it has a schedule that was measured."""
        insts = self.trace.insts
        has_calls = bool(insts) and insts[0].kind.name != POSTPROC
        return has_calls and any(secs != FAILED for secs in self.run_secs or ())

    def with_workload(self, workload: Workload) -> TuningRecord:
        """The record for the same workload in another database."""
        return replace(self, workload=workload)

    def replay(self) -> Schedule:
        """A schedule of the workload with the trace applied. Raises TVMError if it does not fit."""
        sch = Schedule(self.workload.mod)
        self.trace.apply_to_schedule(sch, remove_postproc=False)
        return sch

    def as_measure_candidate(self) -> MeasureCandidate:
        """The schedule, to be measured again."""
        sch = self.replay()
        return MeasureCandidate(sch, ArgInfo.from_entry_func(sch.mod, remove_preproc=True))

    def as_json(self) -> list[object]:
        """``[trace, seconds, target, arguments]``; None for what there is not."""
        return [
            self.trace.as_json(),
            None if self.run_secs is None else [float(secs) for secs in self.run_secs],
            None if self.target is None else self.target.export(),
            None if self.args_info is None else [info.as_json() for info in self.args_info],
        ]

    @staticmethod
    def from_json(json_obj: object, workload: Workload) -> TuningRecord:
        """The record that ``as_json`` wrote. Raises IRValueError for anything else."""
        match json_obj:
            case [trace, [*_] | None as secs, dict() | None as target, [*_] | None as args]:
                pass
            case _:
                raise IRValueError(
                    "TuningRecord.from_json: expected [trace, seconds, target, arguments], got "
                    f"{str(json_obj)[:100]!r}"
                )
        times = [sec for sec in secs or () if isinstance(sec, (int, float))]
        if len(times) != len(secs or ()):
            raise IRValueError(f"TuningRecord.from_json: expected seconds, got {secs!r:.100}")
        return TuningRecord(
            Trace.from_json(trace),
            workload,
            None if secs is None else times,
            None if target is None else Target(target),
            None if args is None else [ArgInfo.from_json(info) for info in args],
        )
