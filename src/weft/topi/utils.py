"""Small conversions under the names that users of topi call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsFloat

from weft.ir.expr import Extent, FloatImm, IntImm, PrimExpr
from weft.topi.extents import const_int
from weft.topi.simplify import simplified


def get_const_int(expr: Extent) -> int:
    """The Python int of a constant; raises IRTypeError for a symbolic value."""
    return const_int(expr, "get_const_int")


def get_const_float(expr: SupportsFloat) -> float:
    """The Python float of a constant."""
    return float(expr)


def get_const_tuple(in_tuple: Iterable[Extent]) -> tuple[Extent, ...]:
    """A shape as a tuple: Python ints where constant, expressions elsewhere."""
    values: list[Extent] = []
    for item in in_tuple:
        simple = simplified(item)
        values.append(simple.value if isinstance(simple, IntImm) else simple)
    return tuple(values)


def equal_const_int(expr: Extent, value: int) -> bool:
    """Whether ``expr`` is the constant ``value``."""
    simple = simplified(expr)
    return isinstance(simple, int | IntImm) and int(simple) == value


def simplify(expr: Extent) -> PrimExpr | float:
    """A simpler expression; a constant is returned as a Python number."""
    simple = simplified(expr)
    if isinstance(simple, IntImm | FloatImm):
        return simple.value
    return simple


def prod(x: Iterable[Extent]) -> Extent:
    """The product of a sequence; 1 if it is empty."""
    result: Extent = 1
    for item in x:
        result = item if isinstance(result, int) and result == 1 else result * item
    return result


def is_symbolic(value: object) -> bool:
    """Whether ``value`` is an expression that is no constant."""
    return isinstance(value, PrimExpr) and not isinstance(value, IntImm | FloatImm)
