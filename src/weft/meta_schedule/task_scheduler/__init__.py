"""How trials are shared between tasks."""

from weft.meta_schedule.task_scheduler.base import TaskRecord, TaskScheduler
from weft.meta_schedule.task_scheduler.gradient_based import GradientBased
from weft.meta_schedule.task_scheduler.round_robin import RoundRobin

PyTaskScheduler = TaskScheduler
create = TaskScheduler.create
__all__ = ["GradientBased", "PyTaskScheduler", "RoundRobin", "TaskRecord", "TaskScheduler"]
