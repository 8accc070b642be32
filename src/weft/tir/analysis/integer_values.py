"""Values of integer expressions at many points at once, as numpy arrays.

``values_of(i * 4 + j, lookup)`` calls ``lookup`` for the arrays of ``i`` and ``j``. Expressions
that cannot be computed in this way (loads, calls, floats) raise ``UnknownValueError``; callers then
assume that the value may be anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.ir.expr import IntImm, PrimExpr
from weft.tir import expr as e
from weft.tir.expr import BinaryExpr, Call, Cast, Not, Select, Var

Lookup = Callable[[Var], np.ndarray]

_BINARY: Final[dict[type, Callable[[Any, Any], Any]]] = {
    e.Add: np.add, e.Sub: np.subtract, e.Mul: np.multiply,
    e.FloorDiv: np.floor_divide, e.FloorMod: np.mod, e.Min: np.minimum, e.Max: np.maximum,
    e.EQ: np.equal, e.NE: np.not_equal, e.LT: np.less, e.LE: np.less_equal,
    e.GT: np.greater, e.GE: np.greater_equal, e.And: np.logical_and, e.Or: np.logical_or,
}  # fmt: skip
_DIVISIONS: Final = (e.FloorDiv, e.FloorMod)
_CALLS: Final[dict[str, Callable[..., Any]]] = {
    "tir.likely": lambda x: x,
    "tir.if_then_else": np.where,
    "tir.shift_left": np.left_shift,
    "tir.shift_right": np.right_shift,
    "tir.bitwise_and": np.bitwise_and,
    "tir.bitwise_or": np.bitwise_or,
    "tir.bitwise_xor": np.bitwise_xor,
}


class UnknownValueError(Exception):
    """The value does not depend on the given variables alone."""


def values_of(expr: PrimExpr, lookup: Lookup) -> Any:
    """The values of an integer (or bool) expression for the values of variables in ``lookup``.

    Raises:
        UnknownValueError: the expression reads memory, calls a function, or divides by zero.
    """
    return _Values(lookup).of(expr)


class _Values:
    """Evaluates one expression; shared subexpressions are computed once."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.known: dict[int, Any] = {}

    def of(self, expr: PrimExpr) -> Any:
        """The values of an expression in it."""
        known = self.known.get(id(expr))
        if known is None:
            known = self.known[id(expr)] = self.computed(expr)
        return known

    def computed(self, expr: PrimExpr) -> Any:
        if isinstance(expr, IntImm):
            return np.int64(expr.value)
        if type(expr) is Var:
            return self.lookup(expr)
        kind = type(expr)
        combine = _BINARY.get(kind)
        if combine is not None:
            assert isinstance(expr, BinaryExpr)
            a, b = self.of(expr.a), self.of(expr.b)
            if kind in _DIVISIONS and np.any(b == 0):
                raise UnknownValueError
            return combine(a, b)
        if isinstance(expr, Not):
            return np.logical_not(self.of(expr.a))
        if isinstance(expr, Cast) and not expr.dtype.is_float and not expr.value.dtype.is_float:
            return self.of(expr.value)
        if isinstance(expr, Select):
            parts = (expr.condition, expr.true_value, expr.false_value)
            return np.where(*[self.of(part) for part in parts])
        if isinstance(expr, Call):
            call = _CALLS.get(getattr(expr.op, "name", ""))
            if call is not None:
                return call(*[self.of(argument) for argument in expr.args])
        raise UnknownValueError
