"""Powers of e, 2 and 10, and functions that are computed from one: expm1, tanh, sigmoid.

e**x is 2**n * e**r: n is the whole number nearest to x / log(2), which gives the exponent of the
result, and r = x - n * log(2) is so small that a short polynomial gives e**r (Cody and Waite,
*Software Manual for the Elementary Functions*, 1980). Errors are at most 2 ulp. The coefficients
are minimax fits of our own on the interval that the comment of each names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir.expr import Not, Sub
from weft.tir.lowering.mathematics.formula import Formula

# exp(r) = 1 + r + r**2 * P(r) for |r| <= ln(2) / 2
EXP: Final = (0.49999993412261523, 0.1666652010554261, 0.041668394259006265,
               0.008368780622560848, 0.0013814464761351276)  # fmt: skip
# exp(2 * r) = 1 + 2 * r + 2 * r * (r * P(r)) for |r| <= ln(2) / 4
_EXP_TWICE: Final = tuple([c * 2.0**power for power, c in enumerate(EXP, 1)])
# 3 / 2 * exp(r); the factor of r**3 is a little less than the best, where sigmoid rounds most
_EXP_HALVES: Final = tuple([1.5 * c for c in (1.0, 1.0, EXP[0], 0.16666514145, *EXP[2:])])
# 2**r = 1 + r * P(r) for |r| <= 1/2
_EXP2: Final = (0.6931471824645996, 0.24022650718688965, 0.05550406128168106,
                0.009618086740374565, 0.0013336754636839032, 0.0001545208360766992,
                1.4652298887085635e-05)  # fmt: skip
# in float64: 2**r = 1 + r * P(r) for |r| <= 1/2
_EXP64: Final = (0.6931471805598846, 0.2402265069572126, 0.05550410866845459,
                 0.009618129181593592, 0.0013333557620605811, 0.00015403440540095984,
                 1.5252992076593496e-05, 1.325841790247037e-06, 1.0148074151400753e-07)  # fmt: skip

_TANH_ONE: Final = 9.5
"""x from which on tanh is 1 in float32."""
LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723212e-6
"""log(2) in two parts; whole numbers up to 2**8 times the first part are exact."""


def _nearest_field(k: Formula, x: PrimExpr, factor: float, plus: int) -> tuple[PrimExpr, PrimExpr]:
    """The whole number n nearest to ``x * factor``, and an integer whose last nine bits are
    ``n + plus``.

    The sum with a large constant is rounded to a whole number, which then stands in its last bits
    (``Formula.nearest``). ``plus`` is added to the constant, so it costs no operation.
    """
    magic = 12582912.0 + plus
    shifted = k.let("shifted", k.fma(x, factor, magic))
    return k.let("n", k.sub(shifted, magic)), k.bits(shifted)


def _as_exponent(k: Formula, bits: PrimExpr) -> PrimExpr:
    """The power of two whose biased exponent is the number in the last bits: 127 → 1.0."""
    return k.from_bits(k.integer("shift_left", bits, 23))


def power_of_two(
    k: Formula, x: PrimExpr, factor: float, plus: int = 0
) -> tuple[PrimExpr, PrimExpr]:
    """The whole number n nearest to ``x * factor``, and ``2**(n + plus)``; both are names.

    The power has to be a normal number.
    """
    n, bits = _nearest_field(k, x, factor, 127 + plus)
    return n, k.let("power", _as_exponent(k, bits))


def reduced(k: Formula, x: PrimExpr, n: PrimExpr) -> PrimExpr:
    """x - n * log(2), as a name."""
    return k.let("r", k.fma(n, -LN2_LOW, k.fma(n, -LN2_HIGH, x)))


def _exp_of_rest(k: Formula, x: PrimExpr, n: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
    """``e**r`` at ``r = x - n * log(2)``, times the first one of ``coefficients``."""
    if k.instructions.fma:
        return k.poly(reduced(k, x, n), coefficients)
    return k.fma(_exp_less_one(k, x, n, -1.0), coefficients[0], coefficients[0])


def _exp_less_one(k: Formula, x: PrimExpr, n: PrimExpr, sign: float) -> PrimExpr:
    """``e**r - 1`` at ``r = x + sign * n * log(2)``, on a target without fma.

    The leading part of r, which is exact, is added last, to a sum of small terms, as in Sun's
    fdlibm. By Horner's rule with rounded products exp was 1.2 ulp off.
    """
    leading = k.let("leading", k.fma(n, sign * LN2_HIGH, x))
    rest = k.let("rest", k.mul(n, sign * LN2_LOW))
    r = k.let("r", k.add(leading, rest))
    return k.add(leading, k.fma(k.mul(r, r), k.poly(r, EXP), rest))


def exp(k: Formula, x: PrimExpr) -> PrimExpr:
    """``e**x``; where the target has ``T.scaleb``, that multiplies by the power of two.

    It leaves out lanes whose result is 0, since a product below the normal numbers takes a hundred
    cycles: attention masks scores by -infinity, and e of that is asked for thousands of times.
    """
    if not k.instructions.scaleb:
        return _exp_in_two_steps(k, k.clamp(x, -104.0, 89.0))
    is_zero = k.let("is_zero", k.less(x, -104.0))
    within = k.let("within", k.select(is_zero, 0.0, k.at_most(x, 89.0)))
    n, _ = k.nearest(within, 1.0 / math.log(2))
    n = k.let("n", n)
    return k.call("scaleb", _exp_of_rest(k, within, n, (1.0, 1.0, *EXP)), n, Not(is_zero))


def _exp_in_two_steps(k: Formula, x: PrimExpr) -> PrimExpr:
    """``e**x`` for -104 <= x <= 89, where 2**n may be too small or too large for one float.

    It is ``2**103 * e**r`` times two powers of two whose biased exponents are the halves of
    n + 151: only the last product is rounded. For n = -150 one of the two is 0, and so is its
    power, which is no number below the normal ones and takes no time either.
    """
    n, field = _nearest_field(k, x, 1.0 / math.log(2), 151)
    bits = k.let("bits", field)
    coefficients = [c * 2.0**103 for c in (1.0, 1.0, *EXP)]
    return _by_halves(k, _exp_of_rest(k, x, n, coefficients), bits)


def _by_halves(k: Formula, value: PrimExpr, bits: PrimExpr) -> PrimExpr:
    """A value times the two powers of two whose biased exponents are the halves of ``bits``."""
    value = k.let("value", value)
    half = k.let("half", k.integer("shift_right", bits, 1))
    value = k.mul(value, _as_exponent(k, Sub(bits, half)))
    return k.mul(value, _as_exponent(k, half))


def exp2(k: Formula, x: PrimExpr) -> PrimExpr:
    """``2**x`` as ``2**n * 2**r``; without fma it is computed in float64."""
    if not k.instructions.fma:
        d = k.double()
        return d.narrow(exp2_64(d, d.widen(k.clamp(x, -152.0, 129.0))))
    if k.instructions.scaleb:
        is_zero = k.let("is_zero", k.less(x, -151.0))
        within = k.let("within", k.select(is_zero, 0.0, k.at_most(x, 129.0)))
        n = k.let("n", k.nearest(within)[0])
        value = k.poly(k.let("r", k.sub(within, n)), (1.0, *_EXP2))
        return k.call("scaleb", value, n, Not(is_zero))
    x = k.clamp(x, -151.0, 129.0)
    n, field = _nearest_field(k, x, 1.0, 151)
    value = k.poly(k.let("r", k.sub(x, n)), [c * 2.0**103 for c in (1.0, *_EXP2)])
    return _by_halves(k, value, k.let("bits", field))


def exp10(k: Formula, x: PrimExpr) -> PrimExpr:
    """``10**x``, computed in float64 as a power of 2."""
    d = k.double()
    wide = d.mul(d.widen(k.clamp(x, -46.0, 39.0)), math.log2(10))
    return d.narrow(exp2_64(d, wide))


def exp2_64(d: Formula, x: PrimExpr) -> PrimExpr:
    """``2**x`` in float64 for ``|x| < 1000``, with a relative error of 1e-13."""
    x = d.let("wide", x)
    n, power = d.nearest(x)
    r = d.let("r", d.sub(x, n))
    p = d.fma(r, d.poly(r, _EXP64), 1.0)
    return d.mul(p, d.from_bits(d.integer("shift_left", d.plus(power, 1023), 52)))


def expm1(k: Formula, x: PrimExpr) -> PrimExpr:
    """``e**x - 1`` as ``2**n * (e**r - 1) + (2**n - 1)``.

    Half of it is computed, and doubled at last: n may be 128, and 2**128 is no float32.
    """
    size = k.clamp(x, -18.0, 89.0)
    n, half = power_of_two(k, size, 1.0 / math.log(2), -1)
    r = reduced(k, size, n)
    p = k.fma(k.mul(r, r), k.poly(r, EXP), r)
    value = k.let("half_value", k.fma(half, p, k.sub(half, 0.5)))
    return k.select(k.equal(x, 0.0), x, k.add(value, value))


def tanh(k: Formula, x: PrimExpr) -> PrimExpr:
    """The hyperbolic tangent as ``(1 - e) / (1 + e)`` with ``e = exp(-2 * abs(x))``.

    ``e`` is ``s + v`` where s is a power of two. So the two are ``(1 - s) - v`` and
    ``(1 + s) + v``, of which the first differences and sums are exact. Nothing cancels, not even
    near 0, where s is 1.
    """
    size = k.let("size", k.at_most(k.let("size", k.call("fabs", x)), _TANH_ONE))
    n, s = power_of_two(k, size, -2.0 / math.log(2))
    r = k.let("r", k.fma(n, -math.log(2) / 2, k.minus(size)))
    twice = k.let("twice", k.mul(s, k.add(r, r)))
    v = k.let("v", k.fma(twice, k.mul(r, k.poly(r, _EXP_TWICE)), twice))
    value = k.div(k.sub(k.sub(1.0, s), v), k.add(k.add(s, 1.0), v))
    return k.call("copysign", value, x)


def sigmoid(k: Formula, x: PrimExpr) -> PrimExpr:
    """``1 / (1 + e**-x)`` as ``q / (s + q)``: -x is ``n * log(2) - r``, ``q`` e**r, ``s`` 2**n.

    Both s and q are multiplied by 2**-32, so that s does not overflow, and by 3/2: then ``s + q``,
    for n > 1, is in the upper half between two powers of two, where rounding it loses less. Without
    that the result was 2.3 ulp off.
    """
    x = k.clamp(x, -104.0, 30.0)
    n, s = power_of_two(k, x, -1.0 / math.log(2), -32)
    if not k.instructions.fma:
        return _share(k.double(), s, _exp_less_one(k, x, n, 1.0))
    s = k.let("s", k.from_bits(k.integer("bitwise_or", k.bits(s), 0x400000)))
    r = k.let("r", k.fma(n, LN2_LOW, k.fma(n, LN2_HIGH, x)))
    q = k.let("q", k.poly(r, [c * 2.0**-32 for c in _EXP_HALVES]))
    return k.div(q, k.add(s, q))


def _share(d: Formula, s: PrimExpr, t: PrimExpr) -> PrimExpr:
    """``q / (2**32 * s + q)`` with ``q = 1 + t``, in float64: in float32 each rounding counts."""
    q = d.let("q", d.add(d.widen(t), 1.0))
    return d.narrow(d.div(q, d.fma(d.widen(s), 2.0**32, q)))
