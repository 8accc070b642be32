"""float32 activations as polynomials, where composing them of others would cancel.

The coefficients are minimax fits of our own, as in ``vectormath``.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.llvm import vectormath
from weft.codegen.llvm.kernel import Kernel

# Phi(-t) * exp(t**2 / 2) = s * P(s), s = 3 / (3 + t), for 0 <= t <= 14.5; Phi is the normal
# distribution
_TAIL: Final = (0.13295645176989626, 0.13354635252708213, 0.11263665430868988,
                0.11901266182004358, -0.051145190965974946, 0.21559290184312005,
                -0.268229208102668, 0.1280711424869579, -0.02244173987710413)  # fmt: skip
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
    """x * Phi(x); Phi(-t) is exp(-t**2 / 2) times a polynomial, and Phi(t) is 1 - Phi(-t).

    t**2 is the square of t's upper half, which is exact, and the rest, which joins what is left
    after whole powers of two are taken out.
    """
    t = k.call("fabs", x)
    t = k.select(k.compare("ogt", t, 14.5), 14.5, t)
    upper = k.from_bits(k.iop("and", k.bits(t), _UPPER_BITS))
    rest = k.mul(k.mul(k.sub(t, upper), k.add(t, upper)), -0.5)
    square = k.mul(k.mul(upper, upper), -0.5)
    n, power = vectormath.power_of_two(k, k.add(square, rest), 1.0 / math.log(2), 60)
    r = k.add(vectormath.reduced(k, square, n), rest)
    growth = k.fma(k.mul(r, r), k.poly(r, vectormath.EXP), r)
    s, lost = _shrunk(k, t)
    tail = k.mul(s, k.poly(s, _TAIL))
    share = k.fma(tail, k.fma(lost, k.fma(s, 1.4, 1.0), growth), tail)
    share = k.mul(k.mul(share, power), 2.0**-60)
    return k.mul(x, k.select(k.compare("olt", x, 0.0), share, k.sub(1.0, share)))


def _shrunk(k: Kernel, t: str) -> tuple[str, str]:
    """(s, what its roundings lost of it, as a share) for s = 3 / (3 + t).

    A share lost of s is about 1 + 1.4 * s such shares lost of the tail.
    """
    total = k.add(t, 3.0)
    s = k.div(3.0, total)
    if not k.b.context.fuses:
        return s, k.mul(s, 0.0)
    left = k.fma(k.sub(-0.0, s), total, 3.0)
    missed = k.sub(t, k.sub(total, 3.0))
    return s, k.mul(k.fma(k.sub(-0.0, s), missed, left), 1.0 / 3.0)


def inside_tanh(d: Kernel, x: str) -> str:
    """Twice what gelu's tanh is taken of, x * (c + 0.044715 * c * x**2), on the float64 kernel."""
    scale = math.sqrt(8 / math.pi)
    return d.mul(x, d.fma(d.mul(x, x), 0.044715 * scale, scale))


def gelu_tanh(k: Kernel, x: str) -> str:
    """x * sigmoid(u), u in float64: what u loses by rounding, e**u would lose u-fold."""
    d = k.double()
    near = k.clamp(x, -11.0, 5.5)
    u = inside_tanh(d, d.widen(near))
    n, power = vectormath.power_of_two(k, d.narrow(u), -1.0 / math.log(2), -64)
    r = d.narrow(d.fma(d.widen(n), math.log(2), u))
    q = k.mul(k.poly(r, (1.0, 1.0, *vectormath.EXP)), 2.0**-64)
    return k.mul(x, k.div(q, k.add(power, q)))
