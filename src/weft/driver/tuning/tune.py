"""``weft.tune``: a model with faster kernels, found by measuring in a given time.

The algorithms of layers are searched first, then the schedules of the kernels that these have.
Trial 0 of each is the default. The search changes what cost models decide
(``weft.dlight.decisions``). Each trial runs in another process; its result is
compared with that of the default. A form that wins is measured again beside the default, in turn,
and the whole model beside the default model, so that what is returned is not slower.
"""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.codegen.backend import backend_of
from weft.codegen.cache import cache_folder, source_digest
from weft.dlight.decisions import GRAPH, using
from weft.driver import learned
from weft.driver.cluster.errors import NoMachineError
from weft.driver.compile import compile as compile_model
from weft.driver.progress import Progress
from weft.driver.size_hints import checked_size_hints, with_size_hints
from weft.driver.sources import import_model, request_of
from weft.driver.tuning.collection import Collection, samples_of
from weft.driver.tuning.journal import Journal
from weft.driver.tuning.kernels import Kernel, kernels_of, stages
from weft.driver.tuning.layers import ALGORITHM_CHOICES, layers_of
from weft.driver.tuning.observers import Collector, Draft, Observer, Predicts
from weft.driver.tuning.report import TunedKernel, TuningReport
from weft.driver.tuning.search import Search
from weft.driver.tuning.trial import Clock, clock_of, random_arguments, shortest
from weft.driver.tuning.trial_machines import TrialMachines
from weft.driver.tuning.trial_process import TrialFailedError, TrialProcess
from weft.driver.tuning.trials import MakesTrials, entry_of, make_trials
from weft.ir.module import IRModule
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.ndarray import array
from weft.support.errors import IRValueError, PassError, TVMError
from weft.support.public_entry import public_entry
from weft.target.target import Target, target_meant
from weft.tir.size_hints import size_hints_of

_TRIAL_SECONDS: Final = 60.0
"""A trial that takes longer has failed."""
_FOR_LAYERS: Final = 0.4
"""The share of the time in which algorithms of layers may be searched; kernels have the rest."""
_ROUNDS: Final = 5
"""How often a winner and the default are measured in turn before the winner is kept."""
_GAIN: Final = 0.985
"""A winner is kept if it takes at most this share of the default's time."""
_ROOMS: Final = ("dlight", "backends", "tir", "codegen")
"""The packages whose sources decide what a trial's answers mean."""


@public_entry("weft.tune")
def tune(
    model: Any,
    example_inputs: object = None,
    *,
    minutes: float = 5.0,
    target: Any = None,
    dynamic_shapes: object = None,
    size_hints: Mapping[str, int] | None = None,
    num_threads: int | None = None,
    database: str | Path | None = "",
    ray: str | None = None,
    machine: str | None = None,
    collect: str | Path | None = None,
    learn_from: str | Path | None = None,
    **options: object,
) -> CompiledModel:
    """Search for faster kernels of a model for some minutes, and compile it with them.

    Args:
        model, example_inputs, target, dynamic_shapes, size_hints, num_threads, options: as for
            ``weft.compile``. Kernels of symbolic sizes are tuned for the sizes of the hints.
        minutes: how long to search. Ctrl-C ends the search before, and keeps what it found.
        database: the file of all trials, which later searches go on with; "" is one in weft's
            cache, None keeps none.
        ray: the address of a Ray cluster whose machines make the trials; "auto" is the one that
            this machine belongs to. None: a process here makes them.
        machine: only machines with a resource of this name (``weft.driver.cluster.Machines``).
        collect: a file to which each trial of a kernel is added, with features of its program.
        learn_from: such a file. Trees learn from it which forms to try first (needs the package
            xgboost). It may be the same file: it is read when the search begins.

    Returns:
        The model, as ``weft.compile`` returns it; ``tuning`` is a TuningReport.
    """
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes < 1e6:
        raise IRValueError(f"tune: expected minutes greater than 0, got {minutes!r}")
    resolved = target_meant(target)
    given: dict[str, Any] = {
        "dynamic_shapes": dynamic_shapes,
        "size_hints": size_hints,
        "num_threads": num_threads,
        **options,
    }
    begin = time.monotonic()
    module = _module(model, example_inputs, dynamic_shapes, size_hints, options)
    journal = Journal(_path(database), _place(resolved, num_threads))
    order = None if learn_from is None else learned.LearnedOrder(samples_of(learn_from))
    maker = _maker(resolved, num_threads, ray, machine)
    with closing(maker), Progress(f"tuning {type(model).__name__}") as progress:
        observers = _observers(maker, collect, order)
        searching = _Searching(maker, journal, progress.stage, begin + 60 * minutes, observers)
        layers = searching.searched(_layers(module, resolved), _FOR_LAYERS)
        graph = {name: answer for row in layers.values() for name, answer in row.taken.items()}
        with using({GRAPH: graph}):
            kernels = _kernels(module, resolved)
        rows = searching.searched(kernels)
    tuned = {digest: row.taken for digest, row in rows.items() if row.taken}
    default: CompiledModel = compile_model(model, example_inputs, target=resolved, **given)
    chosen = default
    if tuned or graph:
        with using({**tuned, GRAPH: graph}):
            chosen = compile_model(model, example_inputs, target=resolved, **given)
        if not _is_faster(chosen, default, clock_of(num_threads)):
            chosen, layers, rows = default, _as_before(layers), _as_before(rows)
    searching.note_winners({**layers, **rows})
    seconds = time.monotonic() - begin
    chosen.tuning = TuningReport([*rows.values()], seconds, [*layers.values()])
    return chosen


