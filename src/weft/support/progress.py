"""Reports of progress, from long work in the compiler to a listener that displays them.

>>> with listening(print):
...     tell("generating code", 1, 2)
generating code 1 2
>>> tell("nobody hears this")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

Listener = Callable[[str, int | None, int | None], None]
"""Called with what is being done, how many parts of it are done, and how many there are."""

_LISTENER: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)


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
