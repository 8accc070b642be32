"""Logarithms, and powers as exponentials of them.

Errors are at most 2 ulp. The coefficients are minimax fits of our own on the reduced interval that
the comment of each names.
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir.expr import FloatImm, PrimExpr
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.lowering.building import Names, constant_of, like
from weft.tir.lowering.mathematics.exponentials import LN2_HIGH, LN2_LOW, exp2_64
from weft.tir.lowering.mathematics.formula import Formula
from weft.tir.op import const

# log1p(f) = f - f**2 / 2 + f**3 * P(f) for sqrt(1/2) <= 1 + f <= sqrt(2)
_LOG: Final = (0.33333331659547494, -0.2500082273596439, 0.20001233174443991,
               -0.16623297500434275, 0.14201557540553408, -0.13160595243502182,
               0.12763300312185774, -0.07635588162399559)  # fmt: skip
# in float64: log(m) = s * P(s**2), s = (m - 1) / (m + 1), for sqrt(1/2) <= m <= sqrt(2)
_LOG64: Final = (2.000000000000001, 0.666666666665418, 0.40000000065769015, 0.28571415416725165,
                 0.22223476320060243, 0.1812058329560898, 0.16853984864108715)  # fmt: skip
_ROOT_HALF_BITS: Final = 0x3F3504F3
_ROOT_HALF_BITS64: Final = 0x3FE6A09E667F3BCD


def _signed(k: Formula, bits: PrimExpr) -> PrimExpr:
    """Bits as signed integers."""
    return e.Cast(like(f"int{k.dtype.bits}", k.dtype), bits)


def _mantissa(k: Formula, bits: PrimExpr) -> PrimExpr:
    """The number 1 + f of ``split``, from sqrt(1/2) to sqrt(2).

    ``bits`` are those of x less those of sqrt(1/2); the last 23 are those of 1 + f less the same.
    """
    fraction = k.integer("bitwise_and", bits, 0x7FFFFF)
    return k.from_bits(k.plus(fraction, _ROOT_HALF_BITS))


def split(k: Formula, x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """``x = 2**exponent * (1 + f)``: the exponent as a float, and f; both are names.

    1 + f is from sqrt(1/2) to sqrt(2). Subtracting the bits of sqrt(1/2) from those of x lets the
    exponent field go up by one at sqrt(2) and not at 2. Numbers below the normal ones are scaled by
    2**23 first.
    """
    is_tiny = k.let("is_tiny", k.less(x, 1.1754943508222875e-38))
    normal = k.select(is_tiny, k.mul(x, 8388608.0), x)
    bits = k.let("bits", k.less_by(k.bits(normal), _ROOT_HALF_BITS))
    power = k.integer("shift_right", _signed(k, bits), 23)
    exponent = k.let("exponent", k.to_number(power))
    exponent = k.let("exponent", k.select(is_tiny, k.sub(exponent, 23.0), exponent))
    return exponent, k.let("f", k.sub(_mantissa(k, bits), 1.0))


def log_special(k: Formula, x: PrimExpr, value: PrimExpr) -> PrimExpr:
    """A logarithm with its values at 0 (-infinity), below 0 (NaN), at infinity and NaN (as x)."""
    value = k.select(k.less(x, math.inf), value, x)
    return k.select(k.more(x, 0.0), value, k.select(k.equal(x, 0.0), -math.inf, math.nan))


def is_nan(x: PrimExpr) -> PrimExpr:
    """Whether x is NaN."""
    return e.Call(like("bool", x.dtype), "tir.isnan", [x])


def _log_of(k: Formula, exponent: PrimExpr, f: PrimExpr) -> PrimExpr:
    """log(2**exponent * (1 + f))."""
    square = k.let("square", k.mul(f, f))
    cubic = k.mul(k.mul(square, f), k.poly(f, _LOG))
    tail = k.fma(exponent, LN2_LOW, k.fma(square, -0.5, cubic))
    return k.fma(exponent, LN2_HIGH, k.add(f, tail))


def lost(k: Formula, f: PrimExpr) -> PrimExpr:
    """f - log(1 + f), a number much smaller than f, a name."""
    square = k.let("square", k.mul(f, f))
    cubic = k.mul(k.mul(square, f), k.poly(f, _LOG))
    return k.fma(square, 0.5, k.minus(cubic))


def log(k: Formula, x: PrimExpr) -> PrimExpr:
    """The natural logarithm."""
    return log_special(k, x, _log_of(k, *split(k, x)))


def log2(k: Formula, x: PrimExpr) -> PrimExpr:
    """The logarithm to base 2, through float64."""
    return _log_in(k, x, 1.0 / math.log(2))


def log10(k: Formula, x: PrimExpr) -> PrimExpr:
    """The logarithm to base 10, through float64."""
    return _log_in(k, x, 1.0 / math.log(10))


def _log_in(k: Formula, x: PrimExpr, scale: float) -> PrimExpr:
    d = k.double()
    value = d.narrow(d.mul(log_64(d, d.widen(x)), scale))
    return log_special(k, x, value)


def log1p(k: Formula, x: PrimExpr) -> PrimExpr:
    """``log(1 + x)``; f of ``split`` is computed from x, since 1 + x may have lost its digits."""
    return log1p_special(k, x, _log_of(k, *_split_one_plus(k, x)))


def log1p_special(k: Formula, x: PrimExpr, value: PrimExpr) -> PrimExpr:
    """``log1p`` with its values at -1, below it, at 0, infinity and NaN."""
    value = k.select(k.equal(x, 0.0), x, k.select(k.less(x, math.inf), value, x))
    return k.select(k.more(x, -1.0), value, k.select(k.equal(x, -1.0), -math.inf, math.nan))


def _split_one_plus(k: Formula, x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """What ``split`` gives for 1 + x: f = x / 2**exponent + (2**-exponent - 1), rounded once.

    From 2**26 on, where adding 1 changes nothing, f is that of the rounded sum.
    """
    bits = k.let("bits", k.less_by(k.bits(k.add(x, 1.0)), _ROOT_HALF_BITS))
    power = k.let("power", k.integer("shift_right", _signed(k, bits), 23))
    field = k.integer("shift_left", power, 23)
    scale = k.let("scale", k.from_bits(e.Sub(const(127 << 23, field.dtype), field)))
    f = k.fma(x, scale, k.sub(scale, 1.0))
    f = k.select(k.more(x, 67108864.0), k.sub(_mantissa(k, bits), 1.0), f)
    f = k.let("f", f)
    return k.let("exponent", k.to_number(power)), f


def log_64(d: Formula, x: PrimExpr) -> PrimExpr:
    """The natural logarithm in float64 of a positive normal number, to 1e-15."""
    bits = d.let("bits", d.less_by(d.bits(x), _ROOT_HALF_BITS64))
    exponent = d.to_number(d.integer("shift_right", _signed(d, bits), 52))
    fraction = d.integer("bitwise_and", bits, 0xFFFFFFFFFFFFF)
    m = d.let("m", d.from_bits(d.plus(fraction, _ROOT_HALF_BITS64)))
    s = d.let("s", d.div(d.sub(m, 1.0), d.add(m, 1.0)))
    square = d.let("square", d.mul(s, s))
    return d.fma(exponent, math.log(2), d.mul(s, d.poly(square, _LOG64)))


# Powers.


def power(k: Formula, x: PrimExpr, y: PrimExpr) -> PrimExpr:
    """x**y, through float64; the special values are C's."""
    d = k.double()
    wide = d.let("size", d.widen(k.call("fabs", x)))
    log = d.mul(log_64(d, wide), 1.0 / math.log(2))
    log = d.select(d.equal(wide, 0.0), -math.inf, log)
    log = d.select(d.equal(wide, math.inf), math.inf, log)
    value = d.narrow(exp2_64(d, d.clamp(d.mul(log, d.widen(y)), -152.0, 129.0)))
    return _power_special(k, x, y, k.select(is_nan(x), x, value))


