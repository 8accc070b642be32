"""What the compiler decides, told to an observer of this thread, if there is one.

Decisions that leave no trace in the result go through here: which rule scheduled a kernel and which
ones did not fit, which kernel came from the cache, the module that code was made of. An event has a
name and details; ``weft.driver.recording`` has the observer, and says what the details are.

>>> with observing(lambda event, *details: print(event, *details)):
...     happened("program", "tiled", "it has no reduction")
program tiled it has no reduction
>>> happened("program", "nobody", "hears this")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

Event = Literal["pass", "passed", "kernel", "rule", "program", "lowered", "code"]
"""What happens, with its details:

- ``pass`` (name, module) and ``passed`` (module): a pass begins and ends;
- ``kernel`` (name, PrimFunc): a kernel is about to be scheduled;
- ``rule`` (name, Schedule or None): what a rule answers;
- ``program`` (name, reason): a part of a rule was tried; no reason: it fits;
- ``lowered`` (module, LoweredModule or None): code is made of these functions;
- ``code`` (names, whether their code is in the cache, the key or None)."""
Observer = Callable[..., None]
"""Called with an event and its details."""

_OBSERVER: Final[ContextVar[Observer | None]] = ContextVar("observer", default=None)


@contextmanager
def observing(observer: Observer | None) -> Iterator[None]:
    """Tell ``observer``, or nobody, what this thread's compiler decides inside of the block."""
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


def happened(event: Event, *details: object) -> None:
    """Tell the observer of an event."""
    observer = _OBSERVER.get()
    if observer is not None:
        observer(event, *details)


def is_observed() -> bool:
    """Whether there is an observer: for details that are costly to find out."""
    return _OBSERVER.get() is not None
