"""fmod and hypot on a target with fma."""

from __future__ import annotations

import math
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir import expr as e
from weft.tir import op
from weft.tir.intrinsic import all_lanes, likely
from weft.tir.lowering.mathematics.formula import Formula
from weft.tir.lowering.mathematics.library import by_lanes

_LARGEST: Final = {32: 2.0**23, 64: 2.0**52}
"""Quotients beyond it are left to the C library."""
_SQUARED: Final = 2.0**500
"""The square of a larger number, or of a smaller one than its reciprocal, may be no float."""
_SCALE: Final = 2.0**600
_EXACT: Final = 2.0**28
"""The same without fma, of numbers of float32 in float64: their product is exact."""


def fmod(k: Formula, x: PrimExpr, y: PrimExpr) -> PrimExpr:
    """The exact remainder of x / y with the sign of x.

    A quotient below 2**23 is rounded to the integer above it, if it is wrong at all. ``x - q * y``
    of such a q is a float, as is the remainder itself: both are multiples of the last bit of y (or
    of x, if that is smaller) and at most y in size. So neither is rounded in a fused operation.
    """
    a, b = k.let("a", k.call("fabs", x)), k.let("b", k.call("fabs", y))
    quotient = k.let("quotient", k.div(a, b))
    largest = _LARGEST[k.dtype.bits] if k.instructions.fma else _EXACT
    is_near = e.LT(quotient, k.number(largest))
    near, far = k.branch(), k.branch()
    formula = near.around(_of_quotient(near, a, b, quotient, x))
    function = far.around(by_lanes(k.dtype, "fmod", x, y))
    return op.if_then_else(likely(all_lanes(is_near)), formula, function)


def _of_quotient(k: Formula, a: PrimExpr, b: PrimExpr, quotient: PrimExpr, x: PrimExpr) -> PrimExpr:
    whole = k.let("whole", k.call("trunc", quotient))
    rest = k.let("rest", k.fma(k.minus(whole), b, a))
    rest = k.select(k.less(rest, 0.0), k.add(rest, b), rest)
    return k.call("copysign", k.select(k.equal(whole, 0.0), a, rest), x)


def hypot(k: Formula, x: PrimExpr, y: PrimExpr) -> PrimExpr:
    """The root of x**2 + y**2 of float32, in float64; infinite if either is, NaN or not."""
    d = k.double()
    a, b = d.let("a", d.widen(x)), d.let("b", d.widen(y))
    value = d.narrow(d.call("sqrt", d.fma(a, a, d.mul(b, b))))
    return _or_infinite(k, x, y, value)


def hypot_64(k: Formula, x: PrimExpr, y: PrimExpr) -> PrimExpr:
    """The same of float64: scaled by a power of two where a square would be too large or small."""
    a, b = k.let("a", k.call("fabs", x)), k.let("b", k.call("fabs", y))
    high = k.let("high", k.select(k.more(a, b), a, b))
    low = k.let("low", k.select(k.more(a, b), b, a))
    is_large, is_small = k.more(high, _SQUARED), k.less(high, 1 / _SQUARED)
    is_large, is_small = k.let("is_large", is_large), k.let("is_small", is_small)
    scale = k.select(is_large, 1 / _SCALE, k.select(is_small, _SCALE, 1.0))
    back = k.select(is_large, _SCALE, k.select(is_small, 1 / _SCALE, 1.0))
    scale = k.let("scale", scale)
    high, low = k.let("high", k.mul(high, scale)), k.let("low", k.mul(low, scale))
    root = k.call("sqrt", k.fma(high, high, k.mul(low, low)))
    return _or_infinite(k, x, y, k.mul(root, back))


def _or_infinite(k: Formula, x: PrimExpr, y: PrimExpr, value: PrimExpr) -> PrimExpr:
    for number in (x, y):
        value = k.select(k.equal(k.call("fabs", number), math.inf), math.inf, value)
    return value