def _power_special(k: Formula, x: PrimExpr, y: PrimExpr, value: PrimExpr) -> PrimExpr:
    """A power of ``|x|`` with the sign of x**y, and C's values at 0, 1, -1 and infinity."""
    value = k.let("value", value)
    half = k.let("half", k.mul(y, 0.5))
    is_whole = k.let("is_whole", k.equal(k.call("trunc", y), y))
    is_even = k.equal(k.call("trunc", half), half)
    value = k.select(e.And(e.Not(is_even), is_whole), k.call("copysign", value, x), value)
    value = k.let("value", value)
    is_below = e.And(k.less(x, 0.0), k.more(x, -math.inf))
    value = k.select(is_below, k.select(is_whole, value, math.nan), value)
    for flag in (k.equal(y, 0.0), k.equal(x, 1.0)):
        value = k.select(flag, 1.0, value)
    is_endless = e.And(k.equal(x, -1.0), k.equal(k.call("fabs", y), math.inf))
    return k.select(is_endless, 1.0, value)


def small_power(x: PrimExpr, exponent: PrimExpr) -> PrimExpr | None:
    """``x**2`` and ``x**3`` as products; None for any other exponent."""
    number = exponent.value if isinstance(exponent, e.Broadcast) else exponent
    if not isinstance(number, FloatImm) or number.value not in (2.0, 3.0):
        return None
    names = Names()
    x = names.of("x", x)
    square = e.Mul(x, x)
    return names.around(e.Mul(square, x) if number.value == 3.0 else square)


def integer_power(dtype: DataType, x: PrimExpr, exponent: PrimExpr) -> PrimExpr | None:
    """A power of integers by repeated squaring, which may wrap: ``x**5`` → ``s * s * x``, where
    ``s`` is ``x * x``.

    None where the exponent is not a constant, or negative.
    """
    rest = constant_of(exponent)
    if rest is None or rest < 0:
        return None
    names = Names()
    square = names.of("x", x)
    result: PrimExpr | None = None
    while rest:
        if rest & 1:
            result = square if result is None else e.Mul(result, square)
        rest >>= 1
        if rest:
            square = names.of("square", e.Mul(square, square))
    return names.around(const(1, dtype) if result is None else result)
