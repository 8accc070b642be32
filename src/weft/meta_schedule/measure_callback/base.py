"""What a measure callback is: it hears of each batch that was measured."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from weft.meta_schedule.builder.base import BuilderResult
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.protocols import Part
from weft.meta_schedule.runner.base import RunnerResult
from weft.meta_schedule.task_scheduler.base import TaskScheduler


class MeasureCallback(Part):
    """Does something with measurements: keeps them, learns from them, removes files."""

    @abstractmethod
    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Hear of a batch of one task."""


PyMeasureCallback = MeasureCallback
"""TVM's name of the class that users derive from."""
