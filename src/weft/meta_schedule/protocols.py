"""What the parts of tuning expect of each other's objects, so that none imports the whole."""

from __future__ import annotations

from logging import Logger
from typing import Protocol

from weft.ir.module import IRModule
from weft.target import Target


class Context(Protocol):
    """What a rule, a strategy or a model may ask of the task that it works for (TuneContext)."""

    mod: IRModule | None
    target: Target | None
    task_name: str
    num_threads: int
    logger: Logger

    def fork_seed(self) -> int:
        """A seed for random decisions, another one at each call."""
        ...


class Part:
    """A part of tuning that is told its task before it works, and can be copied for another.

    Classes of users derive from the parts (``PyScheduleRule`` and its like are the same classes
    under TVM's names) and override methods.
    """

    def _initialize_with_tune_context(self, context: Context) -> None:
        """Learn the task: called once, before anything else."""

    def __str__(self) -> str:
        return f"meta_schedule.{type(self).__name__}({hex(id(self))})"

    def clone(self) -> Part:
        """A copy that knows no task: the part itself, if it keeps nothing of one."""
        return self
