"""Deep programs: a raised recursion limit around recursive walks (design.md 3.1).

Python 3.11 and later spend no C stack on Python-to-Python calls, so a high limit is safe as long
as the walk stays in plain function calls. What is deeper still becomes a TVMError. Outside of walks
the user's own limit holds, so that endless recursion of a program is an error, not a crash.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from weft.support.errors import TVMError

LIMIT: Final = 200_000

P = ParamSpec("P")
R = TypeVar("R")


class _Walks:
    """How many walks run, in all threads: the limit is one for the whole process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.usual = 0

    def enter(self) -> None:
        """Raise the limit before the first walk."""
        with self.lock:
            if self.count == 0:
                self.usual = sys.getrecursionlimit()
                if self.usual < LIMIT:
                    sys.setrecursionlimit(LIMIT)
            self.count += 1

    def leave(self) -> None:
        """Put the usual limit back after the last walk; frames deeper than that keep the limit."""
        with self.lock:
            self.count -= 1
            if self.count == 0 and self.usual < LIMIT and sys.getrecursionlimit() == LIMIT:
                try:
                    sys.setrecursionlimit(self.usual)
                except RecursionError:
                    return

    def forked(self) -> None:
        """A child has none of the other threads, which may have held the lock."""
        self.lock = threading.Lock()


_walks: Final = _Walks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_walks.forked)


class _Here(threading.local):
    """Whether this thread is in a walk already: the limit is raised then."""

    inside = False


_here: Final = _Here()


def deep_recursion(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate the entry point of a recursive walk: raise the limit, translate the overflow."""

    @functools.wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        if _here.inside:
            try:
                return function(*args, **kwargs)
            except RecursionError as error:
                raise _too_deep(function) from error
        _walks.enter()
        _here.inside = True
        try:
            return function(*args, **kwargs)
        except RecursionError as error:
            raise _too_deep(function) from error
        finally:
            _here.inside = False
            _walks.leave()

    return entry


def _too_deep(function: Callable[..., object]) -> TVMError:
    return TVMError(
        f"{function.__name__}: the program is nested more than about {LIMIT // 4} levels "
        "deep; split it into several statements or functions"
    )
