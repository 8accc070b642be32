"""What a search strategy is: it proposes schedules to measure and learns what they took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Context, Part
from weft.meta_schedule.runner.base import RunnerResult
from weft.meta_schedule.search_strategy.search import Beginning, Search
from weft.meta_schedule.search_strategy.trials import Trials
from weft.support.errors import IRValueError, UnsupportedError
from weft.tir.schedule.schedule import Schedule

_FOLDER: Final = "weft.meta_schedule.search_strategy"
_KINDS: Final = {
    "evolutionary": f"{_FOLDER}.evolutionary:EvolutionarySearch",
    "replay-trace": f"{_FOLDER}.replay:ReplayTrace",
    "replay-func": f"{_FOLDER}.replay:ReplayFunc",
}


class SearchStrategy(Part):
    """Proposes batches of candidates until its trials are used up.

    It has at most one search: ``pre_tuning`` begins it, ``post_tuning`` ends it. A strategy says in
    ``_search_of`` what its searches are; a class of the user (``PySearchStrategy``) overrides the
    four public methods instead.
    """

    _context: Context | None = None
    _search: Search | None = None

    @staticmethod
    def create(kind: str = "evolutionary", *args: object, **kwargs: object) -> SearchStrategy:
        """A strategy by its name: "evolutionary", "replay-trace" or "replay-func"."""
        return class_of_kind(SearchStrategy, _KINDS, kind)(*args, **kwargs)

    def _search_of(self, beginning: Beginning) -> Search:
        """A search of the strategy's kind."""
        del beginning
        raise UnsupportedError(
            f"{type(self).__name__}: override pre_tuning, post_tuning, "
            "generate_measure_candidates and notify_runner_results in a class of your own"
        )

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
        """Begin a search.

        Args:
            max_trials: how many trials it may make.
            num_trials_per_iter: how many of them a batch has.
            design_spaces: the schedules that are varied.
            database: what was measured before; None if nothing is kept.
            cost_model: what scores candidates; None if nothing does.
        """
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


PySearchStrategy = SearchStrategy
"""TVM's name of the class that users derive from."""
