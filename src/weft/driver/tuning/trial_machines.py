"""Trials on the machines of a Ray cluster: on each a process of trials, as on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from weft.codegen.backend import backend_of
from weft.driver import cluster
from weft.driver.cluster.errors import JobLostError, NoMachineError
from weft.driver.tuning.kernels import Kernel
from weft.driver.tuning.trial_process import TrialFailedError, TrialProcess
from weft.support.errors import IRValueError
from weft.target.target import Target

_Answer = TypeVar("_Answer")
_MOST: Final = 1000
"""More machines do not work at once; threads are started only when they are needed."""


class TrialMachines:
    """Makes trials on all machines of a cluster, one at a time on each.

    Only what one machine measured is compared: the default and a form that may win, in turn.

    Args:
        target, num_threads, seconds: as for ``TrialProcess``.
        address, kind: as for ``weft.driver.cluster.Machines``.
    """

    def __init__(
        self,
        target: Target,
        num_threads: int | None,
        seconds: float,
        *,
        address: str,
        kind: str | None,
    ) -> None:
        options = tuple(backend_of(target).options(target))
        self._threads = ThreadPoolExecutor(_MOST, thread_name_prefix="trials")
        self._machines = cluster.Machines(
            partial(process_there, target, num_threads, seconds, options),
            address=address,
            kind=kind,
            seconds=3 * seconds,  # a trial may have to measure the default first
        )
        try:
            self._machines.wait()
        except NoMachineError:
            self.close()
            raise

    @property
    def capacity(self) -> int:
        """How many trials are made at once."""
        now: int = self._machines.capacity
        return max(1, now)

    def start(self, function: Callable[..., _Answer], *arguments: object) -> Future[_Answer]:
        """Call a function that waits for trials, in a thread."""
        return self._threads.submit(function, *arguments)

    def trial(self, kernel: Kernel, taken: Mapping[str, str]) -> tuple[float, dict[str, list[str]]]:
        """As ``TrialProcess.trial``, on some machine. Raises NoMachineError if there is none."""
        microseconds, offered = self._ask("trial", kernel, dict(taken))
        return microseconds, offered

    def compare(self, kernel: Kernel, taken: Mapping[str, str], rounds: int) -> tuple[float, float]:
        """As ``TrialProcess.compare``, on some machine. Raises NoMachineError if there is none."""
        default, tuned = self._ask("compare", kernel, dict(taken), rounds)
        return default, tuned

    def describe(self, kernel: Kernel, taken: Mapping[str, str]) -> list[list[float]]:
        """As ``TrialProcess.describe``, on some machine. Raises NoMachineError if there is none."""
        features: list[list[float]] = self._ask("describe", kernel, dict(taken))
        return features

    def _ask(self, method: str, *arguments: object) -> Any:
        try:
            return self._machines.submit(method, *arguments).result()
        except JobLostError as error:
            raise TrialFailedError(str(error)) from error

    def close(self) -> None:
        """Let the machines go."""
        self._machines.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def process_there(
    target: Target, num_threads: int | None, seconds: float, options: tuple[object, ...]
) -> TrialProcess:
    """Called on a machine: its process of trials.

    Raises IRValueError if the target means another processor there (``options`` are those of the
    machine that tunes).
    """
    own = tuple(backend_of(target).options(target))
    if own != options:
        raise IRValueError(
            f"the target {target} means {options[1]} for the machine that tunes, {own[1]} for one "
            "of the cluster; name the processor (-mcpu=...) in the target"
        )
    return TrialProcess(target, num_threads, seconds)
