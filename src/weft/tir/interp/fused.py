"""Fused multiply-add (x * y + z, rounded once) in numpy, which has no such operation.

After Boldo and Melquiond, *Emulation of a FMA and Correctly Rounded Sums: Proved Algorithms Using
Rounding to Odd* (2008). Rounding to odd means: if a sum is not exact, take the neighbouring float
whose last bit is 1. Rounding that result again to fewer bits gives the same as rounding the exact
sum.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from weft.tir.interp.values import Value

Numbers = Value
"""A numpy float, or an array of floats."""

_SPLITTER: Final = 2.0**27 + 1
_LARGE: Final = 2.0**480
_SMALL: Final = 2.0**-480
"""Between these limits, the product of two numbers and its rounding error are normal numbers."""


def fused(x: Numbers, y: Numbers, z: Numbers) -> Numbers:
    """x * y + z of float32, float16 or float64, rounded once to that type."""
    kind = np.asarray(x).dtype
    with np.errstate(all="ignore"):
        wide = [np.asarray(value, np.float64) for value in (x, y, z)]
        if kind.itemsize == 8:
            return _fused64(*wide)[()]
        return _odd_sum(wide[0] * wide[1], wide[2]).astype(kind)[()]


def _two_sum(a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
    """The rounded sum, and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _odd_sum(a: Numbers, b: Numbers) -> Numbers:
    """a + b rounded to odd."""
    total, rest = _two_sum(a, b)
    bits = np.asarray(total).view(np.int64)
    is_changed = np.isfinite(total) & np.isfinite(rest) & (rest != 0) & (bits & 1 == 0)
    away = (rest > 0) == (total > 0)
    return np.where(is_changed, bits + np.where(away, 1, -1), bits).view(np.float64)


def _two_product(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """The rounded product, and its rounding error (Dekker)."""
    product = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    return product, ((a * c - product) + a * d + b * c) + b * d


def _halves(x: Numbers) -> tuple[Numbers, Numbers]:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high


def _fused64(x: Numbers, y: Numbers, z: Numbers) -> Numbers:
    high, low = _two_product(x, y)
    sum_low, rest_low = _two_sum(z, low)
    sum_high, rest_high = _two_sum(high, sum_low)
    result = np.asarray(sum_high + _odd_sum(rest_low, rest_high))
    is_special = ~(np.isfinite(x) & np.isfinite(y) & np.isfinite(z)) | (x == 0) | (y == 0)
    plain = np.where(np.isfinite(x) & np.isfinite(y) & ~np.isfinite(z), z, x * y + z)
    result = np.array(np.where(is_special, plain, result))
    is_far = ~is_special & (_is_far(x) | _is_far(y) | _is_far(z) & (z != 0))
    far = [part[is_far] for part in np.broadcast_arrays(x, y, z)]
    if far[0].size:
        result[is_far] = np.frompyfunc(_exact, 3, 1)(*far)
    return result


def _is_far(x: Numbers) -> Numbers:
    size = np.abs(x)
    return (size > _LARGE) | (size < _SMALL)


def _exact(x: float, y: float, z: float) -> float:
    """x * y + z of finite numbers, computed with fractions."""
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    sign = (exact > 0) - (exact < 0)
    try:
        return float(exact) or math.copysign(0.0, sign or x * y + z)
    except OverflowError:
        return math.copysign(math.inf, sign)
