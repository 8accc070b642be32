"""Activations, in float64."""

from __future__ import annotations

import math

import numpy as np

from weft.relax.op.reference.rule import in_float64
from weft.relax.op.reference.unary import sigmoid

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""Klambauer and others, "Self-Normalizing Neural Networks", 2017."""
erfc = np.vectorize(math.erfc, otypes=[np.float64])


@in_float64
def prelu(data: np.ndarray, alpha: np.ndarray, axis: int = 1) -> np.ndarray:
    """x where x > 0, else x times the slope of its channel."""
    shape = [1] * data.ndim
    shape[axis] = -1
    return np.where(data > 0, data, data * alpha.reshape(shape))


@in_float64
def softplus(x: np.ndarray, beta: float = 1.0, threshold: float = 20.0) -> np.ndarray:
    """log(1 + exp(beta * x)) / beta without overflow."""
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)


@in_float64
def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """x * Phi(x), with Phi approximated by a logistic function."""
    return np.asarray(x * sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)))


@in_float64
def relu6(x: np.ndarray) -> np.ndarray:
    """x clamped to [0, 6]."""
    return np.asarray(np.minimum(np.maximum(x, 0), 6).astype(x.dtype))


@in_float64
def silu(x: np.ndarray) -> np.ndarray:
    """x * sigmoid(x)."""
    return np.asarray(x * sigmoid(x))


@in_float64
def selu(x: np.ndarray) -> np.ndarray:
    """The scaled elu."""
    return _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x))


@in_float64
def elu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    """x where x > 0, else alpha * (exp(x) - 1)."""
    return np.where(x > 0, x, alpha * np.expm1(x))


@in_float64
def celu(x: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    """x where x > 0, else alpha * (exp(x / alpha) - 1)."""
    return np.where(x > 0, x, alpha * np.expm1(x / alpha))


@in_float64
def hardsigmoid(x: np.ndarray) -> np.ndarray:
    """min(max(x + 3, 0), 6) / 6."""
    return np.asarray(np.minimum(np.maximum(x + 3, 0), 6) / 6)


@in_float64
def hardtanh(x: np.ndarray, min_val: float = -1.0, max_val: float = 1.0) -> np.ndarray:
    """x clamped to [min_val, max_val]."""
    return np.asarray(np.minimum(np.maximum(x, min_val), max_val))


@in_float64
def hardshrink(x: np.ndarray, lambd: float = 0.5) -> np.ndarray:
    """0 where abs(x) <= lambd, else x."""
    return np.where(np.abs(x) <= lambd, 0, x)


@in_float64
def softshrink(x: np.ndarray, lambd: float = 0.5) -> np.ndarray:
    """0 where abs(x) <= lambd, else x moved towards 0 by lambd."""
    return np.where(np.abs(x) <= lambd, 0, x - np.sign(x) * lambd)


@in_float64
def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """exp(x) / sum of exp(x) along an axis."""
    if not x.size:
        return x
    powers = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


@in_float64
def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """x - log(sum of exp(x)) along an axis."""
    if not x.size:
        return x
    moved = x - x.max(axis, keepdims=True)
    return np.asarray(moved - np.log(np.exp(moved).sum(axis, keepdims=True)))
