"""Activations, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.relax.op.reference.rule import in_float64
from weft.relax.op.reference.unary import sigmoid

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""Klambauer and others, "Self-Normalizing Neural Networks", 2017."""
erfc = np.vectorize(math.erfc, otypes=[np.float64])


@in_float64
def prelu(data: Any, alpha: Any, axis: int = 1) -> Any:
    """x, or x times the slope of its channel."""
    shape = [1] * data.ndim
    shape[axis] = -1
    return np.where(data > 0, data, data * alpha.reshape(shape))


@in_float64
def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta * x)) / beta without overflow."""
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)


@in_float64
def gelu_tanh(x: Any) -> Any:
    """x times a logistic function that is near the normal one."""
    return x * sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))


@in_float64
def relu6(x: Any) -> Any:
    """x between 0 and 6."""
    return np.minimum(np.maximum(x, 0), 6).astype(x.dtype)


@in_float64
def silu(x: Any) -> Any:
    """x * sigmoid(x)."""
    return x * sigmoid(x)


@in_float64
def selu(x: Any) -> Any:
    """The scaled elu."""
    return _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x))


@in_float64
def elu(x: Any, alpha: float = 1.0) -> Any:
    """x, or alpha * (exp(x) - 1)."""
    return np.where(x > 0, x, alpha * np.expm1(x))


@in_float64
def celu(x: Any, alpha: float = 1.0) -> Any:
    """x, or alpha * (exp(x / alpha) - 1)."""
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


@in_float64
def hardsigmoid(x: Any) -> Any:
    """A line from 0 to 1."""
    return np.minimum(np.maximum(x + 3, 0), 6) / 6


@in_float64
def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """x between two limits."""
    return np.minimum(np.maximum(x, min_val), max_val)


@in_float64
def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """0 near 0, else x."""
    return np.where(np.abs(x) <= lambd, 0, x)


@in_float64
def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """0 near 0, else x moved towards 0."""
    return np.where(np.abs(x) <= lambd, 0, x - np.sign(x) * lambd)


@in_float64
def softmax(x: Any, axis: int = -1) -> Any:
    """Powers by their sum."""
    if not x.size:
        return x
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@in_float64
def log_softmax(x: Any, axis: int = -1) -> Any:
    """x less the logarithm of the sum of powers."""
    if not x.size:
        return x
    moved = x - x.max(axis, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis, keepdims=True))
