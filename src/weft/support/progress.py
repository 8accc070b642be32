"""Reports of progress, from long work in the compiler to a listener that displays them.

>>> with listening(print):
...     tell("generating code", 1, 2)
generating code 1 2
>>> tell("nobody hears this")

Beside it, the compiler says which phase of its work it is in, for what measures these:

>>> with watching(lambda name, begins: print(name, "begins" if begins else "ends")):
...     with phase("lowering"):
...         pass
lowering begins
lowering ends
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, TypeVar

T = TypeVar("T")

Listener = Callable[[str, int | None, int | None], None]
"""Called with what is being done, how many parts of it are done, and how many there are."""

Phase = Literal[
    "capture", "import", "graph", "schedules", "lowering", "emission", "LLVM", "joining", "loading",
    "cache",
]  # fmt: skip
"""What the compiler is at. A phase may lie within another one: constants that are folded while
passes run on a graph are lowered, too. ``capture`` is torch.export's part, ``LLVM`` the time for
which this process waits for it."""
Watcher = Callable[[Phase, bool], None]
"""Called with a phase and whether it begins (or ends)."""

_LISTENER: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)

_WATCHERS: Final[ContextVar[tuple[Watcher, ...]]] = ContextVar("watchers", default=())


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Send the reports of this thread to ``listener``, or to nobody, inside of the block."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(text: str, done: int | None = None, total: int | None = None) -> None:
    """Report what is being done from now on, and how many parts of it are done."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(text, done, total)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call ``watcher``, too, where a phase of this thread's work begins or ends in the block."""
    token = _WATCHERS.set((*_WATCHERS.get(), watcher))
    try:
        yield
    finally:
        _WATCHERS.reset(token)


@contextmanager
def phase(name: Phase) -> Iterator[None]:
    """Within the block the compiler is in this phase."""
    watchers = _WATCHERS.get()
    for watcher in watchers:
        watcher(name, True)
    try:
        yield
    finally:
        for watcher in watchers:
            watcher(name, False)


def awaited(name: Phase, items: Iterator[T]) -> Iterator[T]:
    """The items; the time until each of them comes belongs to a phase.

    >>> with watching(lambda name, begins: print(name, "begins" if begins else "ends")):
    ...     for item in awaited("LLVM", iter(["code"])):
    ...         print(item)
    LLVM begins
    LLVM ends
    code
    LLVM begins
    LLVM ends
    """
    while True:
        with phase(name):
            try:
                item = next(items)
            except StopIteration:
                return
        yield item


class PhaseClock:
    """A watcher that adds up the seconds of each phase, without those of phases inside of it.

    Args:
        seconds: phase -> seconds, where they are added.
        now: the clock, in seconds.

    >>> times = iter([0.0, 1.0, 3.0, 7.0])
    >>> clock = PhaseClock({}, lambda: next(times))
    >>> for name, begins in ("graph", True), ("LLVM", True), ("LLVM", False), ("graph", False):
    ...     clock.watch(name, begins)
    >>> clock.seconds
    {'graph': 5.0, 'LLVM': 2.0}
    """

    def __init__(
        self, seconds: dict[str, float], now: Callable[[], float] = time.perf_counter
    ) -> None:
        self.seconds = seconds
        self._now = now
        self._open: list[str] = []
        self._since = 0.0

    def watch(self, name: str, begins: bool) -> None:
        """Note that a phase begins or ends."""
        now = self._now()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now
        if begins:
            self.seconds.setdefault(name, 0.0)
            self._open.append(name)
        else:
            self._open.pop()
