"""Evolutionary search (Ansor, OSDI 2020): vary what was fast, let a cost model choose, measure few.

A batch is drafted in three steps. The first population has the fastest schedules of the database
and random ones. In each generation the cost model scores all, the better ones are chosen more
often, and mutators change one decision of each. The best that no batch had, and a few random ones,
are measured.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from weft.ir.structural import structural_digest
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.cost_model.random_model import RandomModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.protocols import Varies
from weft.meta_schedule.search_strategy.base import SearchStrategy
from weft.meta_schedule.search_strategy.search import Beginning, Search
from weft.meta_schedule.search_strategy.trials import candidates_of, has_choices, replayed
from weft.support.errors import IRValueError
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace

_EMPTY_BATCHES: Final = 5
"""So many batches without a new schedule end the search: the space is used up."""


class EvolutionarySearch(SearchStrategy):
    """Searches with a database and a cost model.

    Args:
        population_size: schedules of a generation. TVM has 512; each costs some milliseconds here.
        init_measured_ratio: the share of the first generation that the database gives.
        init_min_unmeasured: the fewest random schedules to begin with; if so many cannot be
            sampled, the search ends.
        max_fail_count: how many rounds of sampling may give nothing.
        genetic_num_iters: generations of a batch.
        genetic_mutate_prob: how often a schedule is changed before it enters a generation.
        genetic_max_fail_count: how many mutations of one schedule may fail.
        eps_greedy: the share of a batch that is random.
    """

    def __init__(
        self,
        *,
        population_size: int = 64,
        init_measured_ratio: float = 0.2,
        init_min_unmeasured: int = 50,
        max_fail_count: int = 5,
        genetic_num_iters: int = 4,
        genetic_mutate_prob: float = 0.85,
        genetic_max_fail_count: int = 10,
        eps_greedy: float = 0.05,
    ) -> None:
        shares = (init_measured_ratio, genetic_mutate_prob, eps_greedy)
        if population_size < 1 or not all(0 <= share <= 1 for share in shares):
            raise IRValueError(
                "EvolutionarySearch: expected a population of at least 1 and probabilities from 0 "
                f"to 1, got population_size={population_size}, init_measured_ratio="
                f"{init_measured_ratio}, genetic_mutate_prob={genetic_mutate_prob}, "
                f"eps_greedy={eps_greedy}"
            )
        self.population_size = population_size
        self.init_measured_ratio = init_measured_ratio
        self.init_min_unmeasured = init_min_unmeasured
        self.max_fail_count = max_fail_count
        self.genetic_num_iters = genetic_num_iters
        self.genetic_mutate_prob = genetic_mutate_prob
        self.genetic_max_fail_count = genetic_max_fail_count
        self.eps_greedy = eps_greedy

    def _search_of(self, beginning: Beginning) -> Search:
        return _Evolution(self, beginning)


class _Evolution(Search):
    """Without a database and a cost model it keeps its own, and guesses."""

    def __init__(self, options: EvolutionarySearch, beginning: Beginning) -> None:
        self.options, self.context = options, beginning.context
        self.trials, self.mod = beginning.trials, beginning.mod
        self.traces = beginning.traces("EvolutionarySearch")
        given, model = beginning.database, beginning.cost_model
        self.database: Database = Database.create("memory") if given is None else given
        self.cost_model: CostModel = RandomModel() if model is None else model
        self.workload = self.database.commit_workload(self.mod)
        self.measured: set[bytes] = set()
        """Keys of the structure of what was measured."""
        self.random = random.Random(self.context.fork_seed())
        self.empty_batches = 0

    def batch(self) -> list[MeasureCandidate] | None:
        """Draft the next batch."""
        count = self.trials.of_next_batch
        if not count:
            return None
        known = self._from_database(
            int(self.options.population_size * self.options.init_measured_ratio)
        )
        sampled = self._sampled(self.options.population_size - len(known))
        if len(sampled) < self.options.init_min_unmeasured:
            self.context.logger.warning(
                "%s: no schedule of the design space could be sampled", self.context.task_name
            )
            return None
        certain = [] if self.measured else self._without_choices()
        best = [*certain, *self._evolved([*known, *sampled], count)]
        picked = self._picked(best, sampled, count)
        self.empty_batches = 0 if picked else self.empty_batches + 1
        return None if self.empty_batches >= _EMPTY_BATCHES else candidates_of(picked)

    def _replayed(self, trace: Trace) -> Schedule | None:
        return replayed(self.mod, trace, self.context.postprocs, self._seed())

    def _without_choices(self) -> list[Schedule]:
        """The schedules of the space that have no decisions, which are measured first."""
        schedules = [self._replayed(trace) for trace in self.traces if not has_choices(trace)]
        return [sch for sch in schedules if sch is not None]

    def _seed(self) -> int:
        return self.random.randrange(1, 2**31 - 1)

    def _from_database(self, count: int) -> list[Schedule]:
        """The fastest schedules so far."""
        records = self.database.get_top_k(self.workload, count)
        schedules = [self._replayed(record.trace) for record in records]
        return [sch for sch in schedules if sch is not None]

    def _sampled(self, count: int) -> list[Schedule]:
        """Random schedules of the design space."""
        schedules: list[Schedule] = []
        failures = 0
        while len(schedules) < self.options.init_min_unmeasured:
            traces = [Trace(self.random.choice(self.traces).insts) for _ in range(count)]
            sampled = [sch for trace in traces if (sch := self._replayed(trace)) is not None]
            schedules += sampled
            failures += not sampled
            if failures >= self.options.max_fail_count:
                break
        return schedules

    def _evolved(self, population: list[Schedule], count: int) -> list[Schedule]:
        """The ``count`` best schedules of all generations that were not measured."""
        seen = set(self.measured)
        best: list[tuple[float, Schedule]] = []
        for generation in range(self.options.genetic_num_iters + 1):
            scores = self._scores(population)
            for sch, score in zip(population, scores, strict=True):
                if _is_new(sch, seen):
                    best.append((score, sch))
            best = sorted(best, key=lambda item: item[0], reverse=True)[:count]
            if generation < self.options.genetic_num_iters:
                population = self._next_generation(population, scores)
        return [sch for _, sch in best]

    def _scores(self, population: Sequence[Schedule]) -> list[float]:
        predicted = self.cost_model.predict(self.context, candidates_of(population))
        return [max(0.0, float(score)) for score in predicted]

    def _next_generation(
        self, population: Sequence[Schedule], scores: Sequence[float]
    ) -> list[Schedule]:
        """As many schedules, the better ones chosen more often, most of them changed."""
        weights = scores if any(scores) else [1.0] * len(population)
        chosen = self.random.choices(population, weights, k=self.options.population_size)
        return [self._mutated(sch) for sch in chosen]

    def _mutated(self, sch: Schedule) -> Schedule:
        mutators = self.context.mutators
        if not mutators or self.random.random() >= self.options.genetic_mutate_prob:
            return sch
        for _ in range(self.options.genetic_max_fail_count + 1):
            weights = [weight for _, weight in mutators]
            [(mutator, _)] = self.random.choices(mutators, weights)
            changed = self._changed(sch, mutator)
            if changed is not None:
                return changed
        return sch

    def _changed(self, sch: Schedule, mutator: Varies) -> Schedule | None:
        trace = None if sch.trace is None else mutator.apply(sch.trace)
        return None if trace is None else self._replayed(trace)

    def _picked(
        self, best: Sequence[Schedule], sampled: Sequence[Schedule], count: int
    ) -> list[Schedule]:
        """The best, and a few at random; what was measured before is left out."""
        at_random = int(count * self.options.eps_greedy)
        shuffled = self.random.sample(sampled, len(sampled))
        wanted = [*best[: count - at_random], *shuffled[:at_random], *best[count - at_random :]]
        picked: list[Schedule] = []
        for sch in [*wanted, *shuffled[at_random:]]:
            if len(picked) < count and _is_new(sch, self.measured):
                picked.append(sch)
        return picked


def _is_new(sch: Schedule, seen: set[bytes]) -> bool:
    """Whether no schedule with this program was seen; it is now."""
    key = structural_digest(sch.mod)
    if key in seen:
        return False
    seen.add(key)
    return True