class _Searching:
    """Searches for layers or kernels until a deadline, or until Ctrl-C."""

    def __init__(
        self,
        maker: MakesTrials,
        journal: Journal,
        show: Callable[[str], None],
        deadline: float,
        observers: Sequence[Observer],
    ) -> None:
        self._maker, self._journal, self._show = maker, journal, show
        self._deadline, self._observers = deadline, observers
        self._searches: dict[bytes, Search] = {}

    def searched(self, kernels: Sequence[Kernel], share: float = 1.0) -> dict[bytes, TunedKernel]:
        """The result for each, by its digest; ``share`` is that of the time left to take."""
        searches = {kernel.digest: Search(kernel) for kernel in kernels}
        self._searches |= searches
        now = time.monotonic()
        deadline = now + share * (self._deadline - now)
        try:
            make_trials(
                [*searches.values()],
                self._journal,
                self._maker,
                deadline,
                self._show,
                self._observers,
            )
        except KeyboardInterrupt:
            self._deadline = 0.0  # what was found is kept; nothing more is searched
        settling = {
            digest: self._maker.start(_settled, search, self._maker)
            for digest, search in searches.items()
        }
        return {digest: future.result() for digest, future in settling.items()}

    def note_winners(self, rows: Mapping[bytes, TunedKernel]) -> None:
        """Write to the journal which forms the model has."""
        for digest, row in rows.items():
            if row.taken:
                entry = entry_of(self._searches[digest], row.taken, row.tuned)
                self._journal.add(replace(entry, is_winner=True))


def _as_before(rows: Mapping[bytes, TunedKernel]) -> dict[bytes, TunedKernel]:
    """The rows if nothing that was found is used."""
    return {key: row._replace(tuned=row.default, taken={}) for key, row in rows.items()}


def _observers(
    maker: MakesTrials, collect: str | Path | None, order: Predicts | None
) -> list[Observer]:
    """What looks on at the search."""
    observers: list[Observer] = [] if order is None else [Draft(order, maker)]
    return observers if collect is None else [*observers, Collector(Collection(collect), maker)]


def _maker(
    target: Target, num_threads: int | None, ray: str | None, machine: str | None
) -> MakesTrials:
    """What makes the trials."""
    if ray is not None:
        return TrialMachines(target, num_threads, _TRIAL_SECONDS, address=ray, kind=machine)
    if machine is not None:
        raise IRValueError(f"tune: machine={machine!r} is a kind of machines of ray=..., not given")
    return TrialProcess(target, num_threads, _TRIAL_SECONDS)


def _module(
    model: object,
    examples: object,
    dynamic_shapes: object,
    size_hints: Mapping[str, int] | None,
    options: Mapping[str, object],
) -> IRModule:
    """The graph of a model, with the sizes that its symbols usually have."""
    request = request_of(model, examples, dynamic_shapes, options)
    request = replace(request, size_hints=checked_size_hints(size_hints))
    return with_size_hints(import_model(request), request)


def _layers(module: IRModule, target: Target) -> list[Kernel]:
    """The layers of a model that passes on graphs have choices for."""
    layers = []
    for name in ALGORITHM_CHOICES:
        with suppress(PassError):  # a pipeline without this pass
            front, step, _ = stages(target, name)
            with target:
                layers += layers_of(front(module), step)
    return layers


def _kernels(module: IRModule, target: Target) -> list[Kernel]:
    """The kernels of a model for a target."""
    with target:
        return kernels_of(stages(target).front(module))


def _settled(search: Search, maker: MakesTrials) -> TunedKernel:
    """The result for a kernel: the winner, if it wins beside the default once more."""
    kernel, default = search.kernel, search.default or 0.0
    default = 0.0 if default == float("inf") else default
    usual = TunedKernel(kernel.name, kernel.calls, search.trials, default, default, {})
    if not search.taken:
        return usual
    try:
        default, tuned = maker.compare(kernel, search.taken, _ROUNDS)
    except (TrialFailedError, NoMachineError):
        return usual
    usual = usual._replace(default=default, tuned=default)
    if tuned > default * _GAIN:
        return usual
    return usual._replace(tuned=tuned, taken=search.taken)


def _is_faster(tuned: CompiledModel, default: CompiledModel, clock: Clock) -> bool:
    """Whether a whole model is not slower than another one, both called in turn.

    What needs arguments that cannot be made up counts as faster: its kernels are.
    """
    function = default.mod[default.entry]
    infos = [parameter.struct_info for parameter in function.params]
    try:
        arrays = random_arguments(infos, size_hints_of(default.mod))
        calls = [functools.partial(_call, model) for model in (tuned, default)]
        times = [[shortest(call, arrays, clock) for call in calls] for _ in range(_ROUNDS)]
    except (TVMError, AttributeError, TypeError):
        return True
    least, usual = (min(column) for column in zip(*times, strict=True))
    return bool(least <= usual)


def _call(model: CompiledModel, *arrays: np.ndarray) -> object:
    """Run the program of a model, whatever its own call takes."""
    return model.machine[model.entry](*[array(item) for item in arrays])


def _path(database: str | Path | None) -> Path | None:
    if database is None:
        return None
    if str(database):
        return Path(database)
    folder = cache_folder("tuning")
    return None if folder is None else folder / "trials.jsonl"


def _place(target: Target, num_threads: int | None) -> str:
    """What the times of trials depend on, as a digest."""
    parts = (
        target.structural_bytes(), tuple(backend_of(target).options(target)), num_threads,
        source_digest(_ROOMS),
    )  # fmt: skip
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()
