"""Logarithms of float64, and those to base 2 and 10 of float32, on a target with fma.

The logarithm of 1 + f is ``f - c``, where c is small. A polynomial gives it: with a quotient, as in
Sun's fdlibm, it would be shorter, but a division takes as long as twenty operations. Errors are at
most 2 ulp. The coefficients are fits of our own (``exponentials64`` says how).
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir.lowering.mathematics import logarithms
from weft.tir.lowering.mathematics.formula import Formula
from weft.tir.lowering.mathematics.logarithms import log_special

# log(1 + f) = f - f**2 / 2 + f**3 * P(f) for sqrt(1/2) <= 1 + f <= sqrt(2)
_LOG: Final = (
    0.3333333333333325, -0.24999999999987552, 0.20000000000027154, -0.16666666669901745,
    0.1428571428494856, -0.12499999688392287, 0.1111111086254146, -0.10000015114058224,
    0.09090933110852513, -0.0833292357746898, 0.07691359848915427, -0.07149137851557723,
    0.06686348536961138, -0.062010597021600986, 0.05659743222482801, -0.056462232568177846,
    0.06508611311065637, -0.06072190722732314, 0.02690432232812092,
)  # fmt: skip
_ROOT_HALF_BITS: Final = 0x3FE6A09E667F3BCD
_BIAS: Final = 1023
_WHOLE: Final = 0x4330000000000000
"""The bits of 2**52: of a sum with a smaller whole number the last bits are that number."""
_LARGE: Final = 2.0**28
"""x from which on x and sqrt(x**2 + 1) are as good as the same."""
Parts = tuple[float, float]
_LN2: Final[Parts] = (0.6931471803691238, 1.9082149292705877e-10)
"""log(2); whole numbers up to 2**11 times the first part are exact."""
_LOG10_2: Final[Parts] = (0.3010299955494702, 1.1451100898021838e-10)
_TO_BASE_2: Final[Parts] = (1.4426950408889634, 2.0355273740931033e-17)
_TO_BASE_10: Final[Parts] = (0.4342944819032518, 1.098319650216765e-17)
_TO_BASE_2_SINGLE: Final[Parts] = (1.4426950216293335, 1.925963033500011e-08)
_TO_BASE_10_SINGLE: Final[Parts] = (0.4342944920063019, -1.0103049952192578e-08)
_LOG10_2_SINGLE: Final[Parts] = (0.301025390625, 4.605038981195214e-06)


def _power_and_mantissa(k: Formula, x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """``x = 2**n * m`` of a normal number: n as a float, and m from sqrt(1/2) to sqrt(2)."""
    bits = k.let("bits", k.less_by(k.bits(x), _ROOT_HALF_BITS))
    field = k.integer("shift_right", k.plus(bits, _BIAS << 52), 52)
    whole = k.from_bits(k.integer("bitwise_or", field, _WHOLE))
    fraction = k.integer("bitwise_and", bits, (1 << 52) - 1)
    return k.sub(whole, 2.0**52 + _BIAS), k.from_bits(k.plus(fraction, _ROOT_HALF_BITS))


def _split(k: Formula, x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """``x = 2**exponent * (1 + f)``: the exponent as a float, and f; both are names."""
    is_tiny = k.let("is_tiny", k.less(x, 2.2250738585072014e-308))
    normal = k.let("normal", k.select(is_tiny, k.mul(x, 2.0**54), x))
    n, m = _power_and_mantissa(k, normal)
    n = k.sub(n, k.select(is_tiny, 54.0, 0.0))
    return k.let("exponent", n), k.let("f", k.sub(m, 1.0))


def _split_one_plus(k: Formula, x: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    """What ``_split`` gives for 1 + x: f = x / 2**exponent + (2**-exponent - 1), rounded once; and
    ``2**-exponent``.

    From 2**55 on, where adding 1 changes nothing, f is that of x.
    """
    n, m = _power_and_mantissa(k, k.let("sum", k.add(x, 1.0)))
    n = k.let("exponent", n)
    magic = 2.0**52 + _BIAS
    field = k.bits(k.sub(magic, n))
    scale = k.let("scale", k.from_bits(k.integer("shift_left", field, 52)))
    f = k.fma(x, scale, k.sub(scale, 1.0))
    return n, k.let("f", k.select(k.more(x, 2.0**55), k.sub(m, 1.0), f)), scale


def _lost(k: Formula, f: PrimExpr) -> PrimExpr:
    """f - log(1 + f), a number much smaller than f."""
    square = k.let("square", k.mul(f, f))
    return k.fma(square, 0.5, k.mul(k.mul(square, k.minus(f)), k.poly(f, _LOG)))


def _log_of(k: Formula, exponent: PrimExpr, f: PrimExpr, rest: PrimExpr | None = None) -> PrimExpr:
    """log(2**exponent * (1 + f + rest)); ``rest`` is small."""
    lost = _lost(k, f) if rest is None else k.sub(_lost(k, f), rest)
    lost = k.fma(exponent, -_LN2[1], lost)
    return k.fma(exponent, _LN2[0], k.sub(f, lost))


def log(k: Formula, x: PrimExpr) -> PrimExpr:
    """The natural logarithm."""
    return log_special(k, x, _log_of(k, *_split(k, x)))


def log1p(k: Formula, x: PrimExpr) -> PrimExpr:
    """``log(1 + x)``."""
    exponent, f, _ = _split_one_plus(k, x)
    return logarithms.log1p_special(k, x, _log_of(k, exponent, f))


def log2(k: Formula, x: PrimExpr) -> PrimExpr:
    """The logarithm to base 2."""
    exponent, f = _split(k, x)
    return log_special(k, x, _in_base(k, f, _lost(k, f), _TO_BASE_2, (exponent, 0.0)))


def log10(k: Formula, x: PrimExpr) -> PrimExpr:
    """The logarithm to base 10."""
    exponent, f = _split(k, x)
    power = k.let("power", k.mul(exponent, _LOG10_2[0])), k.mul(exponent, _LOG10_2[1])
    return log_special(k, x, _in_base(k, f, _lost(k, f), _TO_BASE_10, power))


def _in_base(
    k: Formula, f: PrimExpr, lost: PrimExpr, factor: Parts, power: tuple[PrimExpr, PrimExpr | float]
) -> PrimExpr:
    """``(f - lost) * factor`` plus a logarithm of a power of two; both are sums of two floats."""
    high = k.let("high", k.mul(f, factor[0]))
    rest = k.fma(f, factor[0], k.minus(high))
    rest = k.fma(f, factor[1], k.fma(k.let("lost", lost), -factor[0], rest))
    return k.add(k.add(power[0], high), k.add(rest, power[1]))


def log2_single(k: Formula, x: PrimExpr) -> PrimExpr:
    """The logarithm to base 2 of float32."""
    if not k.instructions.fma:
        return logarithms.log2(k, x)
    exponent, f = logarithms.split(k, x)
    lost = logarithms.lost(k, f)
    return log_special(k, x, _in_base(k, f, lost, _TO_BASE_2_SINGLE, (exponent, 0.0)))


def log10_single(k: Formula, x: PrimExpr) -> PrimExpr:
    """The logarithm to base 10 of float32."""
    if not k.instructions.fma:
        return logarithms.log10(k, x)
    exponent, f = logarithms.split(k, x)
    power = k.let("power", k.mul(exponent, _LOG10_2_SINGLE[0])), k.mul(exponent, _LOG10_2_SINGLE[1])
    return log_special(k, x, _in_base(k, f, logarithms.lost(k, f), _TO_BASE_10_SINGLE, power))


# Inverse hyperbolic functions: log1p of a number that is small where they are.


def asinh(k: Formula, x: PrimExpr) -> PrimExpr:
    """The inverse hyperbolic sine: ``log1p(x + x**2 / (1 + sqrt(1 + x**2)))``; the sign is x's."""
    size = k.let("size", k.call("fabs", x))
    near = k.let("near", k.at_most(size, _LARGE))
    square = k.let("square", k.mul(near, near))
    root = k.add(k.call("sqrt", k.add(square, 1.0)), 1.0)
    more = k.let("more", k.div(square, root))
    value = _log_of_sum(k, size, near, more)
    value = k.select(k.less(size, 2.0**-28), size, value)
    return k.call("copysign", value, x)


def acosh(k: Formula, x: PrimExpr) -> PrimExpr:
    """The inverse hyperbolic cosine: ``log1p(t + sqrt(2 * t + t**2))`` with t = x - 1."""
    t = k.let("t", k.sub(k.let("near", k.at_most(x, _LARGE)), 1.0))
    more = k.call("sqrt", k.fma(t, t, k.add(t, t)))
    value = _log_of_sum(k, x, k.let("more", more), t)
    return k.select(k.less(x, 1.0), math.nan, value)


def _log_of_sum(k: Formula, x: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """log(1 + a + b) with a >= b, and log(2 * x) of an x beyond ``_LARGE``, which is the same."""
    total = k.let("total", k.add(a, b))
    lost = k.add(k.sub(a, total), b)
    is_large = k.let("is_large", k.more(x, _LARGE))
    far, f_far = _split(k, x)
    near, f_near, scale = _split_one_plus(k, total)
    exponent = k.let("exponent", k.select(is_large, k.add(far, 1.0), near))
    f = k.let("f", k.select(is_large, f_far, f_near))
    value = _log_of(k, exponent, f, k.select(is_large, 0.0, k.mul(lost, scale)))
    return k.select(k.less(x, math.inf), value, x)
