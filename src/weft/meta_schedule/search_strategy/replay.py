"""Random search: each candidate repeats a schedule of the design space with other decisions."""

from __future__ import annotations

import random
from abc import abstractmethod

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.search_strategy.base import SearchStrategy
from weft.meta_schedule.search_strategy.search import Beginning, Search
from weft.meta_schedule.search_strategy.trials import (
    candidates_of,
    has_choices,
    postprocessed,
    replayed,
)
from weft.support.errors import IRValueError
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace


class _Replay(SearchStrategy):
    """What both strategies share.

    Args:
        max_fail_count: how many samples in a row may fail before the search ends.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        if max_fail_count < 1:
            raise IRValueError(f"max_fail_count: expected at least 1, got {max_fail_count}")
        self.max_fail_count = max_fail_count


class ReplayTrace(_Replay):
    """Repeats the traces of the design space, each decision sampled anew.

    Args:
        max_fail_count: how many samples in a row may fail before the search ends.
    """

    def _search_of(self, beginning: Beginning) -> Search:
        return _TraceSearch(beginning, self.max_fail_count)


class ReplayFunc(_Replay):
    """Runs the space generator again for each candidate: its code may branch on random numbers.

    Args:
        max_fail_count: how many samples in a row may fail before the search ends.
    """

    def _search_of(self, beginning: Beginning) -> Search:
        return _FunctionSearch(beginning, self.max_fail_count)


class _Samples(Search):
    """Batches of schedules that are sampled one by one."""

    def __init__(self, beginning: Beginning, max_fail_count: int) -> None:
        self.trials, self.context, self.mod = beginning.trials, beginning.context, beginning.mod
        self.max_fail_count = max_fail_count
        self.random = random.Random(beginning.context.fork_seed())

    def batch(self) -> list[MeasureCandidate] | None:
        batch: list[Schedule] = []
        failures = 0
        while len(batch) < self.trials.of_next_batch and failures < self.max_fail_count:
            sch = self.sample()
            failures = failures + 1 if sch is None else 0
            batch += [] if sch is None else [sch]
        return candidates_of(batch) or None

    @abstractmethod
    def sample(self) -> Schedule | None:
        """One schedule; None if it is refused."""


class _TraceSearch(_Samples):
    def __init__(self, beginning: Beginning, max_fail_count: int) -> None:
        super().__init__(beginning, max_fail_count)
        self.traces = beginning.traces("ReplayTrace")
        self.varied = [trace for trace in self.traces if has_choices(trace)]
        self.certain = [trace for trace in self.traces if not has_choices(trace)]

    def sample(self) -> Schedule | None:
        seed = self.random.randrange(1, 2**31 - 1)
        is_first = bool(self.certain and self.varied)
        trace = self.certain.pop(0) if is_first else self.random.choice(self.varied or self.traces)
        return replayed(self.mod, Trace(trace.insts), self.context.postprocs, seed)


class _FunctionSearch(_Samples):
    def sample(self) -> Schedule | None:
        spaces = self.context.generate_design_space()
        space = self.random.choice(spaces) if spaces else None
        if space is None or space.trace is None:
            return None
        return postprocessed(space, self.context.postprocs)
