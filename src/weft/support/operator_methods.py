"""The methods of Python's binary operators, all from one function that applies any of them by name.

>>> class Text(str):
...     __add__, __radd__ = operators(lambda name, left, right: f"{name}({left}, {right})", "plus")
>>> Text("a") + "b"
'plus(a, b)'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

L = TypeVar("L")
R = TypeVar("R")
T = TypeVar("T")


def operator(apply: Callable[[str, L, R], T], name: str) -> Callable[[L, R], T]:
    """The method of a Python operator: ``self <op> other``."""
    return lambda self, other: apply(name, self, other)


def operators(
    apply: Callable[[str, L, L], T], name: str
) -> tuple[Callable[[L, L], T], Callable[[L, L], T]]:
    """The methods of a Python operator: ``self <op> other`` and ``other <op> self``."""
    return operator(apply, name), lambda self, other: apply(name, other, self)
