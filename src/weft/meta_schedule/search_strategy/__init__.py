"""How a design space is searched."""

from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.search_strategy.base import PySearchStrategy, SearchStrategy
from weft.meta_schedule.search_strategy.evolutionary import EvolutionarySearch
from weft.meta_schedule.search_strategy.replay import ReplayFunc, ReplayTrace

__all__ = [
    "EvolutionarySearch",
    "MeasureCandidate",
    "PySearchStrategy",
    "ReplayFunc",
    "ReplayTrace",
    "SearchStrategy",
]
create = SearchStrategy.create
