"""Whether a function of the caller takes what weft calls it with, told where it is handed over."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence


def mismatch(
    function: Callable[..., object], args: Sequence[str], keywords: Sequence[str] = ()
) -> str | None:
    """Why a function cannot be called with arguments of these names, and how it is called.

    None if it can, or if Python cannot tell its parameters, as of a function written in C.

    >>> mismatch(lambda func: func, ["func", "mod"])
    'too many positional arguments; it is called with (func, mod)'
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*args, **dict.fromkeys(keywords))
    except TypeError as error:
        called = ", ".join([*args, *[f"{name}=" for name in keywords]])
        return f"{error}; it is called with ({called})"
    return None
