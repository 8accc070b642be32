"""Element-wise operators of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.relax.reference.rule import Reference, is_float, quiet, table, wide

erf = np.vectorize(math.erf, otypes=[np.float64])


def _float(function: Callable[..., Any]) -> Reference:
    return quiet(lambda x: function(wide(x)))


def _whole(function: Callable[..., Any]) -> Reference:
    """Rounding to an integer: nothing to do for integers."""
    return lambda x: function(wide(x)) if is_float(x) else x


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    powers = np.exp(-np.abs(x))
    return np.where(x < 0, powers, 1.0) / (1.0 + powers)


def _sign(x: Any) -> Any:
    """0 for NaN."""
    return np.where(wide(x) > 0, 1, np.where(wide(x) < 0, -1, 0)).astype(x.dtype)


def _bound(value: Any, x: Any) -> Any:
    """A limit as the dtype of the integers x holds it."""
    limits = np.iinfo(x.dtype)
    return x.dtype.type(min(max(value, limits.min), limits.max))


def _clip(x: Any, low: Any, high: Any) -> Any:
    if not is_float(x):
        low, high = _bound(low, x), _bound(high, x)
    return np.minimum(np.maximum(wide(x), low), high)


TABLE = table(
    {
        "abs": lambda x: np.abs(wide(x)),
        "acos": _float(np.arccos),
        "acosh": _float(np.arccosh),
        "asin": _float(np.arcsin),
        "asinh": _float(np.arcsinh),
        "atan": _float(np.arctan),
        "atanh": _float(np.arctanh),
        "bitwise_not": np.invert,
        "ceil": _whole(np.ceil),
        "clip": _clip,
        "cos": _float(np.cos),
        "cosh": _float(np.cosh),
        "erf": _float(erf),
        "exp": _float(np.exp),
        "floor": _whole(np.floor),
        "isfinite": _float(np.isfinite),
        "isinf": _float(np.isinf),
        "isnan": _float(np.isnan),
        "log": _float(np.log),
        "logical_not": np.logical_not,
        "negative": lambda x: np.negative(wide(x)),
        "round": _whole(np.round),
        "rsqrt": _float(lambda x: 1 / np.sqrt(x)),
        "sigmoid": _float(sigmoid),
        "sign": _sign,
        "sin": _float(np.sin),
        "sinh": _float(np.sinh),
        "sqrt": _float(np.sqrt),
        "square": lambda x: np.square(wide(x)),
        "tan": _float(np.tan),
        "tanh": _float(np.tanh),
        "trunc": _whole(np.trunc),
    }
)
