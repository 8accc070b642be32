"""Powers of e and 2 in float64, expm1 and tanh, within 2 ulp on a target with fma.

The way is that of ``exponentials``. The coefficients are fits of our own: Lawson's iteration (least
squares on 160 Chebyshev nodes, weighted by the last error) in 45 digits; the first three were
rounded one after the other, each time fitting the rest anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir.expr import Sub
from weft.tir.lowering.mathematics.formula import Formula

# exp(r) = 1 + r + r**2 * P(r) for |r| <= ln(2) / 2
_EXP: Final = (
    0.5, 0.16666666666666677, 0.04166666666666668, 0.00833333333332144, 0.0013888888888877124,
    0.00019841269886574498, 2.4801587341792327e-05, 2.75572437807902e-06, 2.75572578407015e-07,
    2.510918067853635e-08, 2.0920008925314897e-09,
)  # fmt: skip
# 2**r = 1 + r * P(r) for |r| <= 1/2
_EXP2: Final = (
    0.6931471805599453, 0.2402265069591012, 0.05550410866482261, 0.009618129107597632,
    0.001333355814625541, 0.00015403530453600707, 1.5252733948816567e-05, 1.321543673383042e-06,
    1.0178021292521794e-07, 7.0735701925767055e-09, 4.460363307353224e-10,
)  # fmt: skip
LN2: Final = math.log(2)
LN2_REST: Final = 2.3190468138462996e-17
"""What log(2) is more than ``LN2``, which is rounded."""
_TANH_ONE: Final = 19.1
"""x from which on tanh is 1."""
_SHIFT: Final = 1078
"""What is added to an exponent, so that it is never negative."""


def _nearest_field(k: Formula, x: PrimExpr, factor: float, plus: int) -> tuple[PrimExpr, PrimExpr]:
    """The whole number n nearest to ``x * factor``, and an integer whose last bits are
    ``n + plus``; see ``exponentials``.
    """
    magic = 6755399441055744.0 + plus
    shifted = k.let("shifted", k.fma(x, factor, magic))
    return k.let("n", k.sub(shifted, magic)), k.bits(shifted)


def as_exponent(k: Formula, bits: PrimExpr) -> PrimExpr:
    """The power of two whose biased exponent is the number in the last bits: 1023 → 1.0."""
    return k.from_bits(k.integer("shift_left", bits, 52))


def power_of_two(
    k: Formula, x: PrimExpr, factor: float, plus: int = 0
) -> tuple[PrimExpr, PrimExpr]:
    """The whole number n nearest to ``x * factor``, and ``2**(n + plus)``, a normal number."""
    n, bits = _nearest_field(k, x, factor, 1023 + plus)
    return n, k.let("power", as_exponent(k, bits))


def reduced(k: Formula, x: PrimExpr, n: PrimExpr, scale: float = 1.0) -> PrimExpr:
    """x - n * log(2) * scale, as a name; ``scale`` is a power of two."""
    return k.let("r", k.fma(n, -LN2_REST * scale, k.fma(n, -LN2 * scale, x)))


def _scaled(k: Formula, r: PrimExpr, bits: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
    """``2**n`` times the polynomial, where the last bits of ``bits`` are ``n + _SHIFT``.

    The polynomial is multiplied by two powers of two whose biased exponents are the halves of that
    number, so that only the last product is rounded where the result is below the normal numbers.
    """
    bits = k.let("bits", bits)
    value = k.let("value", k.poly(r, [c * 2.0 ** (2046 - _SHIFT) for c in coefficients]))
    half = k.let("half", k.integer("shift_right", bits, 1))
    value = k.mul(value, as_exponent(k, Sub(bits, half)))
    return k.mul(value, as_exponent(k, half))


def exp(k: Formula, x: PrimExpr) -> PrimExpr:
    """``e**x``."""
    x = k.clamp(x, -746.0, 710.0)
    n, bits = _nearest_field(k, x, 1.0 / LN2, _SHIFT)
    return _scaled(k, reduced(k, x, n), bits, (1.0, 1.0, *_EXP))


def exp_of_sum(k: Formula, x: PrimExpr, more: PrimExpr) -> PrimExpr:
    """``e**(x + more)``, where the sum is at least -746 and its rounding would lose digits."""
    n, bits = _nearest_field(k, k.add(x, more), 1.0 / LN2, _SHIFT)
    return _scaled(k, k.let("r", k.add(reduced(k, x, n), more)), bits, (1.0, 1.0, *_EXP))


def exp2(k: Formula, x: PrimExpr) -> PrimExpr:
    """``2**x``."""
    x = k.clamp(x, -1076.0, 1025.0)
    n, bits = _nearest_field(k, x, 1.0, _SHIFT)
    return _scaled(k, k.let("r", k.sub(x, n)), bits, (1.0, *_EXP2))


def expm1(k: Formula, x: PrimExpr) -> PrimExpr:
    """``e**x - 1`` as ``2**n * (e**r - 1) + (2**n - 1)``, of which half is computed and doubled."""
    size = k.clamp(x, -38.0, 710.0)
    n, half = power_of_two(k, size, 1.0 / LN2, -1)
    growth = less_one(k, reduced(k, size, n))
    value = k.let("half_value", k.fma(half, growth, k.sub(half, 0.5)))
    return k.select(k.equal(x, 0.0), x, k.add(value, value))


def less_one(k: Formula, r: PrimExpr) -> PrimExpr:
    """``e**r - 1`` for ``|r| <= log(2) / 2``; ``r`` is a name."""
    return k.fma(k.mul(r, r), k.poly(r, _EXP), r)


def tanh(k: Formula, x: PrimExpr) -> PrimExpr:
    """The hyperbolic tangent as in ``exponentials``: ``(1 - s - v) / (1 + s + v)``."""
    size = k.let("size", k.at_most(k.let("size", k.call("fabs", x)), _TANH_ONE))
    n, s = power_of_two(k, size, -2.0 / LN2)
    r = reduced(k, k.let("minus", k.minus(size)), n, 0.5)
    v = k.let("v", k.mul(s, less_one(k, k.let("twice", k.add(r, r)))))
    less, more = k.let("less", k.sub(1.0, s)), k.let("more", k.add(1.0, s))
    above, below = k.let("above", k.sub(less, v)), k.let("below", k.add(more, v))
    lost = k.sub(k.sub(less, above), v), k.add(k.sub(more, below), v)
    return k.call("copysign", k.quotient(above, lost[0], below, lost[1]), x)


def sigmoid(k: Formula, x: PrimExpr) -> PrimExpr:
    """``1 / (1 + e**-x)`` as ``q / (s + q)``: -x is ``n * log(2) - r``, ``q`` e**r, ``s`` 2**n.

    Both s and q are multiplied by 2**-64, so that s does not overflow.
    """
    x = k.clamp(x, -746.0, 60.0)
    n, s = power_of_two(k, x, -1.0 / LN2, -64)
    r = k.let("r", k.fma(n, LN2_REST, k.fma(n, LN2, x)))
    q = k.let("q", k.poly(r, [c * 2.0**-64 for c in (1.0, 1.0, *_EXP)]))
    below = k.let("below", k.add(s, q))
    is_less = k.let("is_less", k.less(s, q))
    large, small = k.select(is_less, q, s), k.select(is_less, s, q)
    return k.quotient(q, 0.0, below, k.add(k.sub(large, below), small))
