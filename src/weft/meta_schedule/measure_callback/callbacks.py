"""The callbacks that every search has: keep measurements, learn from them, remove files."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from weft.meta_schedule.builder.base import BuilderResult
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.database.record import TuningRecord
from weft.meta_schedule.runner.base import RunnerResult
from weft.meta_schedule.task_scheduler.base import MeasureCallback, TaskScheduler
from weft.support.errors import IRValueError


class AddToDatabase(MeasureCallback):
    """Commits each trial to the database; those that failed without times."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Commit a batch."""
        database, context = task_scheduler.database_, task_scheduler.tasks_[task_id].ctx
        if database is None or context.mod is None:
            return
        workload = database.commit_workload(context.mod)
        for candidate, result in zip(measure_candidates, runner_results, strict=True):
            trace = candidate.sch.trace
            if trace is not None:
                database.commit_tuning_record(
                    TuningRecord(
                        trace, workload, result.run_secs, context.target, candidate.args_info
                    )
                )


class UpdateCostModel(MeasureCallback):
    """Lets the cost model learn from each batch."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Teach the model a batch."""
        model = task_scheduler.cost_model_
        if model is not None:
            context = task_scheduler.tasks_[task_id].ctx
            model.update(context, measure_candidates, runner_results)


class RemoveBuildArtifact(MeasureCallback):
    """Removes the folder of each program that was built, once it is measured."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Remove the files of a batch."""
        for result in builder_results:
            if result.artifact_path is not None:
                remove_artifact(Path(result.artifact_path))


def remove_artifact(path: Path) -> None:
    """Remove a file that a builder wrote, and its folder if nothing else is in it."""
    with contextlib.suppress(FileNotFoundError, OSError):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.parent.rmdir()


_DEFAULT: Final[tuple[Callable[[], MeasureCallback], ...]] = (
    AddToDatabase, UpdateCostModel, RemoveBuildArtifact,
)  # fmt: skip


def create(kind: str = "default") -> list[MeasureCallback]:
    """The callbacks of that name: "default" are all of them."""
    if kind != "default":
        raise IRValueError(f'measure callbacks: expected a list of them or "default", got {kind!r}')
    return [callback() for callback in _DEFAULT]
