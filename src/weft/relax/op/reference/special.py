"""Special functions in float64: series, recurrences and Newton's method over ``math``."""

from __future__ import annotations

import math

import numpy as np

from weft.relax.op.reference.rule import in_float64
from weft.relax.op.reference.unary import erf

erfc = np.vectorize(math.erfc, otypes=[np.float64])
_ROOT_PI = math.sqrt(math.pi)


def _lgamma(x: float) -> float:
    is_pole = x <= 0 and x == math.floor(x)
    return math.inf if is_pole or math.isinf(x) else math.lgamma(x)


lgamma = np.vectorize(_lgamma, otypes=[np.float64])


@in_float64
def digamma(x: np.ndarray) -> np.ndarray:
    """The recurrence up to an argument of 10, then the asymptotic series; reflection below 0."""
    z = np.where(x < 0, 1 - x, x)
    shift = np.zeros_like(z)
    for _ in range(10):
        below = z < 10
        shift = shift - np.where(below, 1 / z, 0)
        z = np.where(below, z + 1, z)
    square = 1 / (z * z)
    series = 1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132)))
    value = shift + np.log(z) - 0.5 / z - square * series
    is_pole = (x < 0) & (x == np.floor(x))
    return np.where(is_pole, np.nan, np.where(x < 0, value - math.pi / np.tan(math.pi * x), value))


@in_float64
def zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The terms with q + k < 10 one by one, the rest by the Euler-Maclaurin formula."""
    x, q = np.broadcast_arrays(x, q)
    total, place = np.zeros(x.shape), np.array(q)
    for _ in range(10 + max(0, -math.floor(q.min(initial=0.0)))):
        below = place < 10
        total = total + np.where(below, place**-x, 0.0)
        place = np.where(below, place + 1, place)
    tail = place ** (1 - x) / (x - 1) + 0.5 * place**-x
    factor = x * place ** (-x - 1)
    for k, bernoulli in enumerate((1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)):
        tail = tail + bernoulli * factor
        factor = factor * (x + 2 * k + 1) * (x + 2 * k + 2) / place**2
    is_whole = q == np.floor(q)
    value = np.where((q < 0) & ~is_whole & (x != np.floor(x)), np.nan, total + tail)
    value = np.where((q <= 0) & is_whole, np.inf, value)
    return np.asarray(np.where(x == 1, np.inf, np.where(x < 1, np.nan, value)))


@in_float64
def trigamma(x: np.ndarray) -> np.ndarray:
    """zeta(2, x); reflection below 1/2."""
    low = x < 0.5
    value = zeta(np.full(x.shape, 2.0), np.where(low, 1 - x, x))
    return np.asarray(np.where(low, (math.pi / np.sin(math.pi * x)) ** 2 - value, value))


def erfc_inverse(q: np.ndarray) -> np.ndarray:
    """The z >= 0 with erfc(z) = q, by Newton's method on the logarithms."""
    inside = np.clip(q, 5e-324, 1.0)
    z = np.sqrt(np.maximum(-np.log(inside), 0))
    for _ in range(60):
        tail = erfc(z)
        z = z + (np.log(tail) - np.log(inside)) * tail * np.exp(z * z) * (_ROOT_PI / 2)
    return np.where(q == 0, np.inf, z)


@in_float64
def erfinv(y: np.ndarray) -> np.ndarray:
    """The inverse of erf: by Newton's method on erf near 0, by ``erfc_inverse`` elsewhere."""
    size = np.abs(y)
    small = np.where(size < 0.5, size, 0.0)
    z = small * (_ROOT_PI / 2)
    for _ in range(8):
        z = z - (erf(z) - small) * (_ROOT_PI / 2) * np.exp(z * z)
    far = erfc_inverse(np.where(size < 0.5, 0.5, np.where(size > 1, 1.0, 1 - size)))
    value = np.copysign(np.where(size < 0.5, z, far), y)
    return np.where(size > 1, np.nan, value)


@in_float64
def erfcx(x: np.ndarray) -> np.ndarray:
    """exp(x**2) * erfc(x); for x > 20 by its asymptotic series."""
    square = 1 / (2 * x * x)
    far = (1 - square * (1 - square * (3 - 15 * square))) / (x * _ROOT_PI)
    near = np.exp(np.minimum(x, 20) ** 2) * erfc(np.minimum(x, 20))
    return np.asarray(np.where(x > 20, far, near))


@in_float64
def log_ndtr(x: np.ndarray) -> np.ndarray:
    """log(erfc(-x / sqrt(2)) / 2); for x < -20 by its asymptotic series."""
    near = np.log(0.5 * erfc(-np.maximum(x, -20) / math.sqrt(2)))
    square = 1 / (x * x)
    tail = np.log1p(-square * (1 - square * (3 - square * (15 - 105 * square))))
    far = -x * x / 2 - np.log(-x) - math.log(2 * math.pi) / 2 + tail
    return np.asarray(np.where(x < -20, far, near))


@in_float64
def ndtri(p: np.ndarray) -> np.ndarray:
    """The quantile of the normal distribution, by ``erfc_inverse`` of the nearer tail."""
    tail = np.minimum(p, 1 - p)
    size = math.sqrt(2) * erfc_inverse(2 * tail)
    return np.where((p < 0) | (p > 1), np.nan, np.where(p < 0.5, -size, size))


@in_float64
def i1(x: np.ndarray) -> np.ndarray:
    """The modified Bessel function of order 1, by its power series."""
    half = x / 2
    term, total = half, half
    for k in range(1, 200):
        term = term * half * half / (k * (k + 1))
        total = total + term
    return total


@in_float64
def entr(x: np.ndarray) -> np.ndarray:
    """-x * log(x); 0 for x = 0, minus infinity for x < 0."""
    value = -x * np.log(np.where(x > 0, x, 1))
    return np.where(x < 0, -np.inf, np.where(x == 0, 0, value))


def product_or_zero(x: np.ndarray, factor: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x times a function of y; 0 where x is 0, unless y is NaN."""
    return np.where(np.isnan(y), y, np.where(x == 0, 0, x * factor))
