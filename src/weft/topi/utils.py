"""Small conversions that users of topi call by these names."""

from __future__ import annotations

from typing import Any

from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.topi.extents import const_int
from weft.topi.simplify import simplified


def get_const_int(expr: Any) -> int:
    """The Python int of a constant; raises IRTypeError for a symbolic value."""
    return const_int(expr, "get_const_int")


def get_const_float(expr: Any) -> float:
    """The Python float of a constant."""
    return float(expr)


def get_const_tuple(in_tuple: Any) -> tuple[Any, ...]:
    """A shape as a tuple: Python ints where constant, expressions elsewhere."""
    values = []
    for item in in_tuple:
        simple = simplified(item)
        values.append(simple.value if isinstance(simple, IntImm) else simple)
    return tuple(values)


def equal_const_int(expr: Any, value: int) -> bool:
    """Whether ``expr`` is the constant ``value``."""
    simple = simplified(expr)
    return isinstance(simple, int | IntImm) and int(simple) == value


def simplify(expr: Any) -> Any:
    """A simpler expression; a constant comes back as a Python number."""
    simple = simplified(expr)
    if isinstance(simple, IntImm | FloatImm):
        return simple.value
    return simple


def prod(x: Any) -> Any:
    """The product of a sequence; 1 of none."""
    result: Any = 1
    for item in x:
        result = item if isinstance(result, int) and result == 1 else result * item
    return result


def is_symbolic(value: Any) -> bool:
    """Whether ``value`` is an expression that is no constant."""
    return isinstance(value, PrimExpr) and not isinstance(value, IntImm | FloatImm)
