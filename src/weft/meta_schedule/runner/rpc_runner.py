"""TVM's runner for devices behind its RPC tracker, which weft does not have."""

from __future__ import annotations

from collections.abc import Sequence

from weft.meta_schedule.runner.base import Runner, RunnerFuture, RunnerInput
from weft.support.errors import UnsupportedError


class RPCRunner(Runner):
    """Raises UnsupportedError, which says what to use instead."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        del args, kwargs
        raise UnsupportedError(
            "RPCRunner: weft has no RPC servers; measure on this machine with LocalRunner, and on "
            "those of a Ray cluster with RayRunner"
        )

    def run(self, runner_inputs: Sequence[RunnerInput]) -> Sequence[RunnerFuture]:
        raise UnsupportedError("RPCRunner: weft has no RPC servers")
