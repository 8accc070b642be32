"""Instructions on whole registers, for any number of lanes, and their meaning elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.llvm.conftest import elementwise_func
from weft.script import tir as T
from weft.target.host import host_features
from weft.target.machine import machine_of
from weft.target.target import Target
from weft.tir import expr as e
from weft.tir import interp
from weft.tir.op import const

TARGETS = ["llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"]
LANES = [1, 2, 3, 5, 8, 12, 16, 24, 48]
LACKS_AVX512 = not all(host_features().get(f"avx512{name}", False) for name in ("f", "bw", "vl"))
AVX512 = pytest.param(
    "llvm -mcpu=x86-64-v4",
    marks=pytest.mark.skipif(LACKS_AVX512, reason="cannot run code for AVX-512"),
)


def agree(native, compute, target, lanes, *arrays):
    count, dtypes = len(arrays[0]), [str(x.dtype) for x in arrays]
    func = elementwise_func(dtypes, "float32", compute, count, lanes)
    compiled, interpreted = (np.zeros(count, "float32") for _ in range(2))
    native(func, target)(*arrays, compiled)
    interp.run(func, *arrays, interpreted)
    np.testing.assert_array_equal(compiled, interpreted)
    return compiled


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", LANES)
def test_scaleb(lanes, target, native):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 16 * lanes).astype("float32")
    power = np.resize([0, 3, -3, 127, -126, -140, -149, -150, 1000, -1000], 16 * lanes)
    got = agree(
        native, lambda a, b: T.scaleb(a, b, a > const(0.0, a.dtype)), target, lanes, x,
        power.astype("float32"),
    )  # fmt: skip
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, np.where(x > 0, np.ldexp(x, power), 0))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("count", [4, 8, 16])
def test_lookup(count, lanes, target, native):
    numbers = np.random.default_rng(1).standard_normal(count).astype("float32")
    table = e.Shuffle([const(float(x), "float32") for x in numbers], [*range(count)])
    places = np.arange(16 * lanes, dtype="uint32") * 7 + 3
    got = agree(native, lambda p: T.lookup(table, p), target, lanes, places)
    np.testing.assert_array_equal(got, numbers[places % count])


@pytest.mark.parametrize("target", [*TARGETS, AVX512, "llvm -mattr=-avx512f"])
@pytest.mark.parametrize("lanes", LANES)
def test_dot_four_bytes(lanes, target, native):
    rng = np.random.default_rng(4)
    count = 16 * lanes
    signed = rng.integers(-128, 128, (count, 4)).astype("int8")
    unsigned = rng.integers(0, 256, (count, 4)).astype("uint8")
    signed[:3], unsigned[:3] = [[-128] * 4, [127] * 4, [-128, 127, -1, 0]], 255
    total = rng.integers(-(2**31), 2**31, count).astype("int32")
    a, b = unsigned.view("int32").ravel(), signed.view("int32").ravel()
    func = elementwise_func(["int32"] * 3, "int32", T.dot_four_bytes, count, lanes)
    compiled, interpreted = np.zeros((2, count), "int32")
    native(func, target)(total, a, b, compiled)
    interp.run(func, total, a, b, interpreted)
    products = unsigned.astype("int64") * signed
    wanted = (total.astype("int64") + products.sum(axis=1)).astype("int32")
    np.testing.assert_array_equal(interpreted, wanted)
    np.testing.assert_array_equal(compiled, wanted)


def test_a_dot_product_of_bytes_is_one_instruction_where_there_is_one(native):
    func = elementwise_func(["int32"] * 3, "int32", T.dot_four_bytes, 48, 24)
    machine = machine_of(Target("llvm"))
    text = native(func).compiled.llvm_ir
    assert ("vpdpbusd" in text) == ("vpdpbusd" in machine.dot_products)


@pytest.mark.parametrize("lanes", [1, 4, 7])
def test_all_lanes(lanes, native):
    x = np.random.default_rng(2).uniform(-1, 8, 16 * lanes).astype("float32")

    def compute(a):
        return T.if_then_else(T.all_lanes(a > const(0.0, a.dtype)), a, a + a)

    got = agree(native, compute, "llvm", lanes, x)
    every = (x.reshape(-1, lanes) > 0).all(axis=1).repeat(lanes)
    np.testing.assert_array_equal(got, np.where(every, x, x + x))


def test_what_is_uncontracted_is_rounded_at_each_operation(native):
    x = np.random.default_rng(3).standard_normal((3, 512)).astype("float32")

    def compute(a, b, c):
        return T.uncontracted(a * b + c)

    got = agree(native, compute, "llvm", 8, *x)
    np.testing.assert_array_equal(got, x[0] * x[1] + x[2])
    text = native(elementwise_func(["float32"] * 3, "float32", compute, 8)).compiled.llvm_ir
    assert "fmul float" in text
    assert "contract" not in text
