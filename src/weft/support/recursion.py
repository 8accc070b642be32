"""Deep programs: a raised recursion limit around recursive walks (design.md 3.1).

Python 3.11 and later use no C stack for calls between Python functions, so a high limit is safe as
long as the walk consists of plain function calls. A program that is even deeper is a TVMError.
Outside of walks the user's own limit holds, so that endless recursion of a program is an error, not
a crash.

While another library evaluates frames itself (PEP 523), each call does use C stack. torch.compile
does so while it runs, and goes on with it if a backend raises. Then the limit is what fits into the
stack.
"""

from __future__ import annotations

import ctypes
import functools
import os
import resource
import sys
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from weft.support.errors import TVMError

LIMIT: Final = 200_000
FRAME: Final = 1024
"""Bytes of C stack for a Python call when a hook evaluates frames; torch's hook takes 400."""
SMALL_STACK: Final = 8 << 20
"""The size of the stack that is assumed if the system sets no limit."""

P = ParamSpec("P")
R = TypeVar("R")


def _default_evaluator() -> int | None:
    """The address of Python's own evaluator of frames; None if it cannot be determined."""
    try:
        evaluate = ctypes.pythonapi._PyEval_EvalFrameDefault
        ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
        ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc.argtypes = [ctypes.c_void_p]
        ctypes.pythonapi.PyInterpreterState_Get.restype = ctypes.c_void_p
    except AttributeError:
        return None
    return ctypes.cast(evaluate, ctypes.c_void_p).value


_EVALUATOR: Final = _default_evaluator()


def calls_use_the_stack() -> bool:
    """Whether a hook evaluates frames, so that a Python call uses C stack."""
    if _EVALUATOR is None:
        return False
    interpreter = ctypes.pythonapi.PyInterpreterState_Get()
    evaluator: object = ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc(interpreter)
    return evaluator != _EVALUATOR


def _limit() -> int:
    """How deep a walk may go now."""
    if not calls_use_the_stack():
        return LIMIT
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return min(LIMIT, (SMALL_STACK if stack == resource.RLIM_INFINITY else stack) // FRAME)


class _Walks:
    """Counts the walks of all threads, as the limit is one for the whole process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.usual = 0
        self.raised = 0

    def enter(self) -> None:
        """Raise the limit before the first walk."""
        with self.lock:
            if self.count == 0:
                self.usual, self.raised = sys.getrecursionlimit(), _limit()
                if self.usual < self.raised:
                    sys.setrecursionlimit(self.raised)
            self.count += 1

    def leave(self) -> None:
        """Restore the usual limit after the last walk, unless the stack is deeper than that."""
        with self.lock:
            self.count -= 1
            if self.count == 0 and self.usual < self.raised == sys.getrecursionlimit():
                try:
                    sys.setrecursionlimit(self.usual)
                except RecursionError:
                    return

    def forked(self) -> None:
        """In a child process: a new lock, as a thread that does not exist here may hold the old."""
        self.lock = threading.Lock()


_walks: Final = _Walks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_walks.forked)


class _Here(threading.local):
    """Whether this thread is in a walk already, so that the limit is raised."""

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
        f"{function.__name__}: the program is nested more than about {_limit() // 4} levels "
        "deep; split it into several statements or functions"
    )
