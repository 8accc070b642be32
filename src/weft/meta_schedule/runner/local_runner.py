"""The runner that measures on this machine, in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final

from weft.meta_schedule.arg_info import ArgInfo
from weft.meta_schedule.processes.named import MEMORY, Given, failure_text
from weft.meta_schedule.processes.pool import WorkerPool
from weft.meta_schedule.processes.process import Outcome
from weft.meta_schedule.processes.worker import Limits
from weft.meta_schedule.runner.base import Runner, RunnerFuture, RunnerInput, RunnerResult
from weft.meta_schedule.runner.config import EvaluatorConfig
from weft.meta_schedule.runner.measurement import prepare
from weft.meta_schedule.seconds import as_seconds
from weft.runtime.registry import register_func
from weft.support.errors import IRValueError

_NICE: Final = 0


class LocalRunnerFuture(RunnerFuture):
    """A measurement whose end is known: its seconds, or why there are none."""

    def __init__(
        self, res: Sequence[float] | None = None, error_message: str | None = None
    ) -> None:
        if (res is None) == (error_message is None):
            raise IRValueError(
                "LocalRunnerFuture: expected either seconds or an error message, got "
                f"{'neither' if res is None else 'both'}"
            )
        result = RunnerResult(as_seconds(res), error_message)
        super().__init__(lambda: True, lambda: result)


class LocalRunner(Runner):
    """Measures in one worker process, one program after the other.

    While a program is measured, the builders of this process stand still. An exception, a crash or
    a hang is the result of the program that caused it.

    Args:
        timeout_sec: seconds after which a measurement is broken off.
        evaluator_config: how often a program is run.
        cooldown_sec: seconds to wait after each measurement.
        alloc_repeat: for how many lists of arguments it is measured.
        f_alloc_argument: ``(device, args_info, alloc_repeat) -> lists of arguments``, or the name
            of a registered function; ``args_info`` is their JSON form.
        f_run_evaluator: ``(module, device, evaluator_config, lists of arguments) -> seconds``.
        f_cleanup: ``() -> None``, called after each measurement.
        initializer: called in the worker process first, to register functions there.
        memory_bytes: what the worker may take; half of the machine's memory by default.
    """

    def __init__(
        self,
        timeout_sec: float = 30,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_alloc_argument: Given = None,
        f_run_evaluator: Given = None,
        f_cleanup: Given = None,
        initializer: Callable[[], None] | None = None,
        *,
        memory_bytes: int = MEMORY,
    ) -> None:
        self.timeout_sec = timeout_sec
        self.evaluator_config = EvaluatorConfig(*(evaluator_config or ()))
        self.cooldown_sec = cooldown_sec
        self.alloc_repeat = alloc_repeat
        functions = (f_alloc_argument, f_run_evaluator, f_cleanup)
        self.f_alloc_argument, self.f_run_evaluator, self.f_cleanup = functions
        self._pool = WorkerPool(
            partial(prepare, *functions, self.evaluator_config, alloc_repeat, cooldown_sec),
            max_workers=1,
            limits=Limits(timeout_sec, memory_bytes, _NICE),
            initializer=initializer,
            measures=True,
        )
        if (*functions, initializer) != (None, None, None, None):
            self._pool.check()

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        return [self._begin(*runner_input) for runner_input in runner_inputs]

    def _begin(
        self, artifact_path: str, device_type: str, args_info: Sequence[ArgInfo]
    ) -> RunnerFuture:
        arguments = [info.as_json() for info in args_info]
        future = self._pool.submit(str(artifact_path), str(device_type), arguments)
        return RunnerFuture(future.done, partial(_result, future))

    def close(self) -> None:
        """End the worker process; it ends by itself with the runner, too."""
        self._pool.close()


def _result(future: Future[Outcome]) -> RunnerResult:
    outcome = future.result()
    if outcome.kind:
        return RunnerResult(None, failure_text("LocalRunner", outcome))
    return RunnerResult(as_seconds(outcome.value), None)


@register_func("meta_schedule.runner.get_local_runner")
def get_local_runner() -> LocalRunner:
    """A runner with default settings."""
    return LocalRunner()
