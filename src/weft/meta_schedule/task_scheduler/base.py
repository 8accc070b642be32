"""What a task scheduler is: it shares trials between tasks, builds and measures them.

Those that derive from it choose which task is next. While a batch of one task is measured, the next
task's is drafted and built.
"""

from __future__ import annotations

import logging
import statistics
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.meta_schedule.builder.base import Builder, BuilderInput, BuilderResult
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Part
from weft.meta_schedule.runner.base import Runner, RunnerFuture, RunnerInput, RunnerResult
from weft.meta_schedule.tune_context import TuneContext
from weft.support.errors import IRValueError
from weft.tir.analysis.resources import estimate_tir_flops

FAILED_MS: Final = 1e9
"""The time of a trial that failed, in milliseconds."""
_FOLDER: Final = "weft.meta_schedule.task_scheduler"
_KINDS: Final = {
    "gradient": f"{_FOLDER}.gradient_based:GradientBased",
    "round-robin": f"{_FOLDER}.round_robin:RoundRobin",
}
logger = logging.getLogger("weft.meta_schedule")


@dataclass(eq=False)
class TaskRecord:
    """One task while it is tuned: what it took so far, and the batch that is being measured."""

    ctx: TuneContext
    task_weight: float = 1.0
    flop: float = 1.0
    is_terminated: bool = False
    build_error_count: int = 0
    run_error_count: int = 0
    latency_ms: list[float] = field(default_factory=list)
    measure_candidates: list[MeasureCandidate] | None = None
    builder_results: list[BuilderResult] | None = None
    runner_futures: list[RunnerFuture] | None = None

    @property
    def best_ms(self) -> float:
        """The shortest time so far, in milliseconds; ``FAILED_MS`` if there is none."""
        return min(self.latency_ms, default=FAILED_MS)


def finished(error_msg: str) -> RunnerFuture:
    """A measurement that has ended before it began: its program could not be built."""
    return RunnerFuture(lambda: True, lambda: RunnerResult(None, error_msg))


class MeasureCallback(Part):
    """Hears of each batch that was measured: keeps it, learns from it, removes files."""

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


