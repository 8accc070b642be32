"""sinh, cosh, asinh, acosh and atanh, on a target with fma; errors are at most 2 ulp.

The coefficients are fits of our own (``exponentials64`` says how).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir.lowering.mathematics import exponentials, exponentials64
from weft.tir.lowering.mathematics.formula import Formula
from weft.tir.lowering.mathematics.logarithms import log_64

# sinh(r) = r + r**3 * P(r**2) for |r| <= ln(2) / 2
_SINH: Final = {
    32: (0.1666666716337204, 0.00833317544311285, 0.00019974092720076442),
    64: (0.16666666666666666, 0.008333333333334423, 0.00019841269837102377,
         2.7557326190289634e-06, 2.5046810559256635e-08, 1.7569657617937002e-10),
}  # fmt: skip
# cosh(r) = 1 + r**2 / 2 + r**4 * P(r**2)
_COSH: Final = {
    32: (0.0416666679084301, 0.0013888583052903414, 2.500572918506805e-05),
    64: (0.041666666666666685, 0.0013888888888873307, 2.480158734911e-05, 2.755725193252507e-07,
         2.0921725618441806e-09),
}  # fmt: skip
_POWER_OF_TWO: Final[dict[int, Callable[..., tuple[PrimExpr, PrimExpr]]]] = {
    32: exponentials.power_of_two, 64: exponentials64.power_of_two,
}  # fmt: skip
_REDUCED: Final[dict[int, Callable[..., PrimExpr]]] = {
    32: exponentials.reduced, 64: exponentials64.reduced,
}  # fmt: skip
_FIELD: Final = {32: (12582912.0 + 124, 23), 64: (6755399441055744.0 + 1020, 52)}
"""A number whose last bits are the biased exponent of 2**-3, and the bits of a mantissa."""
_SETTLED: Final = 64.0
"""n from which on 2**-n changes nothing."""
_LARGEST: Final = {32: 89.6, 64: 711.0}
"""Sizes from which on the result is infinite."""
_SMALL: Final = {32: 2.0**-14, 64: 2.0**-28}
"""Sizes below which sinh, asinh and atanh are x."""


@dataclass(frozen=True)
class _Atanh:
    """What ``atanh`` needs to know of a float type."""

    series: tuple[float, ...]
    """atanh(t) = t + t**3 * P(t**2) for |t| <= 3 - sqrt(8)."""
    half_ln2: tuple[float, float]
    """log(2) / 2; small whole numbers times the first part are exact."""
    mantissa: int
    bias: int
    root_half: int
    """The bits of sqrt(1/2)."""
    whole: int
    """The bits of a power of two whose neighbours are 1 away."""


_ATANH: Final = {
    32: _Atanh((0.33333390951156616, 0.1998843401670456, 0.14945006370544434),
               (0.3465728759765625, 7.143034101547086e-07), 23, 127, 0x3F3504F3, 0x4B000000),
    64: _Atanh((0.33333333333333676, 0.1999999999970493, 0.1428571437174175,
                0.11111099228862776, 0.09091785263622113, 0.07656943118489799,
                0.0739882676714364),
               (0.3465735901845619, 9.541074646352939e-11), 52, 1023, 0x3FE6A09E667F3BCD,
               0x4330000000000000),
}  # fmt: skip


@dataclass(frozen=True)
class _Parts:
    """Of ``n * log(2) + r``: a quarter of sinh and cosh of the first, sinh(r) and cosh(r) - 1."""

    sinh_n: PrimExpr
    cosh_n: PrimExpr
    sinh_r: PrimExpr
    less_r: PrimExpr


def _parts(k: Formula, size: PrimExpr) -> _Parts:
    """Parts of a number that is not negative, a name. They are quarters since 2**(n - 1) may be no
    float where the result is one.
    """
    bits = k.dtype.bits
    size = k.let("size", k.at_most(size, _LARGEST[bits]))
    n, up = _POWER_OF_TWO[bits](k, size, 1.0 / math.log(2), -3)
    bias, mantissa = _FIELD[bits]
    field = k.bits(k.sub(bias, k.at_most(n, _SETTLED)))
    down = k.let("down", k.from_bits(k.integer("shift_left", field, mantissa)))
    r = _REDUCED[bits](k, size, n)
    square = k.let("square", k.mul(r, r))
    sinh_r = k.fma(k.mul(square, r), k.poly(square, _SINH[bits]), r)
    less_r = k.mul(square, k.fma(square, k.poly(square, _COSH[bits]), 0.5))
    return _Parts(
        k.let("sinh_n", k.sub(up, down)), k.let("cosh_n", k.add(up, down)),
        k.let("sinh_r", sinh_r), k.let("less_r", less_r),
    )  # fmt: skip


def sinh(k: Formula, x: PrimExpr) -> PrimExpr:
    """The hyperbolic sine by the sum of two arguments; nothing cancels, not even near 0."""
    size = k.let("size", k.call("fabs", x))
    p = _parts(k, size)
    value = k.add(p.sinh_n, k.fma(p.cosh_n, p.sinh_r, k.mul(p.sinh_n, p.less_r)))
    value = k.select(k.less(size, _SMALL[k.dtype.bits]), size, k.mul(value, 4.0))
    return k.call("copysign", value, x)


def cosh(k: Formula, x: PrimExpr) -> PrimExpr:
    """The hyperbolic cosine."""
    p = _parts(k, k.let("size", k.call("fabs", x)))
    value = k.add(p.cosh_n, k.fma(p.sinh_n, p.sinh_r, k.mul(p.cosh_n, p.less_r)))
    return k.mul(value, 4.0)


def asinh(k: Formula, x: PrimExpr) -> PrimExpr:
    """The inverse hyperbolic sine of float32: a logarithm in float64."""
    d = k.double()
    size = k.let("size", k.call("fabs", x))
    wide = d.let("wide", d.widen(size))
    root = d.call("sqrt", d.fma(wide, wide, 1.0))
    value = d.narrow(log_64(d, d.let("sum", d.add(wide, root))))
    value = k.select(k.less(size, _SMALL[32]), size, value)
    return k.call("copysign", k.select(k.less(size, math.inf), value, size), x)


def acosh(k: Formula, x: PrimExpr) -> PrimExpr:
    """The inverse hyperbolic cosine of float32; below 1 it is NaN."""
    d = k.double()
    wide = d.let("wide", d.widen(x))
    root = d.call("sqrt", d.fma(wide, wide, -1.0))
    value = d.narrow(log_64(d, d.let("sum", d.add(wide, root))))
    value = k.select(k.less(x, math.inf), value, x)
    return k.select(k.less(x, 1.0), math.nan, value)


def atanh(k: Formula, x: PrimExpr) -> PrimExpr:
    """The inverse hyperbolic tangent.

    Where (1 + x) / (1 - x) is ``2**n * m``, it is ``n * log(2) / 2 + atanh(t)`` with
    ``t = (m - 1) / (m + 1)``: the quotient of ``x * (2**n + 1) - (2**n - 1)`` and
    ``(2**n + 1) - x * (2**n - 1)``, each of which is rounded once. From n = 8 on, where the powers
    of two have many digits, it is that of 1 + x less and plus ``2**n * (1 - x)``.
    """
    kind = _ATANH[k.dtype.bits]
    size = k.let("size", k.call("fabs", x))
    above, below = k.let("above", k.add(size, 1.0)), k.let("below", k.sub(1.0, size))
    n, power = _power_near(k, k.div(above, below), kind)
    more, less = k.let("more", k.add(power, 1.0)), k.let("less", k.sub(power, 1.0))
    is_far = k.let("is_far", k.more(power, 256.0))
    up = k.select(is_far, k.fma(k.minus(power), below, above), k.fma(size, more, k.minus(less)))
    down = k.select(is_far, k.fma(power, below, above), k.fma(k.minus(size), less, more))
    t = k.let("t", k.div(up, down))
    square = k.let("square", k.mul(t, t))
    small = k.fma(n, kind.half_ln2[1], k.mul(k.mul(square, t), k.poly(square, kind.series)))
    value = k.let("value", k.fma(n, kind.half_ln2[0], k.add(t, small)))
    value = k.select(k.equal(size, 1.0), math.inf, value)
    value = k.select(k.more(size, 1.0), math.nan, value)
    return k.select(k.equal(x, x), k.call("copysign", value, x), x)


def _power_near(k: Formula, ratio: PrimExpr, kind: _Atanh) -> tuple[PrimExpr, PrimExpr]:
    """n and ``2**n`` with ratio / 2**n from sqrt(1/2) to sqrt(2); both are names."""
    bits = k.less_by(k.bits(ratio), kind.root_half)
    field = k.let("field", k.integer("shift_right", k.plus(bits, kind.bias << kind.mantissa),
                                     kind.mantissa))  # fmt: skip
    whole = k.from_bits(k.integer("bitwise_or", field, kind.whole))
    n = k.let("n", k.sub(whole, 2.0**kind.mantissa + kind.bias))
    return n, k.let("power", k.from_bits(k.integer("shift_left", field, kind.mantissa)))
