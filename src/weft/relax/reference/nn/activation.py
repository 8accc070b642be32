"""Activations, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.relax.reference.rule import Reference, by_wide, quiet, table
from weft.relax.reference.unary import sigmoid

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""Klambauer and others, "Self-Normalizing Neural Networks", 2017."""
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def _prelu(data: Any, alpha: Any, axis: int = 1) -> Any:
    shape = [1] * data.ndim
    shape[axis] = -1
    return np.where(data > 0, data, data * alpha.reshape(shape))


def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)


def _gelu_tanh(x: Any) -> Any:
    return x * sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))


def _relu6(x: Any) -> Any:
    return np.minimum(np.maximum(x, 0), 6).astype(x.dtype)


def _silu(x: Any) -> Any:
    return x * sigmoid(x)


def _selu(x: Any) -> Any:
    return _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x))


def _elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(x))


def _celu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


def _hardsigmoid(x: Any) -> Any:
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


def _hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    return np.minimum(np.maximum(x, min_val), max_val)


def _hardshrink(x: Any, lambd: float = 0.5) -> Any:
    return np.where(np.abs(x) <= lambd, 0, x)


def _softshrink(x: Any, lambd: float = 0.5) -> Any:
    return np.where(np.abs(x) <= lambd, 0, x - np.sign(x) * lambd)


def _softmax(x: Any, axis: int = -1) -> Any:
    if not x.size:
        return x
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def _log_softmax(x: Any, axis: int = -1) -> Any:
    if not x.size:
        return x
    moved = x - x.max(axis, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis, keepdims=True))


_ROWS: dict[str, Reference] = {
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "relu6": _relu6,
    "leakyrelu": lambda x, alpha=0.01: np.where(x > 0, x, x * alpha),
    "prelu": _prelu,
    "softplus": _softplus,
    "gelu": lambda x: x * 0.5 * _erfc(-x / math.sqrt(2)),
    "gelu_tanh": _gelu_tanh,
    "selu": _selu,
    "silu": _silu,
    "elu": _elu,
    "celu": _celu,
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "log_sigmoid": lambda x: -np.logaddexp(0, -x),
    "hardsigmoid": _hardsigmoid,
    "hardswish": lambda x: x * _hardsigmoid(x),
    "hardtanh": _hardtanh,
    "hardshrink": _hardshrink,
    "softshrink": _softshrink,
    "tanhshrink": lambda x: x - np.tanh(x),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
}
TABLE = table({f"nn.{name}": quiet(by_wide(function)) for name, function in _ROWS.items()})
