"""The runner that measures on the machines of a Ray cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from weft.driver import cluster
from weft.meta_schedule.arg_info import ArgInfo
from weft.meta_schedule.runner.base import Runner, RunnerFuture, RunnerInput, RunnerResult
from weft.meta_schedule.runner.local_runner import LocalRunner


class RayRunner(Runner):
    """Has each machine of a cluster measure by a runner of its own, one program at a time.

    On a machine that also compiles (``RayBuilder``), the builders stand still meanwhile. A machine
    that is lost loses what it was measuring, which another measures; what takes two machines with
    it has failed.

    Args:
        make: called on each machine: gives the runner there.
        address, kind, timeout_sec: as ``address``, ``kind`` and ``seconds`` of
            ``weft.driver.cluster.Machines``.

    Needs the package ray (``pip install 'weft-compiler[ray]'``).
    """

    def __init__(
        self,
        make: Callable[[], Runner] = LocalRunner,
        *,
        address: str = "auto",
        kind: str | None = None,
        timeout_sec: float = 600.0,
    ) -> None:
        self._machines = cluster.Machines(
            partial(RunnerThere, make), address=address, kind=kind, seconds=timeout_sec
        )

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        return [self._begin(*item) for item in runner_inputs]

    def _begin(
        self, artifact_path: str, device_type: str, args_info: Sequence[ArgInfo]
    ) -> RunnerFuture:
        content = Path(artifact_path).read_bytes()
        future = self._machines.submit("run", content, str(device_type), list(args_info))
        return RunnerFuture(future.done, partial(_result, future))

    def close(self) -> None:
        """Let the machines go; they go by themselves with the runner, too."""
        self._machines.close()


class RunnerThere:
    """On a machine: its runner, which is given files.

    Args:
        make: gives the runner.
    """

    def __init__(self, make: Callable[[], Runner]) -> None:
        self._runner = make()

    def run(self, content: bytes, device_type: str, args_info: list[ArgInfo]) -> RunnerResult:
        """The seconds of a program."""
        with tempfile.NamedTemporaryFile(prefix="trial-") as file:
            file.write(content)
            file.flush()
            [future] = self._runner.run([RunnerInput(file.name, device_type, args_info)])
            return future.result()


def _result(future: Future[RunnerResult]) -> RunnerResult:
    try:
        return future.result()
    except Exception as problem:  # noqa: BLE001 - whatever went wrong there is the result
        return RunnerResult(None, f"RayRunner: {type(problem).__name__}: {problem}")
