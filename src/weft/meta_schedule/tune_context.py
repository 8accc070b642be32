"""The context of one task: what is tuned, for what, and the parts that do it."""

from __future__ import annotations

import copy
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from weft.ir.module import IRModule
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.mutator.base import Mutator
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.runner.base import RunnerResult
from weft.meta_schedule.search_strategy.base import SearchStrategy
from weft.meta_schedule.space_generator.base import SpaceGenerator
from weft.meta_schedule.space_generator.default_schedule import DefaultSchedule
from weft.meta_schedule.space_generator.post_order_apply import PostOrderApply
from weft.meta_schedule.space_generator.space_generator_union import SpaceGeneratorUnion
from weft.support.config import usable_processors
from weft.support.errors import IRValueError, wrong_type
from weft.target import Target
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule

Space: TypeAlias = SpaceGenerator | str | Callable[[Schedule], object]
_SEEDS = 2**31 - 1


class TuneContext(Context):
    """One task of tuning.

    Args:
        mod: the module, with one PrimFunc, or the PrimFunc itself.
        target: what to compile for.
        space_generator: the design space; a function that schedules stands for ScheduleFn of it, a
            name for what ``SpaceGenerator.create`` gives.
        search_strategy: how the space is searched; a name for ``SearchStrategy.create``.
        task_name: what reports call the task.
        rand_state: where random numbers start; -1 takes a start from the system.
        num_threads: how many cores may be used; "physical" or "logical" for those of the machine.
        logger: what is told of the search.
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc | None = None,
        *,
        target: Target | str | None = None,
        space_generator: Space | None = None,
        search_strategy: SearchStrategy | str | None = None,
        task_name: str = "main",
        rand_state: int = -1,
        num_threads: int | str = "physical",
        logger: logging.Logger | None = None,
    ) -> None:
        self.mod = None if mod is None else normalized(mod)
        self.target = Target(target) if isinstance(target, str) else target
        self.space_generator = _space_of(space_generator)
        if isinstance(search_strategy, str):
            search_strategy = SearchStrategy.create(search_strategy)
        self.search_strategy = search_strategy
        self.task_name = task_name
        self.num_threads = _threads(num_threads)
        self.logger = logger or logging.getLogger("weft.meta_schedule")
        is_given = rand_state != -1
        self.rand_state = rand_state if is_given else random.SystemRandom().randrange(1, _SEEDS)
        self._random = random.Random(self.rand_state)
        self.initialize()

    def initialize(self) -> None:
        """Tell the space and the strategy their task."""
        for part in (self.space_generator, self.search_strategy):
            if part is not None:
                part._initialize_with_tune_context(self)

    @property
    def postprocs(self) -> Sequence[Postproc]:
        """What finishes each schedule: those of the space generator."""
        postprocs = self.space_generator.postprocs if self.space_generator is not None else None
        return postprocs or ()

    @property
    def mutators(self) -> list[tuple[Mutator, float]]:
        """The mutators with their probabilities: those of the space generator."""
        table = self.space_generator.mutator_probs if self.space_generator is not None else None
        return list((table or {}).items())

    def fork_seed(self) -> int:
        """A seed for random decisions, another one at each call."""
        return self._random.randrange(1, _SEEDS)

    def generate_design_space(self) -> list[Schedule]:
        """The schedules of the design space of the module."""
        if self.mod is None:
            raise IRValueError("TuneContext.generate_design_space: the context has no mod")
        return self._space().generate_design_space(self.mod)

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int = 64,
        design_spaces: Sequence[Schedule] | None = None,
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search (``SearchStrategy.pre_tuning``), by default of the whole design space."""
        spaces = self.generate_design_space() if design_spaces is None else design_spaces
        self._strategy().pre_tuning(max_trials, num_trials_per_iter, spaces, database, cost_model)

    def post_tuning(self) -> None:
        """End the search."""
        self._strategy().post_tuning()

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next candidates to measure; None if the search has ended."""
        return self._strategy().generate_measure_candidates()

    def notify_runner_results(
        self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """Tell the strategy what the candidates took."""
        self._strategy().notify_runner_results(measure_candidates, results)

    def clone(self) -> TuneContext:
        """A copy whose parts share nothing with those of this context."""
        twin = copy.copy(self)
        twin._random = random.Random(self.fork_seed())
        if self.space_generator is not None:
            twin.space_generator = self.space_generator.clone()
        if self.search_strategy is not None:
            twin.search_strategy = self.search_strategy.clone()
        twin.initialize()
        return twin

    def _space(self) -> SpaceGenerator:
        if self.space_generator is None:
            raise IRValueError("TuneContext: this call needs a space_generator")
        return self.space_generator

    def _strategy(self) -> SearchStrategy:
        if self.search_strategy is None:
            raise IRValueError("TuneContext: this call needs a search_strategy")
        return self.search_strategy


def contexts_of(
    tasks: Iterable[tuple[str, IRModule | PrimFunc, Target | str, Space]],
    strategy: SearchStrategy | str,
    num_threads: int | str,
    seed: int | None,
) -> list[TuneContext]:
    """The contexts of tasks: name, function, target and design space of each.

    They share no parts. ``seed`` is where their random numbers start, None: anywhere. The space
    "post-order-apply" gets the default schedule of the target as one more sketch.
    """
    generator = random.Random(seed)
    contexts = [
        TuneContext(
            function,
            target=target,
            space_generator=_with_default(space),
            search_strategy=strategy,
            task_name=name,
            rand_state=generator.randrange(1, _SEEDS),
            num_threads=num_threads,
            logger=logging.getLogger(f"weft.meta_schedule.{name}"),
        )
        for name, function, target, space in tasks
    ]
    return [context.clone() for context in contexts]


def _with_default(space: Space) -> Space:
    if space != "post-order-apply":
        return space
    return SpaceGeneratorUnion([DefaultSchedule(), PostOrderApply()])


def _space_of(space: Space | None) -> SpaceGenerator | None:
    return (
        space
        if space is None or isinstance(space, SpaceGenerator)
        else SpaceGenerator.create(space)
    )


def current_target() -> Target:
    """The target of the innermost ``with``. Raises IRValueError if there is none."""
    target = Target.current(allow_none=False)
    assert target is not None
    return target


def normalized(mod: IRModule | PrimFunc) -> IRModule:
    """The module of one task: a single PrimFunc, named main, whose arguments do not overlap."""
    if isinstance(mod, PrimFunc):
        name = mod.attrs.get("global_symbol", "main")
        return IRModule({"main": mod.with_attr({"global_symbol": name, "tir.noalias": True})})
    if not isinstance(mod, IRModule):
        raise wrong_type("mod: expected an IRModule or a PrimFunc to tune", mod)
    functions = list(mod.functions.values())
    if len(functions) != 1:
        names = ", ".join(var.name_hint for var in mod.functions)
        raise IRValueError(
            f"mod: expected a module with one function, got {len(functions)} ({names}); tune_tir "
            "tunes each function of a module, tune_relax the kernels of a model"
        )
    return IRModule({"main": functions[0]})


def _threads(count: int | str) -> int:
    if count in ("physical", "logical"):
        return usable_processors()
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise IRValueError(
            f'num_threads: expected a number of threads, "physical" or "logical", got {count!r}'
        )
    return count
