"""The trials of all kernels of a model: which is next, what makes it, what is learned from it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Final, NamedTuple, Protocol, TypeVar

from weft.driver.cluster.errors import NoMachineError
from weft.driver.tuning.journal import Entry, Journal
from weft.driver.tuning.kernels import Kernel
from weft.driver.tuning.observers import Observer
from weft.driver.tuning.search import Search, Taken
from weft.driver.tuning.trial_process import TrialFailedError

_Answer = TypeVar("_Answer")
_CHECKS: Final = 2
"""How often a form that first seems faster and the default are measured in turn: the default may
have been measured in a moment when the machine was busy, and everything would seem a gain."""


class MakesTrials(Protocol):
    """What makes trials: a process here (TrialProcess), machines of a cluster (TrialMachines)."""

    @property
    def capacity(self) -> int:
        """How many trials are made at once."""
        ...

    def start(self, function: Callable[..., _Answer], *arguments: object) -> Future[_Answer]:
        """Call a function that waits for trials; it may have ended when this returns."""
        ...

    def trial(self, kernel: Kernel, taken: Mapping[str, str]) -> tuple[float, dict[str, list[str]]]:
        """The microseconds of a kernel with these answers, and the choices that it has."""
        ...

    def compare(self, kernel: Kernel, taken: Mapping[str, str], rounds: int) -> tuple[float, float]:
        """The microseconds of the default and of a form, measured in turn."""
        ...

    def describe(self, kernel: Kernel, taken: Mapping[str, str]) -> list[list[float]]:
        """The features of a kernel's program with these answers."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class _Measured(NamedTuple):
    """A trial: microseconds, the choices that there are, and the default's time if taken again."""

    microseconds: float
    offered: Mapping[str, Sequence[str]]
    default: float | None


def make_trials(
    searches: Sequence[Search],
    journal: Journal,
    maker: MakesTrials,
    deadline: float,
    show: Callable[[str], None],
    observers: Sequence[Observer] = (),
) -> None:
    """Make trials until the deadline, or until no kernel promises anything.

    Observers see each trial that is made, not those that the journal has. If no machine is left to
    make them, there is a warning, and what was found is kept.
    """
    running: dict[Future[_Measured | None], tuple[Search, Taken]] = {}
    try:
        while time.monotonic() < deadline:
            _begin_some(searches, journal, maker, running)
            if not running:
                return
            _learn_some(journal, running, observers)
            show(_line(searches, deadline - time.monotonic()))
        while running:
            _learn_some(journal, running, observers)
    except NoMachineError as error:
        warnings.warn(f"tune: the search ends here: {error}", stacklevel=2)


def _begin_some(
    searches: Sequence[Search],
    journal: Journal,
    maker: MakesTrials,
    running: dict[Future[_Measured | None], tuple[Search, Taken]],
) -> None:
    """Begin as many trials as can be made at once; what the journal has is not measured again."""
    while len(running) < maker.capacity:
        search = max(searches, key=lambda item: item.promise, default=None)
        taken = None if search is None or not search.promise else search.proposal()
        if search is None or taken is None:
            return
        known = [entry for entry in journal.of(_name(search)) if entry.taken == taken]
        if known and taken:
            search.learn(taken, known[-1].microseconds, {})
        else:
            search.begin(taken)
            running[maker.start(_measured, search, taken, maker)] = search, taken


def _measured(search: Search, taken: Taken, maker: MakesTrials) -> _Measured | None:
    """Make a trial; None if it failed."""
    try:
        microseconds, offered = maker.trial(search.kernel, taken)
        if not search.is_gain(taken, microseconds):
            return _Measured(microseconds, offered, None)
        default, microseconds = maker.compare(search.kernel, taken, _CHECKS)
    except TrialFailedError:
        return None
    return _Measured(microseconds, offered, default)


def _learn_some(
    journal: Journal,
    running: dict[Future[_Measured | None], tuple[Search, Taken]],
    observers: Sequence[Observer],
) -> None:
    """Wait for a trial, and learn from all that have ended."""
    ended, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in [item for item in running if item in ended]:
        search, taken = running.pop(future)
        measured = future.result()
        if measured is None:
            search.learn(taken, None, {})
        else:
            if measured.default is not None:
                search.remeasured(measured.default)
            search.learn(taken, measured.microseconds, measured.offered)
        microseconds = measured.microseconds if measured else None
        journal.add(entry_of(search, taken, microseconds))
        for observer in observers:
            observer.see(search, taken, microseconds)


def entry_of(search: Search, taken: Mapping[str, str], microseconds: float | None) -> Entry:
    """What the journal keeps of a trial."""
    kernel = search.kernel
    return Entry(_name(search), taken, microseconds, kernel.name, kernel.calls)


def _name(search: Search) -> str:
    return search.kernel.digest.hex()


def _line(searches: Sequence[Search], left: float) -> str:
    """What the progress line says."""
    measured = [item for item in searches if item.default not in (None, float("inf"))]
    default = sum((item.default or 0.0) * item.kernel.calls for item in measured)
    best = sum(item.best * item.kernel.calls for item in measured)
    trials = sum(item.trials for item in searches)
    gain = default / best if best else 1.0
    return f"{trials} trials, {gain:.3f} times as fast so far, {max(left, 0):.0f} s left"
