"""Whether a choice in an expression is simplified under its condition.

What is below a choice is simplified anew in each arm. Of one value in three places of every step,
``x = select(x > i, x, x + j)``, that would be all paths to it: 3, 9, 27, 81 times the work.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.tir.expr import And, Call, Or, Select

_FEW: Final = 12
_MOST: Final = 1000
_NOTHING: Final = nullcontext()


def scope(
    enter: Callable[[PrimExpr], AbstractContextManager[None]],
    condition: PrimExpr,
    choice: PrimExpr,
) -> AbstractContextManager[None]:
    """``enter(condition)``; nothing where ``choice`` holds more than a few choices, and most of
    them more than once.
    """
    if _is_shared_much(choice):
        return _NOTHING
    return enter(condition)


def _is_shared_much(expr: PrimExpr) -> bool:
    """Whether the tree of an expression has more than twice the choices of its graph."""
    paths = _paths(expr)
    if paths <= _FEW:
        return False
    cache = _cache_of(expr)
    known: bool | None = cache.get("shares choices")
    if known is None:
        objects = 0 if paths > _MOST else len(
            [part for part in collect(expr, (Select, And, Or, Call)) if _is_choice(part)]
        )  # fmt: skip
        known = cache["shares choices"] = paths > 2 * objects
    return known


def _paths(expr: PrimExpr) -> int:
    """Choices in the tree, as far as they are counted; kept with the expression."""
    cache = _cache_of(expr)
    known: int | None = cache.get("choices")
    if known is None:
        known = 1 if _is_choice(expr) else 0
        for name in expr.CHILDREN:
            value = getattr(expr, name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, PrimExpr) and part.CHILDREN:
                    known += _paths(part)
        known = cache["choices"] = min(known, _MOST + 1)
    return known


def _cache_of(expr: PrimExpr) -> dict[Any, Any]:
    """What is remembered of an expression beside its fields."""
    if expr._cache is None:
        expr._cache = {}
    return expr._cache


def _is_choice(expr: PrimExpr) -> bool:
    if isinstance(expr, Call):
        return getattr(expr.op, "name", "") == "tir.if_then_else"
    return isinstance(expr, Select | And | Or)
