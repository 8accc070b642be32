"""silu and gelu_tanh by formulas of their own: composed of other functions they would lose digits.

The coefficients are minimax fits of our own.
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir.lowering.mathematics.exponentials import EXP, LN2_HIGH, LN2_LOW, power_of_two
from weft.tir.lowering.mathematics.formula import Formula

_LOWEST: Final = -109.0
"""Smaller x are raised to this, of which silu is 0 as well, so that ``_ONE * e**-x`` is finite."""
_LOWEST_TANH: Final = -10.85
"""The same for ``gelu_tanh``."""
_ONE: Final = 2.0**-32
"""What 1 + e**-x is multiplied by while it is computed, so that e**-x does not overflow."""
_LINEAR: Final = 3125 / 2**11
_CUBIC: Final = 8943 / 2**17
"""0.044715 times ``_LINEAR``; both are floats without rounding."""
_STRETCH: Final = math.sqrt(8 / math.pi) / _LINEAR
"""``gelu_tanh`` takes tanh of half of ``_STRETCH * x * (_LINEAR + _CUBIC * x**2)``."""
_STRETCHED_LN2_HIGH: Final = 0.66278076171875
_STRETCHED_LN2_LOW: Final = math.log(2) / _STRETCH - _STRETCHED_LN2_HIGH
"""log(2) / _STRETCH in two parts; whole numbers up to 2**8 times the first part are exact."""
_SHRINKING: Final = tuple([c * (-1) ** power for power, c in enumerate(EXP)])
"""exp(-r) = 1 - r + r**2 * P(r)."""
_STRETCHED: Final = (1 - _STRETCH,
                     *[c * _STRETCH**power for power, c in enumerate(_SHRINKING, 2)])  # fmt: skip
"""exp(-_STRETCH * r) = 1 - r + r * P(r)."""


def silu(k: Formula, x: PrimExpr) -> PrimExpr:
    """x / (1 + e**-x)."""
    low = k.let("low", k.at_least(x, _LOWEST))
    n, power = power_of_two(k, low, -1.0 / math.log(2), -32)
    r = k.let("r", k.fma(n, LN2_LOW, k.fma(n, LN2_HIGH, low)))
    growth = k.fma(k.mul(r, r), k.poly(r, _SHRINKING), k.minus(r))
    return _part_below(k, low, power, growth, 20.0)


def _part_below(
    k: Formula, x: PrimExpr, power: PrimExpr, growth: PrimExpr, whole: float
) -> PrimExpr:
    """``x / (1 + E)`` with ``E = 2**32 * power * (1 + growth)``; x itself above ``whole``.

    ``power * growth`` is exact, since power is a power of two, and growth's own rounding counts
    little (by a quarter): what counts are the roundings of two sums and a quotient.
    """
    below = k.add(k.fma(power, growth, _ONE), power)
    part = k.mul(k.div(x, below), _ONE)
    return k.select(k.more(x, whole), x, part)


def gelu_tanh(k: Formula, x: PrimExpr) -> PrimExpr:
    """``x / (1 + e**-u)``, where u is twice what ``gelu_tanh`` takes tanh of.

    An error of u is u times as large in e**-u. So u is computed as a sum of two floats, which
    ``_inside_tanh`` gives, without the factor ``_STRETCH``: that is in the polynomial and in the
    parts of log(2), which give powers of e**_STRETCH.
    """
    low = k.let("low", k.at_least(x, _LOWEST_TANH))
    u, rest = _inside_tanh(k, low)
    n, power = power_of_two(k, u, -_STRETCH / math.log(2), -32)
    r = k.add(k.fma(n, _STRETCHED_LN2_HIGH, u), k.fma(n, _STRETCHED_LN2_LOW, rest))
    r = k.let("r", r)
    growth = k.fma(k.poly(r, _STRETCHED), r, k.minus(r))
    return _part_below(k, low, power, growth, 6.0)


def _inside_tanh(k: Formula, x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """``x * (_LINEAR + _CUBIC * x**2)`` as two floats: the rounded number, a name, and the rest.

    Where there is no fma, whose product is not rounded, it is computed in float64.
    """
    if not k.instructions.fma:
        d = k.double()
        wide = d.let("wide", d.widen(x))
        exact = d.let("exact", d.mul(wide, d.fma(d.mul(wide, wide), _CUBIC, _LINEAR)))
        u = k.let("u", d.narrow(exact))
        return u, d.narrow(d.sub(exact, d.widen(u)))
    square = k.let("square", k.mul(x, x))
    lost = k.let("lost", k.fma(x, x, k.minus(square)))
    factor = k.let("factor", k.fma(square, _CUBIC, _LINEAR))
    left = k.fma(lost, _CUBIC, k.fma(square, _CUBIC, k.sub(_LINEAR, factor)))
    left = k.let("left", left)
    u = k.let("u", k.mul(x, factor))
    return u, k.fma(x, left, k.fma(x, factor, k.minus(u)))
