"""Element-wise operators of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft.relax.op.reference.rule import Reference, is_float, wide

erf = np.vectorize(math.erf, otypes=[np.float64])


def whole(function: Callable[[np.ndarray], np.ndarray]) -> Reference:
    """The reference of a rounding function, which leaves integers as they are."""
    return lambda x: function(wide(x)) if is_float(x) else x


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow."""
    powers = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, powers, 1.0) / (1.0 + powers))


def sign(x: np.ndarray) -> np.ndarray:
    """-1, 0 or 1; NaN gives 0."""
    return np.where(wide(x) > 0, 1, np.where(wide(x) < 0, -1, 0)).astype(x.dtype)


def _bound(value: float, x: np.ndarray) -> np.generic:
    """A limit clamped to the integer dtype of x."""
    limits = np.iinfo(x.dtype)
    bound: np.generic = x.dtype.type(min(max(value, limits.min), limits.max))
    return bound


def clip(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """x clamped to [low, high]."""
    limits = (low, high) if is_float(x) else (_bound(low, x), _bound(high, x))
    return np.asarray(np.maximum(np.minimum(wide(x), limits[1]), limits[0]))