class TaskScheduler(Part):
    """Tunes tasks until their trials are used up."""

    def __init__(self) -> None:
        self.tasks_: list[TaskRecord] = []
        self.measure_callbacks_: list[MeasureCallback] = []
        self.database_: Database | None = None
        self.cost_model_: CostModel | None = None

    @staticmethod
    def create(kind: str = "gradient", *args: object, **kwargs: object) -> TaskScheduler:
        """A scheduler by its name: "gradient" or "round-robin"."""
        return class_of_kind(TaskScheduler, _KINDS, kind)(*args, **kwargs)

    @property
    def remaining_tasks_(self) -> int:
        """How many tasks are not terminated."""
        return len([task for task in self.tasks_ if not task.is_terminated])

    @abstractmethod
    def next_task_id(self) -> int:
        """The task whose batch is drafted next, which must not be running; -1: none."""
        name = type(self).__name__
        raise IRValueError(f"{name}: next_task_id is not defined, which a task scheduler must have")

    def tune(
        self,
        tasks: Sequence[TuneContext],
        task_weights: Sequence[float],
        max_trials_global: int,
        max_trials_per_task: int,
        num_trials_per_iter: int,
        builder: Builder,
        runner: Runner,
        measure_callbacks: Sequence[MeasureCallback] = (),
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Tune tasks.

        Args:
            tasks: the tasks, each with a module, a space generator and a search strategy.
            task_weights: how often the program of each task runs in the whole.
            max_trials_global: no batch begins after so many trials of all tasks.
            max_trials_per_task: the most trials of one task.
            num_trials_per_iter: the trials of one batch.
            builder, runner: what compiles and measures.
            measure_callbacks: what hears of each batch, in this order.
            database, cost_model: what strategies ask.
        """
        if len(tasks) != len(task_weights):
            raise IRValueError(
                f"tune: expected a weight for each of {len(tasks)} tasks, got {len(task_weights)}"
            )
        self.measure_callbacks_ = list(measure_callbacks)
        self.database_, self.cost_model_ = database, cost_model
        self.tasks_ = [
            _begun(task, weight) for task, weight in zip(tasks, task_weights, strict=True)
        ]
        for task in self.tasks_:
            task.ctx.pre_tuning(
                max_trials_per_task, num_trials_per_iter, None, database, cost_model
            )
        trials = 0
        while trials < max_trials_global and (task_id := self.next_task_id()) != -1:
            trials += self._send(task_id, max_trials_per_task, builder, runner)
        for task_id, task in enumerate(self.tasks_):
            if task.runner_futures is not None:
                self.join_running_task(task_id)
            if not task.is_terminated:
                self.terminate_task(task_id)
            task.ctx.post_tuning()

    def _send(self, task_id: int, most: int, builder: Builder, runner: Runner) -> int:
        """Draft a batch of a task, build it and begin to measure it; how many trials it has."""
        task = self.tasks_[task_id]
        left = len(task.latency_ms) < most
        candidates = task.ctx.generate_measure_candidates() if left else None
        if candidates is None:
            self.terminate_task(task_id)
            return 0
        target = task.ctx.target
        if target is None:
            raise IRValueError(f"tune: the context of task {task.ctx.task_name!r} has no target")
        task.measure_candidates = candidates
        task.builder_results = builder.build(
            [BuilderInput(item.sch.mod, target) for item in candidates]
        )
        task.runner_futures = _started(task, runner, target.kind.name)
        return len(candidates)

    def join_running_task(self, task_id: int) -> list[RunnerResult]:
        """Wait for the batch of a task, and tell its strategy and the callbacks."""
        task = self.tasks_[task_id]
        if task.runner_futures is None or task.measure_candidates is None:
            raise IRValueError(f"join_running_task: task {task_id} is not running")
        candidates, built = task.measure_candidates, task.builder_results or []
        results = [future.result() for future in task.runner_futures]
        task.ctx.notify_runner_results(candidates, results)
        for callback in self.measure_callbacks_:
            callback.apply(self, task_id, candidates, built, results)
        for builder_result, result in zip(built, results, strict=True):
            self._count(task, builder_result, result)
        task.measure_candidates = task.builder_results = task.runner_futures = None
        return results

    def _count(self, task: TaskRecord, built: BuilderResult, result: RunnerResult) -> None:
        """Note what one trial took, or why it failed."""
        error = built.error_msg or result.error_msg
        task.build_error_count += built.error_msg is not None
        task.run_error_count += built.error_msg is None and result.error_msg is not None
        task.latency_ms.append(FAILED_MS if result.run_secs is None else run_ms(result.run_secs))
        trial = f"{task.ctx.task_name}, trial {len(task.latency_ms)}"
        if error is not None:
            what = "building" if built.error_msg else "running"
            task.ctx.logger.info("%s: error in %s: %s", trial, what, error)
        else:
            task.ctx.logger.info(
                "%s: %.4f ms, %.2f GFLOP/s; best %.2f GFLOP/s", trial, task.latency_ms[-1],
                _gflops(task.flop, task.latency_ms[-1]), _gflops(task.flop, task.best_ms),
            )  # fmt: skip

    def terminate_task(self, task_id: int) -> None:
        """Mark a task as finished."""
        self.tasks_[task_id].is_terminated = True
        logger.info(
            "task %d has finished; %d left\n%s", task_id, self.remaining_tasks_, self.statistics()
        )

    def touch_task(self, task_id: int) -> None:
        """Join a task if its batch has been measured; do not wait for it."""
        task = self.tasks_[task_id]
        if task.runner_futures is not None and all(item.done() for item in task.runner_futures):
            self.join_running_task(task_id)

    def statistics(self) -> str:
        """A table of the tasks: FLOPs, weight, speed, time, trials."""
        head = f"{'id':>3} {'name':32} {'FLOP':>12} {'weight':>6} {'GFLOP/s':>9} {'us':>12} trials"
        rows = [head]
        for number, task in enumerate(self.tasks_):
            is_measured = task.best_ms < FAILED_MS
            speed = f"{_gflops(task.flop, task.best_ms):9.2f}" if is_measured else f"{'-':>9}"
            time = f"{task.best_ms * 1e3:12.2f}" if is_measured else f"{'-':>12}"
            rows.append(
                f"{number:3} {task.ctx.task_name[:32]:32} {task.flop:12.0f} "
                f"{task.task_weight:6.0f} "
                f"{speed} {time} {len(task.latency_ms)}{' done' if task.is_terminated else ''}"
            )
        return "\n".join(rows)

    def print_tuning_statistics(self) -> None:
        """Log the table of the tasks."""
        logger.info("%s", self.statistics())


def _gflops(flop: float, milliseconds: float) -> float:
    """The speed in GFLOP/s; infinite for a time of zero, which a coarse clock gives."""
    return flop / milliseconds / 1e6 if milliseconds else float("inf")


def run_ms(run_secs: Sequence[float]) -> float:
    """The median of the runs of one trial, in milliseconds."""
    return statistics.median([float(seconds) for seconds in run_secs]) * 1e3


def _begun(context: TuneContext, weight: float) -> TaskRecord:
    if context.mod is None or context.space_generator is None or context.search_strategy is None:
        raise IRValueError(
            f"tune: the context of task {context.task_name!r} needs a mod, a space_generator and a "
            "search_strategy"
        )
    return TaskRecord(context, float(weight), max(1.0, float(estimate_tir_flops(context.mod))))


def _started(task: TaskRecord, runner: Runner, device_type: str) -> list[RunnerFuture]:
    """Begin to measure what was built; what was not is finished already."""
    pairs = list(zip(task.measure_candidates or (), task.builder_results or (), strict=True))
    inputs = [
        RunnerInput(result.artifact_path, device_type, candidate.args_info)
        for candidate, result in pairs
        if result.artifact_path is not None
    ]
    futures = iter(runner.run(inputs))
    return [
        next(futures)
        if result.artifact_path is not None
        else finished(result.error_msg or "not built")
        for _, result in pairs
    ]
