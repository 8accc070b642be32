"""Random search: each candidate repeats a schedule of the design space with other decisions."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence

from weft.ir.module import IRModule
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.runner.base import RunnerResult
from weft.meta_schedule.search_strategy.base import SearchStrategy
from weft.meta_schedule.search_strategy.trials import (
    Trials,
    candidates_of,
    postprocessed,
    replayed,
)
from weft.support.errors import IRValueError
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace


class _Replay(SearchStrategy):
    """What both strategies share: batches of schedules that are sampled one by one."""

    def __init__(self, max_fail_count: int) -> None:
        if max_fail_count < 1:
            raise IRValueError(f"max_fail_count: expected at least 1, got {max_fail_count}")
        self.max_fail_count = max_fail_count
        self._context: Context | None = None
        self._trials: Trials | None = None

    def _initialize_with_tune_context(self, context: Context) -> None:
        self._context, self._trials = context, None

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule],
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search; ``database`` and ``cost_model`` are not asked."""
        del database, cost_model
        context = self._task()
        if self._trials is not None:
            raise IRValueError("pre_tuning: the search has begun already; post_tuning ends it")
        self._trials = Trials(max_trials, num_trials_per_iter)
        self._random = random.Random(context.fork_seed())
        self._begin(design_spaces)

    def post_tuning(self) -> None:
        """End the search."""
        if self._trials is None:
            raise IRValueError("post_tuning: no search has begun")
        self._trials = None

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next batch; None after the last, or if no schedule can be sampled any more."""
        if self._trials is None:
            raise IRValueError("generate_measure_candidates: pre_tuning was not called")
        batch: list[Schedule] = []
        failures = 0
        while len(batch) < self._trials.of_next_batch and failures < self.max_fail_count:
            sch = self._sample(self._random.randrange(1, 2**31 - 1))
            failures = failures + 1 if sch is None else 0
            batch += [] if sch is None else [sch]
        return candidates_of(batch) or None

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """Count the trials."""
        del measure_candidates
        if self._trials is not None:
            self._trials.done += len(results)

    def _task(self) -> Context:
        if self._context is None or self._context.mod is None:
            raise IRValueError(f"{type(self).__name__}: it works for a TuneContext with a mod")
        return self._context

    def _module(self) -> IRModule:
        mod = self._task().mod
        assert mod is not None
        return mod

    @abstractmethod
    def _begin(self, design_spaces: Sequence[Schedule]) -> None:
        """Learn the design space."""

    @abstractmethod
    def _sample(self, seed: int) -> Schedule | None:
        """One schedule, by random numbers that start at ``seed``."""


class ReplayTrace(_Replay):
    """Repeats the traces of the design space, each decision sampled anew.

    Args:
        max_fail_count: how many samples in a row may fail before the search ends.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        super().__init__(max_fail_count)
        self._traces: list[Trace] = []

    def _begin(self, design_spaces: Sequence[Schedule]) -> None:
        traces = [sch.trace for sch in design_spaces]
        self._traces = [trace.simplified(True) for trace in traces if trace is not None]
        if not self._traces:
            raise IRValueError("ReplayTrace: the design space has no schedule with a trace")

    def _sample(self, seed: int) -> Schedule | None:
        trace = Trace(self._random.choice(self._traces).insts)
        return replayed(self._module(), trace, self._task().postprocs, seed)


class ReplayFunc(_Replay):
    """Runs the space generator again for each candidate: its code may branch on random numbers."""

    def __init__(self, max_fail_count: int = 100) -> None:
        super().__init__(max_fail_count)

    def _begin(self, design_spaces: Sequence[Schedule]) -> None:
        del design_spaces

    def _sample(self, seed: int) -> Schedule | None:
        spaces = self._task().generate_design_space()
        space = self._random.choice(spaces) if spaces else None
        if space is None or space.trace is None:
            return None
        del seed  # what the generator sampled stands
        return postprocessed(space, self._task().postprocs)
