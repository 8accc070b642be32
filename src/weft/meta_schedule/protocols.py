"""What the parts of tuning expect of each other's objects, so that none imports the whole."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from logging import Logger
from typing import Protocol, Self

from weft.ir.module import IRModule
from weft.target import Target
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace


class Finishes(Protocol):
    """What a search asks of a postprocessor."""

    def apply(self, sch: Schedule) -> bool:
        """Change a schedule; False if it must not be built."""
        ...


class Varies(Protocol):
    """What a search asks of a mutator."""

    def apply(self, trace: Trace) -> Trace | None:
        """A similar trace; None if there is none."""
        ...


class Context(Protocol):
    """What a rule, a strategy or a model may ask of the task that it works for (TuneContext)."""

    mod: IRModule | None
    target: Target | None
    task_name: str
    num_threads: int
    logger: Logger

    @property
    def postprocs(self) -> Sequence[Finishes]:
        """What finishes each schedule."""
        ...

    @property
    def mutators(self) -> Sequence[tuple[Varies, float]]:
        """The mutators, each with how often it is used beside the others."""
        ...

    def generate_design_space(self) -> list[Schedule]:
        """The schedules of the design space, made anew."""
        ...

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

    def _outer(self) -> Self:
        """The object itself: in TVM a class of the user reaches its part in C++ by this."""
        return self

    def clone(self) -> Self:
        """A copy that can be given to another task."""
        return copy.copy(self)
