"""One search of one task, and the strategies that begin and end such searches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.module import IRModule
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.runner.base import RunnerResult
from weft.meta_schedule.search_strategy.base import SearchStrategy
from weft.meta_schedule.search_strategy.trials import Trials
from weft.support.errors import IRValueError
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace


@dataclass(frozen=True)
class Beginning:
    """What a search begins with.

    Attributes:
        context: the task; ``mod`` is its module.
        trials: how many trials it may make.
        design_spaces: the schedules that are varied.
        database: what was measured before; None if nothing is kept.
        cost_model: what scores candidates; None if nothing does.
    """

    context: Context
    mod: IRModule
    trials: Trials
    design_spaces: Sequence[Schedule]
    database: Database | None
    cost_model: CostModel | None

    def traces(self, strategy: str) -> list[Trace]:
        """The traces of the design space without their decisions; there is at least one."""
        traces = [sch.trace.simplified(True) for sch in self.design_spaces if sch.trace is not None]
        if not traces:
            raise IRValueError(f"{strategy}: the design space has no schedule with a trace")
        return traces


class Search(ABC):
    """A search that goes on.

    Attributes:
        trials: how many trials it may make, and how many it made.
    """

    trials: Trials

    @abstractmethod
    def batch(self) -> list[MeasureCandidate] | None:
        """The next candidates; None if there is nothing left to try."""


class SearchingStrategy(SearchStrategy):
    """A strategy that has at most one search: ``pre_tuning`` begins it, ``post_tuning`` ends it."""

    def __init__(self) -> None:
        self._context: Context | None = None
        self._search: Search | None = None

    @abstractmethod
    def _search_of(self, beginning: Beginning) -> Search:
        """A search of the strategy's kind."""

    def _initialize_with_tune_context(self, context: Context) -> None:
        self._context, self._search = context, None

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule],
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search."""
        context = self._context
        if context is None or context.mod is None:
            raise IRValueError(f"{type(self).__name__}: it works for a TuneContext with a mod")
        if self._search is not None:
            raise IRValueError("pre_tuning: the search has begun already; post_tuning ends it")
        trials = Trials(max_trials, num_trials_per_iter)
        self._search = self._search_of(
            Beginning(context, context.mod, trials, design_spaces, database, cost_model)
        )

    def post_tuning(self) -> None:
        """End the search."""
        if self._search is None:
            raise IRValueError("post_tuning: no search has begun")
        self._search = None

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next batch; None after the last trial, or if nothing new can be drafted."""
        if self._search is None:
            raise IRValueError("generate_measure_candidates: pre_tuning was not called")
        return self._search.batch()

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """Count the trials; cost models and databases learn from callbacks."""
        del measure_candidates
        if self._search is not None:
            self._search.trials.done += len(results)
