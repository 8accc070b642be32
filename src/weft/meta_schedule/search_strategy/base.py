"""What a search strategy is: it proposes schedules to measure and learns what they took."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Part
from weft.meta_schedule.runner.base import RunnerResult
from weft.tir.schedule.schedule import Schedule

_FOLDER: Final = "weft.meta_schedule.search_strategy"
_KINDS: Final = {
    "evolutionary": f"{_FOLDER}.evolutionary:EvolutionarySearch",
    "replay-trace": f"{_FOLDER}.replay:ReplayTrace",
    "replay-func": f"{_FOLDER}.replay:ReplayFunc",
}


class SearchStrategy(Part):
    """Proposes batches of candidates until its trials are used up."""

    @staticmethod
    def create(kind: str = "evolutionary", *args: object, **kwargs: object) -> SearchStrategy:
        """A strategy by its name: "evolutionary", "replay-trace" or "replay-func"."""
        strategy: SearchStrategy = class_of_kind(_KINDS, kind, "SearchStrategy.create")(
            *args, **kwargs
        )
        return strategy

    @abstractmethod
    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule],
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search."""

    @abstractmethod
    def post_tuning(self) -> None:
        """End the search."""

    @abstractmethod
    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next batch; None if there is nothing left to try."""

    @abstractmethod
    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """Learn what the last batch took."""


PySearchStrategy = SearchStrategy
"""TVM's name of the class that users derive from."""
