"""Deep programs: a raised recursion limit around recursive walks (design.md 3.1).

Python 3.11 and later spend no C stack on Python-to-Python calls, so a high limit is safe as long
as the walk stays in plain function calls. What is deeper still becomes a TVMError.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from weft.support.errors import TVMError

LIMIT: Final = 200_000

P = ParamSpec("P")
R = TypeVar("R")


def deep_recursion(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate the entry point of a recursive walk: raise the limit, translate the overflow.

    The limit is process-wide in CPython and raising it is idempotent, so it is never lowered:
    lowering it while another thread is deep in a walk would break that thread.
    """

    @functools.wraps(function)
    def entry(*args: P.args, **kwargs: P.kwargs) -> R:
        if sys.getrecursionlimit() < LIMIT:
            sys.setrecursionlimit(LIMIT)
        try:
            return function(*args, **kwargs)
        except RecursionError as error:
            raise TVMError(
                f"{function.__name__}: the program is nested more than about {LIMIT // 4} levels "
                "deep; split it into several statements or functions"
            ) from error

    return entry
