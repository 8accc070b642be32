"""asin, acos, atan and atan2 of float32 and float64 by the same formulas, on a target with fma.

atan of a number above 1 is pi/2 less that of its reciprocal; asin of a number above 1/2 is pi/2
less twice that of sqrt((1 - x) / 2). Errors are at most 2 ulp. The coefficients are fits of our own
for the smallest relative error (``exponentials64`` says how).
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir import expr as e
from weft.tir.lowering.mathematics.formula import Formula

# atan(t) = t + t**3 * P(t**2) for 0 <= t <= 1
_ATAN: Final = {
    32: (-0.33333298563957214, 0.1999853104352951, -0.14264050126075745, 0.10951154679059982,
         -0.0840037390589714, 0.05790407583117485, -0.031123843044042587, 0.01088531780987978,
         -0.0017870200099423528),
    64: (-0.33333333333333287, 0.19999999999990617, -0.14285714285044937, 0.11111111086668106,
         -0.09090908550928427, 0.07692299753323807, -0.06666584059542296, 0.05881718181229908,
         -0.05259443083794377, 0.04744959153434601, -0.042864830126771856, 0.03821209165199258,
         -0.03278896462858719, 0.02615654276483574, -0.01861948216743352, 0.011322091437833325,
         -0.00561522212304803, 0.0021529151959131044, -0.0005933227688422079,
         0.0001039577238243467, -8.662182305123464e-06),
}  # fmt: skip
# asin(s) = s + s**3 * P(s**2) for 0 <= s <= 1/2
_ASIN: Final = {
    32: (0.16666753590106964, 0.07495249807834625, 0.0454765260219574, 0.024148887023329735,
         0.04221843183040619),
    64: (0.16666666666666763, 0.07499999999970122, 0.04464285717526561, 0.03038194267619514,
         0.022372215881416163, 0.017351595922402555, 0.013981013639081141, 0.0113973319855773,
         0.010789108361513094, 0.003672970561139408, 0.021788776152388445, -0.021114123335357733,
         0.03270056830092031),
}  # fmt: skip
_HALF_PI: Final = {
    32: (1.5707963705062866, -4.371138828673793e-08),
    64: (1.5707963267948966, 6.123233995736766e-17),
}
"""pi / 2 as a sum of two floats of each type."""


def _half_pi(k: Formula) -> tuple[float, float]:
    return _HALF_PI[k.dtype.bits]


def atan(k: Formula, x: PrimExpr) -> PrimExpr:
    """The arc tangent."""
    size = k.let("size", k.call("fabs", x))
    is_above = k.let("is_above", k.more(size, 1.0))
    t = k.let("t", k.select(is_above, k.div(1.0, size), size))
    angle = k.let("angle", _below_one(k, t))
    return k.call("copysign", k.select(is_above, _rest_of(k, angle, 1.0), angle), x)


def _below_one(k: Formula, t: PrimExpr) -> PrimExpr:
    """The arc tangent of 0 <= t <= 1, a name."""
    square = k.let("square", k.mul(t, t))
    return k.fma(k.mul(square, t), k.poly(square, _ATAN[k.dtype.bits]), t)


def _rest_of(k: Formula, angle: PrimExpr, quarters: float) -> PrimExpr:
    """``quarters * pi/2 - angle``."""
    high, low = _half_pi(k)
    return k.sub(quarters * high, k.sub(angle, quarters * low))


def atan2(k: Formula, y: PrimExpr, x: PrimExpr) -> PrimExpr:
    """The angle of the point (x, y).

    The quotient of the smaller and the larger coordinate is at most 1. Of two zeros it counts as 0,
    of two infinities as 1.
    """
    a, b = k.let("a", k.call("fabs", y)), k.let("b", k.call("fabs", x))
    is_steep = k.let("is_steep", k.more(a, b))
    low = k.let("low", k.select(is_steep, b, a))
    high = k.let("high", k.select(is_steep, a, b))
    ratio = k.select(k.equal(low, high), 1.0, k.div(low, high))
    t = k.let("t", k.select(k.equal(k.add(low, high), 0.0), 0.0, ratio))
    angle = k.let("angle", _below_one(k, t))
    angle = k.let("angle", k.select(is_steep, _rest_of(k, angle, 1.0), angle))
    is_left = k.less(k.call("copysign", 1.0, x), 0.0)
    return k.call("copysign", k.select(is_left, _rest_of(k, angle, 2.0), angle), y)


def _arc(k: Formula, size: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    """Whether ``size``, a name, is above 1/2; and the arc sine of it, or of sqrt((1 - size) / 2),
    as a float and a small number that is to be added.
    """
    is_above = k.let("is_above", k.more(size, 0.5))
    half = k.fma(size, -0.5, 0.5)
    square = k.let("square", k.select(is_above, half, k.mul(size, size)))
    s = k.let("s", k.select(is_above, k.call("sqrt", square), size))
    return is_above, s, k.let("more", k.mul(k.mul(square, s), k.poly(square, _ASIN[k.dtype.bits])))


def asin(k: Formula, x: PrimExpr) -> PrimExpr:
    """The arc sine; above 1/2 it is pi/4 + (pi/4 - 2 * arc), so that what is rounded is small."""
    is_above, s, more = _arc(k, k.let("size", k.call("fabs", x)))
    high, low = _half_pi(k)
    above = k.sub(k.fma(s, -2.0, high / 2), k.fma(more, 2.0, -low))
    above = k.add(above, high / 2)
    return k.call("copysign", k.select(is_above, above, k.add(s, more)), x)


def acos(k: Formula, x: PrimExpr) -> PrimExpr:
    """The arc cosine: of x > 1/2 twice an arc, of x < -1/2 pi less that, else pi/2 less one."""
    is_above, s, more = _arc(k, k.let("size", k.call("fabs", x)))
    arc = k.let("arc", k.add(s, more))
    twice = k.let("twice", k.add(arc, arc))
    is_below = e.LT(x, k.number(0.0))
    outside = k.select(is_below, _rest_of(k, twice, 2.0), twice)
    return k.select(
        is_above, outside, _rest_of(k, k.let("signed", k.call("copysign", arc, x)), 1.0)
    )
