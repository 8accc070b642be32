"""float32 activations as polynomials, where composing them of others would lose digits.

The coefficients are minimax fits of our own, as in ``vectormath``.
"""

from __future__ import annotations

import math
from typing import Final

from weft.codegen.llvm import vectormath
from weft.codegen.llvm.kernel import Kernel

_LOWEST: Final = -109.0
"""From here down silu is 0, and e**-x times ``_ONE`` is still a number."""
_LOWEST_TANH: Final = -10.85
"""The same of ``gelu_tanh``."""
_ONE: Final = 2.0**-32
"""What counts as one beside e**-x, whose power of two is scaled by as much."""
_LINEAR: Final = 3125 / 2**11
_CUBIC: Final = 8943 / 2**17
"""Both exact, and 0.044715 times ``_LINEAR``."""
_STRETCH: Final = math.sqrt(8 / math.pi) / _LINEAR
"""What makes x * (_LINEAR + _CUBIC * x**2) what ``gelu_tanh`` takes tanh of, twice."""
_LN2_HIGH: Final = 0.66278076171875
_LN2_LOW: Final = math.log(2) / _STRETCH - _LN2_HIGH
"""log(2) / _STRETCH in two parts; products of whole numbers up to 2**8 with the first are exact."""
_SHRINKING: Final = tuple([c * (-1) ** power for power, c in enumerate(vectormath.EXP)])
"""exp(-r) = 1 - r + r**2 * P(r)."""
_STRETCHED: Final = (1 - _STRETCH,
                     *[c * _STRETCH**power for power, c in enumerate(_SHRINKING, 2)])  # fmt: skip
"""exp(-_STRETCH * r) = 1 - r + r * P(r)."""


def expm1(k: Kernel, x: str) -> str:
    """e**x - 1 as 2**n * (e**r - 1) + (2**n - 1), twice the half of that: 2**128 is no number."""
    size = k.clamp(x, -18.0, 89.0)
    n, half = vectormath.power_of_two(k, size, 1.0 / math.log(2), -1)
    r = vectormath.reduced(k, size, n)
    p = k.fma(k.mul(r, r), k.poly(r, vectormath.EXP), r)
    value = k.fma(half, p, k.sub(half, 0.5))
    value = k.add(value, value)
    return k.select(k.compare("oeq", x, 0.0), x, value)


def silu(k: Kernel, x: str) -> str:
    """x / (1 + e**-x)."""
    low = k.select(k.compare("olt", x, _LOWEST), _LOWEST, x)
    n, power = vectormath.power_of_two(k, low, -1.0 / math.log(2), -32)
    high, rest = vectormath.LN2_PARTS
    r = k.fma(n, rest, k.fma(n, high, low))
    growth = k.fma(k.mul(r, r), k.poly(r, _SHRINKING), k.sub(-0.0, r))
    return _part_below(k, low, power, growth, 20.0)


def _part_below(k: Kernel, x: str, power: str, growth: str, whole: float) -> str:
    """x / (1 + E), E = 2**32 * ``power`` * (1 + ``growth``); x itself above ``whole``.

    ``power`` * ``growth`` is exact, and growth's own rounding counts by a quarter: what is left are
    the roundings of two sums and a quotient.
    """
    below = k.add(k.fma(power, growth, _ONE), power)
    part = k.mul(k.div(x, below), _ONE)
    return k.select(k.compare("ogt", x, whole), x, part)


def inside_tanh(d: Kernel, x: str) -> str:
    """Twice what ``gelu_tanh`` takes tanh of, x * (c + 0.044715 * c * x**2), in float64."""
    scale = math.sqrt(8 / math.pi)
    return d.mul(x, d.fma(d.mul(x, x), 0.044715 * scale, scale))


def gelu_tanh(k: Kernel, x: str) -> str:
    """x / (1 + e**-u), u to more than 24 bits: what u loses by rounding, e**u would lose u-fold.

    u is ``_STRETCH`` times what is computed of x. That factor is nowhere multiplied by: e**-u is a
    power of e**_STRETCH, of which the polynomial and the parts of log(2) are.
    """
    low = k.select(k.compare("olt", x, _LOWEST_TANH), _LOWEST_TANH, x)
    u, rest = _inside_tanh(k, low)
    n, power = vectormath.power_of_two(k, u, -_STRETCH / math.log(2), -32)
    r = k.add(k.fma(n, _LN2_HIGH, u), k.fma(n, _LN2_LOW, rest))
    growth = k.fma(k.poly(r, _STRETCHED), r, k.sub(-0.0, r))
    return _part_below(k, low, power, growth, 6.0)


def _inside_tanh(k: Kernel, x: str) -> tuple[str, str]:
    """x * (_LINEAR + _CUBIC * x**2) and what it lacks; in float64, where products are rounded."""
    if not k.b.context.fuses:
        d = k.double()
        wide = d.widen(x)
        exact = d.mul(wide, d.fma(d.mul(wide, wide), _CUBIC, _LINEAR))
        u = d.narrow(exact)
        return u, d.narrow(d.sub(exact, d.widen(u)))
    square = k.mul(x, x)
    lost = k.fma(x, x, k.sub(-0.0, square))
    factor = k.fma(square, _CUBIC, _LINEAR)
    left = k.fma(lost, _CUBIC, k.fma(square, _CUBIC, k.sub(_LINEAR, factor)))
    u = k.mul(x, factor)
    return u, k.fma(x, left, k.fma(x, factor, k.sub(-0.0, u)))
