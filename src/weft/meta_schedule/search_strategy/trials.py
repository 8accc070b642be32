"""The state that all strategies have: how many trials are left, and schedules from traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.module import IRModule
from weft.meta_schedule.arg_info import ArgInfo
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.protocols import Finishes
from weft.support.errors import IRValueError, ScheduleError
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace


@dataclass
class Trials:
    """How many trials a search may make, how many it made, and how many a batch has."""

    most: int
    of_batch: int
    done: int = 0

    def __post_init__(self) -> None:
        if self.most < 1 or self.of_batch < 1:
            raise IRValueError(
                "pre_tuning: expected at least one trial and one trial in a batch, got "
                f"max_trials={self.most}, num_trials_per_iter={self.of_batch}"
            )

    @property
    def of_next_batch(self) -> int:
        """The trials of the next batch; 0 after the last."""
        return max(0, min(self.of_batch, self.most - self.done))


def has_choices(trace: Trace) -> bool:
    """Whether a trace samples something; one trial tells all of one that does not."""
    return any(inst.kind.name.startswith("Sample") for inst in trace.insts)


def replayed(
    mod: IRModule, trace: Trace, postprocs: Sequence[Finishes], seed: int
) -> Schedule | None:
    """The schedule of a trace, postprocessed; None where a primitive or postprocessor refuses.

    What the trace does not decide is sampled anew, starting from ``seed``.
    """
    sch = Schedule(mod, seed=seed, error_render_level="none")
    try:
        trace.apply_to_schedule(sch, remove_postproc=True)
    except ScheduleError:
        return None
    return postprocessed(sch, postprocs)


def postprocessed(sch: Schedule, postprocs: Sequence[Finishes]) -> Schedule | None:
    """The schedule after postprocessing; None if a postprocessor refuses it."""
    sch.enter_postproc()
    try:
        return sch if all(postproc.apply(sch) for postproc in postprocs) else None
    except ScheduleError:
        return None


def candidates_of(schedules: Sequence[Schedule]) -> list[MeasureCandidate]:
    """The schedules with the arguments of their functions."""
    return [MeasureCandidate(sch, ArgInfo.from_entry_func(sch.mod)) for sch in schedules]
