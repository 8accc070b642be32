"""Floats that a program keeps between two constants before they become integers.

``T.Cast("uint8", T.max(T.min(T.round(x), 255.0), 0.0))`` cannot leave the range of uint8: of the
guards of a conversion, only the one against NaN is needed. And since the ends are whole numbers,
rounding may as well come last, next to the conversion, where one instruction does both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeGuard

from weft.ir.expr import FloatImm, PrimExpr, integer_range
from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.intrinsic import unchecked_cast
from weft.tir.lowering.building import Names, like
from weft.tir.op import const

_ROUNDINGS: Final = ("tir.round", "tir.nearbyint")
"""Intrinsics that give the nearest whole number, the even one of two."""


def is_rounded(expr: PrimExpr) -> TypeGuard[e.Call]:
    """Whether an expression is a float rounded to a whole number."""
    return isinstance(expr, e.Call) and isinstance(expr.op, Op) and expr.op.name in _ROUNDINGS


@dataclass(frozen=True)
class Clipped:
    """``value`` with what is below ``low`` or above ``high`` set to that end; NaN stays NaN."""

    value: PrimExpr
    low: float
    high: float

    @property
    def has_whole_ends(self) -> bool:
        """Whether both ends are whole numbers, so that rounding may come after clipping."""
        return self.low.is_integer() and self.high.is_integer()


def clipped(expr: PrimExpr, dtype: DataType) -> Clipped | None:
    """A float that is kept within ``dtype`` and around 0; None where it is not seen to be.

    >>> from weft.script import tir as T
    >>> x = e.Var("x", "float32")
    >>> clipped(T.min(T.max(x, T.float32(-9)), T.float32(7)), DataType("int8"))
    Clipped(value=x, low=-9.0, high=7.0)
    """
    if not isinstance(expr, (e.Max, e.Min)) or not isinstance(expr.a, (e.Max, e.Min)):
        return None
    if not expr.dtype.is_float or expr.dtype.bits < 32:
        return None
    outer, inner = _constant_of(expr.b), _constant_of(expr.a.b)
    if outer is None or inner is None or type(expr) is type(expr.a):
        return None
    low, high = (outer, inner) if isinstance(expr, e.Max) else (inner, outer)
    least, largest = integer_range(dtype.element)
    if not least <= low <= 0 <= high <= largest:
        return None
    return Clipped(expr.a.a, low, high)


def _constant_of(expr: PrimExpr) -> float | None:
    if isinstance(expr, e.Broadcast):
        expr = expr.value
    # As its type holds it: 2**31 - 1 is 2**31 in float32.
    return float(expr.dtype.numpy.type(expr.value)) if isinstance(expr, FloatImm) else None


def as_integer(part: Clipped, dtype: DataType) -> PrimExpr:
    """The clipped float as an integer; NaN becomes 0.

    ``x if x > low else low`` is the lower end for NaN, which is 0 for most unsigned types. Where it
    is another number, NaN is set to 0 before.
    """
    names, value = Names(), part.value
    rounding = value if is_rounded(value) and part.has_whole_ends else None
    if rounding is not None:
        value = rounding.args[0]
    low, high = (const(end, value.dtype) for end in (part.low, part.high))
    value = names.of("x", value)
    if part.low:
        value = names.of("number", e.Select(e.EQ(value, value), value, const(0, value.dtype)))
    value = names.of("raised", e.Select(e.GT(value, low), value, low))
    within: PrimExpr = e.Select(e.LT(value, high), value, high)
    if rounding is not None:
        within = rounding.with_(args=(within,))
    middle = dtype if dtype.bits >= 32 else like("int32", dtype)
    number = unchecked_cast(middle, within)
    return names.around(number if middle is dtype else e.Cast(dtype, number))
