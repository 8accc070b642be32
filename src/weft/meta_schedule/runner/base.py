"""What a runner is: it measures built programs, one after the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from weft.meta_schedule.arg_info import ArgInfo
from weft.meta_schedule.protocols import Part


class RunnerInput(NamedTuple):
    """A program to measure: the file that a builder wrote, the device, and its arguments."""

    artifact_path: str
    device_type: str
    args_info: Sequence[ArgInfo]


class RunnerResult(NamedTuple):
    """Seconds of each run, or why there are none."""

    run_secs: Sequence[float] | None
    error_msg: str | None


class RunnerFuture(Protocol):
    """A measurement that may still be running."""

    def done(self) -> bool:
        """Whether the result is there."""
        ...

    def result(self) -> RunnerResult:
        """Wait for the result."""
        ...


class Runner(Part):
    """Measures programs."""

    @abstractmethod
    def run(self, runner_inputs: Sequence[RunnerInput]) -> Sequence[RunnerFuture]:
        """Begin to measure each program."""


PyRunner = Runner
"""TVM's name of the class that users derive from."""
