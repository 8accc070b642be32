"""Small helpers of this package's passes for building expressions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir import op

_I64: Final = DataType("int64")
_FAR: Final = 1 << 62


class Names:
    """Collects variables for values that are used at several places, to define them around a body.

    ``names.of("x", a * b)`` gives a variable ``x``; at last ``names.around(x * x)`` gives
    ``T.Let(x * x, where={x: a * b})``.
    """

    def __init__(self) -> None:
        self.lets: list[tuple[e.Var, PrimExpr]] = []

    def of(self, name: str, value: PrimExpr) -> PrimExpr:
        """A variable for the value, or the value itself where it is a variable or a constant."""
        plain = value.value if isinstance(value, e.Broadcast) else value
        if isinstance(plain, (IntImm, FloatImm)) or isinstance(value, e.Var):
            return value
        var = e.Var(name, value.dtype)
        self.lets.append((var, value))
        return var

    def around(self, body: PrimExpr) -> PrimExpr:
        """``body`` inside the definitions of all variables, the first one outermost."""
        for var, value in reversed(self.lets):
            body = e.Let(var, value, body)
        return body


def all_of(conditions: Sequence[PrimExpr]) -> PrimExpr:
    """The condition that all of several hold; each of them is computed."""
    return functools.reduce(lambda a, b: e.Call(a.dtype, "tir.bitwise_and", [a, b]), conditions)


def either(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The condition that one of two holds, or both; both are computed."""
    return e.Call(a.dtype, "tir.bitwise_or", [a, b])


def wide(expr: PrimExpr) -> PrimExpr:
    """An integer expression as int64."""
    return expr if expr.dtype is _I64 else op.cast(_I64, expr)


def plus(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The sum of two sizes; one of constants that leaves 64 bits is larger than any memory."""
    x, y = constant_of(a), constant_of(b)
    return a + b if x is None or y is None else _far(x + y)


def times(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The product of two sizes; one of constants that leaves 64 bits is larger than any memory.

    As IR, ``T.int64(2**63 - 4) * T.int64(4)`` is folded to -16, which a test would take for a size.
    """
    x, y = constant_of(a), constant_of(b)
    return a * b if x is None or y is None else _far(x * y)


def _far(size: int) -> PrimExpr:
    return IntImm("int64", max(-_FAR, min(size, _FAR)))


def constant_of(expr: object) -> int | None:
    """The value of an integer constant, also of one that is broadcast; None for anything else."""
    if isinstance(expr, e.Broadcast):
        expr = expr.value
    return expr.value if isinstance(expr, IntImm) else None


def like(element: str, dtype: DataType) -> DataType:
    """The type with elements ``element`` and as many lanes as ``dtype`` has.

    >>> like("uint16", DataType("int32x4"))
    'uint16x4'
    """
    return DataType(element) if dtype.lanes == 1 else DataType(element).with_lanes(dtype.lanes)
