"""float32 activations as polynomials, where composing them of others would cancel.

The coefficients are minimax fits of our own, as in ``vectormath``.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.llvm import vectormath
from weft.codegen.llvm.kernel import Kernel

# 2 * Phi(-t) * exp(t**2 / 2) = s + s**2 * P(s), s = 2 / sqrt(2 pi) / (_BEND + t), for
# 0 <= t <= 13.27; Phi is the normal distribution
_TAIL: Final = (3.999967098236084, 14.4391508102417, 44.50392150878906,
                131.99574279785156, -158.8486328125, 3044.19580078125,
                -21699.263671875, 51540.8515625, -42871.08203125)  # fmt: skip
_BEND: Final = 3.191538333892822
"""8 / sqrt(2 pi) as a float32."""
_TAIL_OF_S: Final = 1.5
"""By how much more than s the sum grows, roughly: d log(sum) / d log(s) is 1.2 to 2.5."""
_FAR: Final = 13.2688
"""From here on exp(-t**2 / 2) is 2**-127 at most, which ``power_of_two`` says as 0."""
_TANH_LINEAR: Final = 1.595703125
"""sqrt(8 / pi) to eleven bits: from it, sums less it are exact."""
_TANH_LINEAR_REST: Final = math.sqrt(8 / math.pi) - _TANH_LINEAR
_TANH_CUBIC: Final = 0.07135009765625
"""0.044715 * sqrt(8 / pi) to eleven bits or so."""
_TANH_CUBIC_REST: Final = 0.044715 * math.sqrt(8 / math.pi) - _TANH_CUBIC
_SHARE: Final = tuple([c * 2.0**-64 * (-1) ** i for i, c in enumerate(vectormath.EXP_HALVES)])
"""2**-64 * 3 / 2 * exp(-r)."""
_UPPER_BITS: Final = -4096
"""What leaves twelve bits of a float32, whose square is exact."""


def expm1(k: Kernel, x: str) -> str:
    """e**x - 1 as 2**n * (e**r - 1) + (2**n - 1), twice the half of that: 2**128 is no number."""
    size = k.clamp(x, -18.0, 89.0)
    n, half = vectormath.power_of_two(k, size, 1.0 / math.log(2), -1)
    r = vectormath.reduced(k, size, n)
    p = k.fma(k.mul(r, r), k.poly(r, vectormath.EXP), r)
    value = k.fma(half, p, k.sub(half, 0.5))
    value = k.add(value, value)
    return k.select(k.compare("oeq", x, 0.0), x, value)


def gelu(k: Kernel, x: str) -> str:
    """max(x, 0) - |x| * Phi(-|x|); Phi(-t) is exp(-t**2 / 2) times a polynomial.

    The product is rounded once, as its large part and the rest: y * e**r = y + y * (e**r - 1).
    Beyond 13.24 the second term is below the normal numbers and counts as 0.
    """
    size = k.call("fabs", x)
    t = k.select(k.compare("ogt", size, _FAR), _FAR, size)
    half = k.mul(t, -0.5)
    power, growth = _exp_of_product(k, t, half)
    s = k.div(_BEND / 4, k.add(t, _BEND))
    y = k.fma(k.mul(s, s), k.poly(s, _TAIL), s)
    if k.b.context.fuses:  # what the sum and the quotient lost by rounding
        minus = k.sub(-0.0, s)
        lost = k.fma(minus, _BEND, k.fma(minus, t, _BEND / 4))
        growth = k.fma(lost, _TAIL_OF_S * 4 / _BEND, growth)
    above = k.select(k.compare("ogt", x, 0.0), x, 0.0)
    scale = k.mul(half, power)
    return k.fma(scale, y, k.fma(scale, k.mul(y, growth), above))


def _exp_of_product(k: Kernel, t: str, half: str) -> tuple[str, str]:
    """exp(t * half), half = -t / 2, as a power of two, and e**r - 1 for the rest."""
    if k.b.context.fuses:
        square = k.mul(t, half)
        rest = k.fma(t, half, k.sub(-0.0, square))
    else:
        square, rest = (k.mul(part, -0.5) for part in _square(k, t))
    n, power = vectormath.power_of_two(k, square, 1.0 / math.log(2))
    leading, small = vectormath.parted(k, square, n, rest)
    r = k.add(leading, small)
    return power, k.fma(k.mul(r, r), k.poly(r, vectormath.EXP), r)


def _square(k: Kernel, t: str) -> tuple[str, str]:
    """t**2 as a float32 and what it lacks; by t's upper half, where products are rounded."""
    if k.b.context.fuses:
        square = k.mul(t, t)
        return square, k.fma(t, t, k.sub(-0.0, square))
    upper = k.from_bits(k.iop("and", k.bits(t), _UPPER_BITS))
    return k.mul(upper, upper), k.mul(k.sub(t, upper), k.add(t, upper))


def inside_tanh(d: Kernel, x: str) -> str:
    """Twice what gelu's tanh is taken of, x * (c + 0.044715 * c * x**2), on the float64 kernel."""
    scale = math.sqrt(8 / math.pi)
    return d.mul(x, d.fma(d.mul(x, x), 0.044715 * scale, scale))


def gelu_tanh(k: Kernel, x: str) -> str:
    """x * sigmoid(u), u to more than 24 bits: what u loses by rounding, e**u would lose u-fold.

    The quotient is ``vectormath.sigmoid``'s, times 3/2 above and below.
    """
    near = k.clamp(x, -11.0, 5.5)
    u, rest = _inside_tanh(k, near)
    n, power = vectormath.power_of_two(k, u, -1.0 / math.log(2), -64)
    leading, small = vectormath.parted(k, k.sub(-0.0, u), n, k.sub(-0.0, rest))
    q = k.poly(k.add(leading, small), _SHARE)
    power = k.from_bits(k.iop("or", k.bits(power), 0x400000))
    return k.mul(x, k.div(q, k.add(power, q)))


def _inside_tanh(k: Kernel, x: str) -> tuple[str, str]:
    """``inside_tanh`` as a float32 and what it lacks; in float64, where products are rounded."""
    if not k.b.context.fuses:
        d = k.double()
        exact = inside_tanh(d, d.widen(x))
        u = d.narrow(exact)
        return u, d.narrow(d.sub(exact, d.widen(u)))
    square, lost = _square(k, x)
    factor = k.fma(square, _TANH_CUBIC, _TANH_LINEAR)
    left = k.fma(square, _TANH_CUBIC, k.sub(_TANH_LINEAR, factor))
    left = k.fma(square, _TANH_CUBIC_REST, k.add(left, _TANH_LINEAR_REST))
    left = k.fma(lost, _TANH_CUBIC, left)
    u = k.mul(x, factor)
    return u, k.fma(x, left, k.fma(x, factor, k.sub(-0.0, u)))
