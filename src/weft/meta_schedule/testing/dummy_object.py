"""Builders, runners and mutators that do nothing, for tests of what uses them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from weft.meta_schedule.builder.base import Builder, BuilderInput, BuilderResult
from weft.meta_schedule.mutator.base import Mutator
from weft.meta_schedule.runner.base import Runner, RunnerFuture, RunnerInput, RunnerResult
from weft.tir.schedule.trace import Trace


class DummyRunnerFuture(RunnerFuture):
    """A measurement that has ended, with random times."""

    def done(self) -> bool:
        """True."""
        return True

    def result(self) -> RunnerResult:
        """Five to ten random times, in seconds."""
        count = random.randint(5, 10)  # noqa: S311 - numbers for tests
        return RunnerResult([random.uniform(5, 30) for _ in range(count)], None)  # noqa: S311


class DummyBuilder(Builder):
    """Says that everything was built."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """A result for each input, with a file that does not exist."""
        return [BuilderResult("test_path", None) for _ in build_inputs]


class DummyRunner(Runner):
    """Says random times."""

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """A finished measurement for each input."""
        return [DummyRunnerFuture() for _ in runner_inputs]


class DummyMutator(Mutator):
    """Keeps each trace, without its decisions."""

    def apply(self, trace: Trace) -> Trace | None:
        """The trace with nothing decided."""
        return Trace(trace.insts, {})
