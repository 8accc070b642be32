"""Special functions of one number, as expressions; in float64 where a formula loses digits.

Each takes and returns an expression of a floating-point type. "AS" stands for Abramowitz and
Stegun, Handbook of Mathematical Functions (1964).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir import op
from weft.tir.lowering.mathematics.error_function64 import TAIL
from weft.tir.lowering.mathematics.normal_law import ABOVE, BELOW
from weft.topi.shared import Bindings, sharing

Scalar = Callable[[PrimExpr], PrimExpr]


def _const(value: float, like: PrimExpr) -> PrimExpr:
    return op.const(value, like.dtype)


def polynomial(x: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
    """The value at x by Horner's rule; the highest power comes first."""
    value = _const(coefficients[0], x)
    for coefficient in coefficients[1:]:
        value = value * x + _const(coefficient, x)
    return value


@sharing
def erfcx(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """exp(x**2) * erfc(x); infinite for x far below 0."""
    z = bind(op.abs(x))
    tail = bind(_scaled_tail(bind, z))
    two = _const(2.0, x)
    return op.select(op.less(x, _const(0.0, x)), two * op.exp(x * x) - tail, tail)


@sharing
def erfc(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """1 - erf(x), accurate where it is small."""
    if x.dtype.bits <= 32:
        return op.erfc(x)
    z = bind(op.abs(x))
    tail = bind(_scaled_tail(bind, z) * op.exp(-z * z))
    tail = op.select(op.greater(z, _const(40.0, x)), _const(0.0, x), tail)
    return op.select(op.less(x, _const(0.0, x)), _const(2.0, x) - tail, tail)


def _scaled_tail(bind: Bindings, z: PrimExpr) -> PrimExpr:
    """exp(z**2) * erfc(z) for z >= 0."""
    two = _const(2.0, z)
    t = bind(two / (two + z))
    return t * op.exp(polynomial(bind(two * t - _const(1.0, z)), TAIL[::-1]))


_ERFINV_CENTRE: Final = (
    -8.79102727e-09, 2.32326293e-08, 4.66170261e-07, -3.46270457e-06, -4.96334601e-06,
    0.000218344439, -0.00125274188, -0.00417738678, 0.246640286, 1.50140936,
)  # fmt: skip
"""erfinv(y) / y in w - 2.5 for w <= 5, where w = -log(1 - y * y); within 6e-9 of it."""
_ERFINV_TAIL: Final = (
    -3.86759968e-07, 6.23457331e-06, -4.16337266e-05, 0.000142937804, -0.000224496705,
    -0.000125735389, 0.00142341803, -0.00354929991, 0.00570691243, -0.00764928173, 0.00944259814,
    1.00167574, 2.83297687,
)  # fmt: skip
"""Likewise in sqrt(w) - 3, for w from 5 to 37; within 4e-8."""


@sharing
def erfinv(bind: Bindings, y: PrimExpr) -> PrimExpr:
    """The x whose erf is y; a quantile of the normal distribution where x is a float64.

    Else it is one of two polynomials, in the form of M. Giles (Approximating the erfinv function,
    GPU Computing Gems 2, 2010); the coefficients are weft's own, a minimax fit of the relative
    error.
    """
    unit, size = _const(1.0, y), op.abs(y)
    if y.dtype.bits > 32:
        half = _const(0.5, y)
        x = _quantile(bind, bind(half * y), bind(half * (unit - size))) * _const(math.sqrt(0.5), y)
    else:
        w = bind(-op.log((unit - y) * (unit + y)))
        centre = polynomial(bind(w - _const(2.5, y)), _ERFINV_CENTRE)
        tail = polynomial(bind(op.sqrt(w) - _const(3.0, y)), _ERFINV_TAIL)
        x = op.select(op.less(w, _const(5.0, y)), centre, tail) * y
    ends = op.select(op.equal(size, unit), y * op.infinity(y.dtype), _const(math.nan, y))
    return op.select(op.less(size, unit), x, ends)


_LANCZOS: Final = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
)  # fmt: skip
"""Lanczos' coefficients for g = 7 and nine terms (Godfrey 2001)."""


def _lanczos_quotient() -> tuple[list[float], list[float]]:
    """Lanczos' sum of terms c / (z + n) as one quotient; the highest power comes first."""
    above, below = [Fraction(_LANCZOS[0])], [Fraction(1)]
    for n, coefficient in enumerate(_LANCZOS[1:], 1):
        grown = zip([*above, Fraction(0)], [Fraction(0), *above], strict=True)
        above = [high + n * low for high, low in grown]
        for power, number in enumerate(below, 1):
            above[power] += Fraction(coefficient) * number
        grown = zip([*below, Fraction(0)], [Fraction(0), *below], strict=True)
        below = [high + n * low for high, low in grown]
    return [float(number) for number in above], [float(number) for number in below]


_GAMMA: Final = _lanczos_quotient()


@sharing
def lgamma(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """log |gamma(x)|: Lanczos' sum, the reflection formula below 1/2 (AS 6.1.17)."""
    half, unit = _const(0.5, x), _const(1.0, x)
    low = op.less(x, half)
    z = bind(op.select(low, unit - x, x) - unit)
    near = bind(op.minimum(z, _const(1e20, x)))  # beyond, the quotient is the same
    total = polynomial(near, _GAMMA[0]) / polynomial(near, _GAMMA[1])
    base = bind(z + _const(7.5, x))
    whole = bind(
        (z + half) * op.log(base) - base + op.log(_const(math.sqrt(2 * math.pi), x) * total)
    )
    distance = x - op.nearbyint(x)
    sine = op.abs(op.sin(_const(math.pi, x) * distance))
    reflected = _const(math.log(math.pi), x) - op.log(sine) - whole
    value = op.select(low, reflected, whole)
    return op.select(op.isinf(x), op.abs(x), value)


@sharing
def digamma(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """The derivative of log gamma: recurrence to x >= 10, then the series AS 6.3.18.

    At 0 it is -inf or inf by the sign of the zero, at negative integers NaN, as in PyTorch.
    """
    zero, unit = _const(0.0, x), _const(1.0, x)
    low = op.less(x, zero)
    z = bind(op.select(low, unit - x, x))
    total = zero
    for _ in range(10):
        step = op.less(z, _const(10.0, x))
        total = op.select(step, total - unit / z, total)
        total, z = bind(total), bind(op.select(step, z + unit, z))
    w = bind(unit / (z * z))
    series = w * polynomial(w, (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12))
    value = bind(total + op.log(z) - _const(0.5, x) / z - series)
    distance = bind(x - op.nearbyint(x))
    angle = bind(_const(math.pi, x) * distance)
    value = op.select(low, value - _const(math.pi, x) * op.cos(angle) / op.sin(angle), value)
    whole = op.logical_and(low, op.equal(distance, zero))
    value = op.select(whole, _const(math.nan, x), value)
    pole = op.copysign(op.infinity(x.dtype), -x)
    return op.select(op.equal(x, zero), pole, value)


_BERNOULLI: Final = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip
"""The Bernoulli numbers B2, B4, ... B24."""


_ZETA_STEPS: Final = 40
"""The number of terms that are added one by one; accurate for q > 9 - 40."""


@sharing
def zeta(bind: Bindings, x: PrimExpr, q: PrimExpr) -> PrimExpr:
    """Hurwitz' zeta, the sum of (q + k) ** -x: Euler and Maclaurin's formula from q + k > 9."""
    unit = _const(1.0, x)
    total = op.power(q, -x)
    a = q
    for step in range(_ZETA_STEPS):
        on = op.const(True, "bool") if step < 9 else op.less_equal(a, _const(9.0, x))
        on = bind(on)
        a = bind(op.select(on, a + unit, a))
        total = total + op.select(on, op.power(a, -x), _const(0.0, x))
    power = bind(op.power(a, -x))
    total = total + power * a / (x - unit) - _const(0.5, x) * power
    factor, divisor = unit, 1.0
    for k, bernoulli in enumerate(_BERNOULLI):
        factor = bind(factor * (x + _const(2.0 * k, x)))
        power = bind(power / a)
        divisor *= (2 * k + 1) * (2 * k + 2)
        total = total + _const(bernoulli / divisor, x) * factor * power
        factor = bind(factor * (x + _const(2.0 * k + 1, x)))
        power = bind(power / a)
    zero = _const(0.0, x)
    whole = op.equal(q, op.floor(q))
    rough = op.logical_and(op.not_equal(x, op.floor(x)), op.logical_not(whole))
    rough = op.logical_and(op.less(q, zero), rough)
    value = op.select(rough, _const(math.nan, x), total)
    pole = op.logical_and(op.less_equal(q, zero), whole)
    value = op.select(pole, op.infinity(x.dtype), value)
    value = op.select(op.less(x, unit), _const(math.nan, x), value)
    return op.select(op.equal(x, unit), op.infinity(x.dtype), value)


def polygamma(n: int, x: PrimExpr) -> PrimExpr:
    """The n-th derivative of digamma (AS 6.4.10)."""
    if n == 0:
        return digamma(x)
    if n == 1:
        return trigamma(x)
    sign = 1.0 if n % 2 else -1.0
    return _const(sign * math.factorial(n), x) * zeta(_const(n + 1.0, x), x)


@sharing
def trigamma(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """The second derivative of log gamma: recurrence and the series AS 6.4.12."""
    half, unit = _const(0.5, x), _const(1.0, x)
    low = op.less(x, half)
    z = bind(op.select(low, unit - x, x))
    total = _const(0.0, x)
    for _ in range(4):  # two terms as one quotient
        after = bind(z + unit)
        first, second = bind(z * z), bind(after * after)
        total = total + (first + second) / (first * second)
        z = bind(after + unit)
    w = bind(unit / (z * z))
    series = polynomial(w, (5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)) * w / z
    value = bind(total + unit / z + w * half + series)
    sine = bind(op.sin(_const(math.pi, x) * (x - op.nearbyint(x))))
    reflected = _const(math.pi**2, x) / (sine * sine) - value
    return op.select(low, reflected, value)


@sharing
def bessel_i0(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """The modified Bessel function of order 0."""
    return _bessel(bind, x, 0) * op.exp(op.abs(x))


@sharing
def bessel_i0e(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """exp(-|x|) * i0(x)."""
    return _bessel(bind, x, 0)


@sharing
def bessel_i1(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """The modified Bessel function of order 1, odd in x."""
    return _bessel(bind, x, 1) * op.exp(op.abs(x))


@sharing
def bessel_i1e(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """exp(-|x|) * i1(x)."""
    return _bessel(bind, x, 1)


_SERIES_TERMS: Final = 40
_SERIES_END: Final = 15.0


def _bessel(bind: Bindings, x: PrimExpr, order: int) -> PrimExpr:
    """exp(-|x|) times I of order 0 or 1: power series (AS 9.6.10), asymptotic from 15 (9.7.1)."""
    z = bind(op.abs(x))
    quarter = bind(z * z * _const(0.25, x))
    coefficients = [
        1.0 / (math.factorial(k) * math.factorial(k + order)) for k in range(_SERIES_TERMS)
    ]
    near = polynomial(quarter, coefficients[::-1]) * op.exp(-z)
    if order:
        near = near * z * _const(0.5, x)
    terms, mu = [1.0], 4.0 * order * order
    for k in range(1, 14):
        terms.append(-terms[-1] * (mu - (2 * k - 1) ** 2) / (k * 8))
    large = bind(op.maximum(z, _const(_SERIES_END, x)))
    far = polynomial(bind(_const(1.0, x) / large), terms[::-1])
    far = far / op.sqrt(_const(2 * math.pi, x) * large)
    value: PrimExpr = bind(op.select(op.less(z, _const(_SERIES_END, x)), near, far))
    return op.select(op.less(x, _const(0.0, x)), -value, value) if order else value


@sharing
def sinc(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """sin(pi x) / (pi x), 1 at 0."""
    angle = bind(_const(math.pi, x) * x)
    at_zero = op.equal(x, _const(0.0, x))
    return op.select(at_zero, _const(1.0, x), op.sin(angle) / angle)


@sharing
def logit(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """log(x / (1 - x))."""
    return op.log(x / (_const(1.0, x) - x))


@sharing
def entropy(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """-x * log(x), 0 at 0, -inf below."""
    zero = _const(0.0, x)
    below = op.select(op.less(x, zero), -op.infinity(x.dtype), -x * op.log(x))
    return op.select(op.equal(x, zero), zero, below)


def normal_cdf(x: PrimExpr) -> PrimExpr:
    """The area under the normal distribution up to x; of float32 it is computed in float64."""
    if x.dtype.bits > 32:
        return _normal_cdf(x)
    return op.cast(x.dtype, _short_normal_cdf(op.cast("float64", x)))


@sharing
def _short_normal_cdf(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """It in float64, to the digits of float32."""
    t = bind(op.minimum(op.abs(x), _const(15.0, x)))
    share = polynomial(t, ABOVE[::-1]) / polynomial(t, BELOW[::-1])
    tail = bind(op.exp(_const(-0.5, x) * (t * t)) * share * _const(0.5, x))
    return op.select(op.less(x, _const(0.0, x)), tail, _const(1.0, x) - tail)


@sharing
def _normal_cdf(bind: Bindings, x: PrimExpr) -> PrimExpr:
    return _const(0.5, x) * erfc(-x * _const(math.sqrt(0.5), x))


@sharing
def log_normal_cdf(bind: Bindings, x: PrimExpr) -> PrimExpr:
    """The logarithm of ``normal_cdf``, by the scaled tail far below 0."""
    scaled = bind(-x * _const(math.sqrt(0.5), x))
    far = op.log(_const(0.5, x) * erfcx(scaled)) - scaled * scaled
    near = op.log1p(-_const(0.5, x) * erfc(-scaled))
    return op.select(op.less(x, _const(-1.0, x)), far, near)


_QUANTILE_CENTRE: Final = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_QUANTILE_NEAR: Final = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
     1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959,
     1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
     0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494,
     2.05319162663775882187, 1.0),
)  # fmt: skip
_QUANTILE_FAR: Final = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
     0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358,
     5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
     7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
     0.59983220655588793769, 1.0),
)  # fmt: skip
"""Numerators and denominators of PPND16 (Wichura, algorithm AS 241, Applied Statistics 1988)."""


@sharing
def normal_quantile(bind: Bindings, p: PrimExpr) -> PrimExpr:
    """The x up to which the normal distribution has the area p."""
    zero, half, unit = _const(0.0, p), _const(0.5, p), _const(1.0, p)
    q = bind(p - half)
    quantile = _quantile(bind, q, bind(op.select(op.less(q, zero), p, unit - p)))
    between = op.logical_and(op.less(zero, p), op.less(p, unit))
    ends = op.select(op.equal(p, zero), -op.infinity(p.dtype), _const(math.nan, p))
    ends = op.select(op.equal(p, unit), op.infinity(p.dtype), ends)
    return op.select(between, quantile, ends)


def _quantile(bind: Bindings, q: PrimExpr, tail: PrimExpr) -> PrimExpr:
    """The quantile of the area 1/2 + q, outside of which lies ``tail``, by Wichura (AS 241).

    One quotient is in the square of q; two, for the tails, are in the root of -log(tail).
    """
    inside = bind(op.less_equal(op.abs(q), _const(0.425, q)))
    root = bind(op.sqrt(-op.log(tail)))
    is_near = bind(op.less_equal(root, _const(5.0, q)))
    shift = op.select(is_near, _const(1.6, q), _const(5.0, q))
    place = bind(op.select(inside, _const(0.180625, q) - q * q, root - shift))
    parts = []
    for centre, near, far in zip(_QUANTILE_CENTRE, _QUANTILE_NEAR, _QUANTILE_FAR, strict=True):
        outside = op.select(is_near, polynomial(place, near), polynomial(place, far))
        parts.append(op.select(inside, polynomial(place, centre), outside))
    side = op.select(inside, q, op.copysign(_const(1.0, q), q))
    return side * (parts[0] / parts[1])


@sharing
def next_float(bind: Bindings, x: PrimExpr, y: PrimExpr) -> PrimExpr:
    """The next float after ``x`` towards ``y``.

    1 is added to or subtracted from the bits as an integer, whose order is that of the magnitudes.
    """
    x, y = bind(x), bind(y)
    zero, words = op.const(0, x.dtype), f"int{x.dtype.bits}"
    bits, up, down = op.reinterpret(words, x), op.const(1, words), op.const(-1, words)
    is_away = op.equal(y > x, x > zero)
    lowest = op.const(-(1 << (x.dtype.bits - 1)), words)
    least = op.select(y > zero, up, lowest + up)
    moved = op.select(op.equal(x, zero), least, bits + op.select(is_away, up, down))
    moved = op.reinterpret(x.dtype, moved)
    is_number = op.all(op.equal(x, x), op.equal(y, y))
    return op.select(is_number, op.select(op.equal(x, y), y, moved), x + y)
