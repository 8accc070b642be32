"""Activations over their whole range against float64: no digits are lost near 0 nor far out."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import te, topi

erfc = np.vectorize(math.erfc, otypes=[np.float64])
SMALLEST = 1e-36
"""Where spacings are taken that are not smaller any more."""
NORMAL = float(np.finfo(np.float32).tiny)
"""Results below float32's normal numbers may be 0, and factors there have fewer digits."""


def logistic(x: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def mish(x: np.ndarray) -> np.ndarray:
    power = np.exp(np.minimum(x, 50))
    return x * (power * (power + 2)) / (power * (power + 2) + 2)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * logistic(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


CURVES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "gelu": (lambda x: x * 0.5 * erfc(-x * math.sqrt(0.5)), 3.6),
    "gelu_tanh": (gelu_tanh, 2.8),
    "silu": (lambda x: x * logistic(x), 2.7),
    "softplus": (lambda x: np.where(x > 20, x, softplus(x)), 2),
    "mish": (mish, 3.6),
    "log_sigmoid": (lambda x: -softplus(-x), 2),
    "elu": (elu, 2),
    "celu": (elu, 2),
    "selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * elu(x)), 2),
    "softsign": (lambda x: x / (1 + np.abs(x)), 2),
}
"""Name -> the function in float64, and how many ulp float32 may be off."""


def sweep(dtype: np.dtype) -> np.ndarray:
    """Every float16 or bfloat16, or 2**16 numbers of float32, up to 300 and no NaN."""
    if dtype.itemsize == 2:
        x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    else:
        rng = np.random.default_rng(3)
        sizes = 10.0 ** rng.uniform(-30, 2.4, 1 << 15)
        x = np.concatenate([sizes, -sizes, rng.uniform(-16, 16, 1 << 15), [-1e-8, -20.0, -4.05]])
    x = x.astype(dtype)
    with np.errstate(invalid="ignore"):
        return x[np.abs(x.astype(np.float64)) <= 300]


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in spacings of the type at the exact value."""
    near = np.maximum(np.abs(exact), SMALLEST).astype(got.dtype)
    unit = np.nextafter(near, got.dtype.type(np.inf)).astype(np.float64) - near.astype(np.float64)
    return np.asarray(np.maximum(np.abs(got.astype(np.float64) - exact) - NORMAL, 0) / unit)


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CURVES)
def test_activation_is_near_float64_over_its_whole_range(name, kind):
    function, allowed = CURVES[name]
    dtype = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    x = sweep(dtype)
    given = te.placeholder((len(x),), kind)
    result = getattr(topi.nn, name)(given)
    run = weft.build(te.create_prim_func([given, result]))
    got = weft.nd.array(np.zeros_like(x))
    run(weft.nd.array(x), got)
    error = ulps(got.numpy(), function(x.astype(np.float64)))
    worst = int(np.argmax(error))
    assert error[worst] <= (allowed if kind == "float32" else 1), (x[worst], got.numpy()[worst])
