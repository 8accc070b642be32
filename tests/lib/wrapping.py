"""Integer expressions evaluated operation by operation: the reference of the tests of arith.

Arithmetic of types that are no index types wraps. That of int32 and int64 is taken to stay in its
range: where it does not, a test has nothing to say (``IndexOverflow``).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.arith.facts import is_index
from weft.ir.expr import IntImm, PrimExpr, integer_range
from weft.support.dtype import DataType
from weft.tir import expr as nodes
from weft.tir.arithmetic import truncated_quotient, truncated_remainder

Scope = Mapping[str, int]
"""The values of variables, by name."""

ARITHMETIC: Final[dict[type, Callable[[int, int], int]]] = {
    nodes.Add: operator.add, nodes.Sub: operator.sub, nodes.Mul: operator.mul, nodes.Min: min,
    nodes.Max: max, nodes.FloorDiv: operator.floordiv, nodes.FloorMod: operator.mod,
    nodes.Div: truncated_quotient, nodes.Mod: truncated_remainder,
}  # fmt: skip
COMPARISONS: Final[dict[type, Callable[[int, int], bool]]] = {
    nodes.LT: operator.lt, nodes.LE: operator.le, nodes.GT: operator.gt, nodes.GE: operator.ge,
    nodes.EQ: operator.eq, nodes.NE: operator.ne,
}  # fmt: skip


class IndexOverflow(ArithmeticError):
    """An operation of an index type leaves its range."""


def wrapped(value: int, dtype: DataType | str) -> int:
    """``value`` in the range of an integer type, as arithmetic of that type leaves it."""
    low, high = integer_range(DataType(dtype))
    return (value - low) % (high - low + 1) + low


def value_of(expr: PrimExpr, scope: Scope) -> Any:
    """The value of an expression; raises IndexOverflow, or ZeroDivisionError."""
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, nodes.Var):
        return scope[expr.name]
    if isinstance(expr, nodes.Cast):
        value = value_of(expr.value, scope)
        return bool(value) if expr.dtype.is_bool else wrapped(value, expr.dtype)
    if isinstance(expr, nodes.Not):
        return not value_of(expr.a, scope)
    if isinstance(expr, nodes.And):
        return value_of(expr.a, scope) and value_of(expr.b, scope)
    if isinstance(expr, nodes.Or):
        return value_of(expr.a, scope) or value_of(expr.b, scope)
    if isinstance(expr, nodes.Select):
        holds = value_of(expr.condition, scope)
        return value_of(expr.true_value if holds else expr.false_value, scope)
    if isinstance(expr, nodes.Call) and getattr(expr.op, "name", "") == "tir.if_then_else":
        return value_of(expr.args[1 if value_of(expr.args[0], scope) else 2], scope)
    assert isinstance(expr, nodes.BinaryExpr | nodes.CompareExpr)
    a, b = value_of(expr.a, scope), value_of(expr.b, scope)
    if type(expr) in COMPARISONS:
        return COMPARISONS[type(expr)](a, b)
    exact = ARITHMETIC[type(expr)](a, b)
    value = wrapped(exact, expr.dtype)
    if value != exact and is_index(expr.dtype):
        raise IndexOverflow(f"{expr} at {dict(scope)}")
    return value
