"""Every task in turn."""

from __future__ import annotations

from weft.meta_schedule.task_scheduler.base import TaskScheduler


class RoundRobin(TaskScheduler):
    """Gives each task that is not finished a batch, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._last = -1

    def next_task_id(self) -> int:
        """The next task that is not finished, by number; its last batch is joined first."""
        count = len(self.tasks_)
        for step in range(1, count + 1):
            task_id = (self._last + step) % count
            task = self.tasks_[task_id]
            if task.is_terminated:
                continue
            if task.runner_futures is not None:
                self.join_running_task(task_id)
            self._last = task_id
            return task_id
        return -1
