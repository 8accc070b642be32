"""Whether a choice in an expression is simplified under its condition.

Each arm of a choice is simplified separately, under the condition or its negation. A value that
each of several steps uses three times, as in ``x = select(x > i, x, x + j)``, would then be
simplified 3, 9, 27, 81 times. Such choices are simplified without their conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from weft.arith import fold
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.functor import collect
from weft.tir.expr import And, Broadcast, Call, Or, Select, is_call

_FEW: Final = 12
_MOST: Final = 1000
_NOTHING: Final = nullcontext()
Enter = Callable[[PrimExpr], AbstractContextManager[None]]
"""Opens a scope in which a condition holds."""


def scope(
    enter: Enter,
    condition: PrimExpr,
    choice: PrimExpr,
) -> AbstractContextManager[None]:
    """``enter(condition)``; a scope that does nothing if ``choice`` contains many choices, and most
    of them several times.
    """
    if _is_shared_much(choice):
        return _NOTHING
    return enter(condition)


def arms(
    enter: Enter,
    condition: PrimExpr,
    choice: PrimExpr,
    values: Iterable[PrimExpr],
    visit: Callable[[PrimExpr], PrimExpr],
) -> list[PrimExpr]:
    """Both values of a choice, each visited where ``condition`` says that it is taken."""
    visited = []
    for taken, value in zip((True, False), values, strict=True):
        if _is_constant(value):
            visited.append(value)
            continue
        with scope(enter, condition if taken else fold.not_(condition), choice):
            visited.append(visit(value))
    return visited


def _is_constant(value: PrimExpr) -> bool:
    """Whether a value has nothing to simplify: a number, or a vector of equal ones."""
    return type(value.value if type(value) is Broadcast else value) in (IntImm, FloatImm)


def _is_shared_much(expr: PrimExpr) -> bool:
    """Whether an expression has more than twice as many choices when counted with repetitions."""
    paths = _paths(expr)
    if paths <= _FEW:
        return False
    cache = _cache_of(expr)
    known: bool | None = cache.get("shares choices")
    if known is None:
        objects = (
            0
            if paths > _MOST
            else len([part for part in collect(expr, (Select, And, Or, Call)) if _is_choice(part)])
        )
        known = cache["shares choices"] = paths > 2 * objects
    return known


def _paths(expr: PrimExpr) -> int:
    """The number of choices counted with repetitions, up to a limit; kept with the expression."""
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
    """A dictionary that is attached to an expression, for results about it."""
    if expr._cache is None:
        expr._cache = {}
    return expr._cache


def _is_choice(expr: PrimExpr) -> bool:
    if isinstance(expr, Call):
        return is_call(expr, "if_then_else")
    return isinstance(expr, (Select, And, Or))
