"""What a runner is: it measures built programs, one after the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from weft.meta_schedule.arg_info import ArgInfo
from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Part
from weft.support.errors import UnsupportedError

_KINDS: Final = {
    "local": "weft.meta_schedule.runner.local_runner:LocalRunner",
    "ray": "weft.meta_schedule.runner.ray_runner:RayRunner",
    "rpc": "weft.meta_schedule.runner.rpc_runner:RPCRunner",
}


class RunnerInput(NamedTuple):
    """A program to measure: the file that a builder wrote, the device, and its arguments."""

    artifact_path: str
    device_type: str
    args_info: Sequence[ArgInfo]


class RunnerResult(NamedTuple):
    """Seconds of each run, or why there are none."""

    run_secs: Sequence[float] | None
    error_msg: str | None


class RunnerFuture(Part):
    """A measurement that may still be running.

    Args:
        f_done: says whether the result is there.
        f_result: waits for the result.

    A class of the user derives from it (``PyRunnerFuture``) and overrides both methods instead.
    """

    def __init__(
        self,
        f_done: Callable[[], bool] | None = None,
        f_result: Callable[[], RunnerResult] | None = None,
    ) -> None:
        self._done, self._result = f_done, f_result

    def done(self) -> bool:
        """Whether the result is there."""
        if self._done is None:
            raise UnsupportedError("RunnerFuture.done: give f_done, or override it in a class")
        return self._done()

    def result(self) -> RunnerResult:
        """Wait for the result."""
        if self._result is None:
            raise UnsupportedError("RunnerFuture.result: give f_result, or override it in a class")
        return self._result()


class Runner(Part):
    """Measures programs. A class of the user derives from it (``PyRunner``) and overrides run."""

    @abstractmethod
    def run(self, runner_inputs: Sequence[RunnerInput]) -> Sequence[RunnerFuture]:
        """Begin to measure each program."""
        raise UnsupportedError(f"{type(self).__name__}.run: override it in a class of your own")

    @staticmethod
    def create(kind: str = "local", *args: Any, **kwargs: Any) -> Runner:
        """A runner of a kind: "local", or "ray" for the machines of a cluster."""
        if kind in ("local", "ray"):
            kwargs.pop("max_workers", None)
        return class_of_kind(Runner, _KINDS, kind)(*args, **kwargs)


create = Runner.create
PyRunner: TypeAlias = Runner
PyRunnerFuture: TypeAlias = RunnerFuture
"""TVM's names of the classes that users derive from."""
