"""Ctrl-C while native code runs that calls Python back.

Python handles a signal where its own code runs next: that is the first instruction of the callback,
before its ``try``. An exception there belongs to nobody, ctypes prints it and drops it, and the
native code would go on. So while such code runs in the main thread, a handler of ours stands
before the one of SIGINT: where it interrupts the beginning of a callback, it leaves the signal to
the callback, which handles it where errors are caught.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

Handler = Callable[[int, FrameType | None], Any]

_MAIN: Final = threading.main_thread
_beginnings: Final[set[CodeType]] = set()
_waiting: Final[list[tuple[int, Handler]]] = []


def begins_with_signals(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a callback that calls ``handle_waiting`` where it catches errors."""
    _beginnings.add(function.__code__)
    return function


def handle_waiting() -> None:
    """Handle signals that came as a callback began."""
    while _waiting and threading.current_thread() is _MAIN():
        number, handler = _waiting.pop()
        handler(number, None)


class deferring:  # noqa: N801 - a context manager, named as it reads
    """While open, SIGINT is handled inside of callbacks, where its exception reaches the caller."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before: Handler | None = None
        if threading.current_thread() is not _MAIN():
            return
        before = signal.getsignal(signal.SIGINT)
        if callable(before) and not isinstance(before, _Later):
            signal.signal(signal.SIGINT, _Later(before))
            self._before = before

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            handle_waiting()


class _Later:
    """The handler that stands before another one."""

    __slots__ = ("before",)

    def __init__(self, before: Handler) -> None:
        self.before = before

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code in _beginnings:
            _waiting.append((number, self.before))
        else:
            self.before(number, frame)
