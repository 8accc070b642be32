"""The task that promises most (Ansor, OSDI 2020, section 6)."""

from __future__ import annotations

import random

from weft.meta_schedule.runner.base import RunnerResult
from weft.meta_schedule.task_scheduler.base import FAILED_MS, TaskRecord, TaskScheduler
from weft.support.errors import IRValueError


class GradientBased(TaskScheduler):
    """Gives the next batch to the task whose time, by its weight, is expected to fall most.

    Args:
        alpha: how much what the last batches gained counts, beside what a task could still gain.
        window_size: how many batches back the gain is measured.
        seed: where random numbers start, for tasks that promise the same; -1 takes a start from the
            system.
    """

    def __init__(self, *, alpha: float = 0.2, window_size: int = 3, seed: int = -1) -> None:
        super().__init__()
        if not 0 <= alpha <= 1 or window_size < 1:
            raise IRValueError(
                "GradientBased: expected alpha from 0 to 1 and window_size of at least 1, got "
                f"alpha={alpha}, window_size={window_size}"
            )
        self.alpha, self.window_size = alpha, window_size
        self._random = random.Random(None if seed == -1 else seed)
        self._best: dict[TaskRecord, list[float]] = {}
        """The shortest time of each task after each of its batches."""

    def next_task_id(self) -> int:
        """A task that had no batch yet, or the one that promises most."""
        for task_id, task in enumerate(self.tasks_):
            if not task.is_terminated and task not in self._best and task.runner_futures is None:
                return task_id
        for task_id, task in enumerate(self.tasks_):
            if task.runner_futures is not None and task not in self._best:
                self.join_running_task(task_id)
            self.touch_task(task_id)
        alive = [i for i, task in enumerate(self.tasks_) if not task.is_terminated]
        if not alive:
            return -1
        promises = [self._promise(self.tasks_[task_id]) for task_id in alive]
        largest = [
            i for i, promise in zip(alive, promises, strict=True) if promise == max(promises)
        ]
        task_id = self._random.choice(largest)
        if self.tasks_[task_id].runner_futures is not None:
            self.join_running_task(task_id)
        return task_id

    def _promise(self, task: TaskRecord) -> float:
        """Milliseconds that another batch may gain, by the weight of the task."""
        best = self._best.get(task, [])
        if not best or best[-1] >= FAILED_MS:
            return -FAILED_MS
        back = best[-1 - self.window_size] if len(best) > self.window_size else best[-1]
        gained = (back - best[-1]) / self.window_size
        possible = best[-1] / len(best)
        return (self.alpha * gained + (1 - self.alpha) * possible) * task.task_weight

    def join_running_task(self, task_id: int) -> list[RunnerResult]:
        """Wait for the batch of a task, and note its shortest time."""
        results = super().join_running_task(task_id)
        task = self.tasks_[task_id]
        self._best.setdefault(task, []).append(task.best_ms)
        return results
