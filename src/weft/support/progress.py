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

_WATCHER: Final[ContextVar[Watcher | None]] = ContextVar("watcher", default=None)


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
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Call ``watcher`` where a phase of this thread's work begins or ends, inside of the block."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


@contextmanager
def phase(name: Phase) -> Iterator[None]:
    """Within the block the compiler is in this phase."""
    watcher = _WATCHER.get()
    if watcher is None:
        yield
        return
    watcher(name, True)
    try:
        yield
    finally:
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
