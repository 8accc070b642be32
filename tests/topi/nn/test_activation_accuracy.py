"""Activations over their whole range against float64: no digits are lost near 0 nor far out."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import te, topi
from weft.tir.function import PrimFunc
from weft.tir.interp import run as interpret

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


CURVES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": lambda x: x * 0.5 * erfc(-x * math.sqrt(0.5)),
    "gelu_tanh": gelu_tanh,
    "silu": lambda x: x * logistic(x),
    "softplus": lambda x: np.where(x > 20, x, softplus(x)),
    "mish": mish,
    "log_sigmoid": lambda x: -softplus(-x),
    "elu": elu,
    "celu": elu,
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * elu(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
}
"""Name -> the function in float64."""
TARGETS = ["llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"]
"""With AVX-512 where there is one, with fused operations alone, and with neither."""


def sweep(dtype: np.dtype) -> np.ndarray:
    """Every finite float16 or bfloat16, or 300,000 numbers of float32 of all sizes."""
    if dtype.itemsize == 2:
        x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    else:
        rng = np.random.default_rng(3)
        count = 1 << 15
        sizes = np.concatenate(
            [10.0 ** rng.uniform(-45, 38.5, count), 2.0 ** rng.uniform(-16, 6.6, count)]
        )
        plain = [
            rng.uniform(-16, 16, 2 * count),
            rng.uniform(-3, 3, 2 * count),
            [-1e-8, -20.0, -4.05, 0],
        ]
        x = np.concatenate([sizes, -sizes, rng.uniform(-95, -85, count), *plain])
    with np.errstate(over="ignore", invalid="ignore"):
        x = x.astype(dtype)
        return x[np.isfinite(x.astype(np.float32))]


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in spacings of the type at the exact value; of equal numbers 0, inf included."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.maximum(np.abs(exact), SMALLEST).astype(got.dtype)
        unit = np.spacing(near.astype(got.dtype)).astype(np.float64)
        distance = np.abs(got.astype(np.float64) - exact)
        error = np.maximum(distance - NORMAL, 0) / unit
    return np.asarray(np.where(got == exact.astype(got.dtype), 0, error))


def check(name: str, x: np.ndarray, got: np.ndarray, allowed: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        error = ulps(got, CURVES[name](x.astype(np.float64)))
    worst = int(np.argmax(error))  # a NaN is the largest
    assert error[worst] <= allowed, (x[worst], got[worst])


def activation(name: str, x: np.ndarray, kind: str) -> PrimFunc:
    given = te.placeholder((len(x),), kind)
    return te.create_prim_func([given, getattr(topi.nn, name)(given)])


def native(name: str, x: np.ndarray, kind: str, target: str = "llvm") -> np.ndarray:
    run = weft.build(activation(name, x, kind), target=target)
    got = weft.nd.array(np.zeros_like(x))
    run(weft.nd.array(x), got)
    return got.numpy()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CURVES)
def test_float32_is_within_two_ulp_over_its_whole_range(name, target):
    x = sweep(np.dtype(np.float32))
    check(name, x, native(name, x, "float32", target), 2)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", CURVES)
def test_narrow_types_are_within_one_ulp(name, kind):
    x = sweep(np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind))
    check(name, x, native(name, x, kind), 1)


@pytest.mark.parametrize("name", CURVES)
def test_the_interpreter_is_within_two_ulp(name):
    x = sweep(np.dtype(np.float32))[::97]
    got = np.zeros_like(x)
    interpret(activation(name, x, "float32"), x, got)
    check(name, x, got, 2)


@pytest.mark.parametrize(
    ("name", "places"),
    [("gelu", (-0.0002, -0.9, -1.4334, -2.2001, -3.4504, -8.0, -13.1)),
     ("gelu_tanh", (-6.0245e-5, -0.0019475, -0.35, -2.76, -5.206, 3.5)),
     ("silu", (-3.0339e-5, -0.00048834, -0.35, -5.2, -15.95, -16.68, 7.94)),
     ("mish", (-1.5, -5.1991, -0.6, 0.7))],
)  # fmt: skip
def test_float32_is_within_two_ulp_where_roundings_add_up(name, places):
    """All numbers of some neighbourhoods: the worst of a search over every float32."""
    bits = np.arange(-(1 << 14), 1 << 14, dtype=np.int32)
    x = np.concatenate([np.float32(place).view(np.int32) + bits for place in places])
    x = x.view(np.float32)
    check(name, x, native(name, x, "float32"), 2)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu"])
def test_far_out_gelu_and_silu_are_x_or_0(name, kind):
    x = np.array([np.inf, 3e38, 1e30, 120, -900, -1e30, -3e38, -np.inf, np.nan], kind)
    x = np.resize(x, 8 * len(x))
    interpreted = np.zeros_like(x)
    interpret(activation(name, x, kind), x, interpreted)
    for target in TARGETS:
        for got in (native(name, x, kind, target), interpreted):
            np.testing.assert_array_equal(got, np.where(x < 0, 0, x))
