"""Element-wise operators of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.relax.op.reference.rule import Reference, is_float, wide

erf = np.vectorize(math.erf, otypes=[np.float64])


def whole(function: Callable[..., Any]) -> Reference:
    """Rounding to an integer: nothing to do for integers."""
    return lambda x: function(wide(x)) if is_float(x) else x


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    powers = np.exp(-np.abs(x))
    return np.where(x < 0, powers, 1.0) / (1.0 + powers)


def sign(x: Any) -> Any:
    """0 for NaN."""
    return np.where(wide(x) > 0, 1, np.where(wide(x) < 0, -1, 0)).astype(x.dtype)


def _bound(value: Any, x: Any) -> Any:
    """A limit as the dtype of the integers x holds it."""
    limits = np.iinfo(x.dtype)
    return x.dtype.type(min(max(value, limits.min), limits.max))


def clip(x: Any, low: Any, high: Any) -> Any:
    """The value limited to [low, high]."""
    if not is_float(x):
        low, high = _bound(low, x), _bound(high, x)
    return np.maximum(np.minimum(wide(x), high), low)
