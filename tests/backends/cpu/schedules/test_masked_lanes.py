"""Short rows, some of whose elements are chosen by their place: whole vectors with lanes masked."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.arith import Analyzer
from weft.backends.cpu.schedules import default
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.buffer import BufferLoad
from weft.tir.interp import run
from weft.tir.stmt import BufferStore, For

pytestmark = pytest.mark.sampled(3)

RNG = np.random.default_rng(3)
AVX2, AVX512 = "llvm -mcpu=x86-64-v3 -num-cores=1", "llvm -mcpu=x86-64-v4 -num-cores=1"


def scheduled(tensors, target):
    func = te.create_prim_func(tensors)
    return default.schedule(tir.Schedule(func), machine_of(target), ()).mod["main"]


def lowered(func):
    return lower_tir()(weft.IRModule({"main": func}))["main"]


def masked(func):
    """The loads that leave lanes out."""
    return [load for load in collect(func.body, BufferLoad) if load.predicate is not None]


def padded(width, dtype="float32", value=0.0, left=1, right=1):
    x = te.placeholder((3, 2, width), dtype, "x")
    return [x, topi.nn.pad(x, [1, 0, left], [0, 2, right], value)]


def pieces(*widths):
    given = [te.placeholder((5, width), "float32", "x") for width in widths]
    return [*given, topi.concatenate(given, 1)]


def taken():
    x, i = te.placeholder((20,), "int32", "x"), te.placeholder((4, 14), "int32", "i")

    def element(row, at):
        place = te.floormod(i[row, at - 1], 20)
        return te.if_then_else(te.all(at >= 1, at < 15), x[place], 0)

    return [x, i, te.compute((4, 16), element, "taken")]


CASES = {
    **{f"row of {width}": padded(width) for width in (0, 1, 2, 6, 7, 14, 15, 16, 28, 62, 63)},
    "another number": padded(14, value=1.5),
    "less than none": padded(14, value=-0.0),
    "bytes": padded(14, "int8"),
    "halves": padded(14, "float16"),
    "long": padded(7, "int64"),
    "behind": padded(13, left=0, right=3),
    "before": padded(9, left=5, right=0),
    "two pieces": pieces(7, 9),
    "a piece of one": pieces(1, 30),
    "three pieces": pieces(4, 5, 6),
    "taken elements": taken(),
}


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name, target):
    tensors = CASES[name]
    arrays = [
        (RNG.normal(size=[int(size) for size in tensor.shape]) * 50).astype(str(tensor.dtype))
        for tensor in tensors
    ]
    made = scheduled(tensors, target)
    expected, interpreted, native = [np.ones_like(arrays[-1]) for _ in range(3)]
    run(te.create_prim_func(tensors), *arrays[:-1], expected)
    run(lowered(made), *arrays[:-1], interpreted)
    np.testing.assert_array_equal(interpreted, expected)
    given = [weft.nd.array(array) for array in (*arrays[:-1], native)]
    weft.build(made, "llvm")["main"](*given)
    np.testing.assert_array_equal(given[-1].numpy(), expected)
    np.testing.assert_array_equal(np.signbit(given[-1].numpy()), np.signbit(expected))


def test_a_row_is_one_vector():
    func = lowered(scheduled(padded(14), AVX2))
    [load] = masked(func)
    assert load.dtype.lanes == 16
    assert all(loop.extent.value < 14 for loop in collect(func.body, For))


@pytest.mark.parametrize(
    ("tensors", "target"),
    [(padded(14), "llvm -mcpu=x86-64"), (padded(14, "int8"), AVX2), (padded(63), AVX512)],
    ids=["no masks", "no masks of bytes", "a long row"],
)
def test_what_cannot_be_masked_or_is_long_is_cut(tensors, target):
    func = lowered(scheduled(tensors, target))
    assert not masked(func)
    loads = [load for load in collect(func.body, BufferLoad) if load.dtype.lanes > 1]
    assert loads


N, W = tir.SizeVar("n", "int64"), tir.SizeVar("w", "int64")
ANY = {
    "resized": lambda x: topi.image.resize1d(x, None, [W * 2], method="linear"),
    "resized by floats": lambda x: topi.image.resize1d(x, None, [W * 3 // 2], method="linear"),
    "every second": lambda x: te.compute((N, 2, W), lambda i, j, k: x[i, j, k] * x[i, j, 0]),
    "turned": lambda x: topi.flip(x, 2),
    "padded": lambda x: topi.nn.pad(x, [0, 0, 1], [0, 1, 2]),
    "chosen": lambda x: te.compute(
        (N, 2, W), lambda i, j, k: te.if_then_else(k % 3 == 0, x[i, j, k], 0.0)
    ),
}


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("name", ANY)
def test_rows_of_any_length_end_in_vectors_with_lanes_masked(name, dtype, target):
    x = te.placeholder((N, 2, W), dtype, "x")
    if dtype == "int32" and name == "chosen":
        pytest.skip("its other number is a float")
    if dtype == "int32" and name == "resized by floats":
        pytest.skip("halves between two integers are rounded by the last bit of a sum")
    tensors = [x, ANY[name](x)]
    made, rng = scheduled(tensors, target), np.random.default_rng(3)
    for rows, width in ((2, 1), (1, 7), (3, 16), (2, 21), (1, 0)):
        given = (rng.normal(size=(rows, 2, width)) * 50).astype(dtype)
        extents = {N: tir.IntImm("int64", rows), W: tir.IntImm("int64", width)}
        sizes = [tir.stmt_functor.substitute(size, extents) for size in tensors[1].shape]
        shape = [int(Analyzer().simplify(size)) for size in sizes]
        results = [np.full(shape, 1).astype(str(tensors[1].dtype)) for _ in range(3)]
        run(te.create_prim_func(tensors), given, results[0])
        run(lowered(made), given, results[1])
        native = [weft.nd.array(given), weft.nd.array(results[2])]
        weft.build(made, "llvm")["main"](*native)
        for result in (results[1], native[1].numpy()):
            # Numbers of size 50 cancel: the error is as large as theirs.
            np.testing.assert_allclose(result, results[0], rtol=1e-5, atol=50 * 1e-5)


@pytest.mark.parametrize("name", ["resized", "turned"])
def test_the_end_of_a_row_of_any_length_is_one_store(name):
    x = te.placeholder((N, 2, W), "float32", "x")
    stores = collect(lowered(scheduled([x, ANY[name](x)], AVX512)).body, BufferStore)
    masks = [store.predicate is not None for store in stores]
    assert (any(masks[:-1]), masks[-1]) == (False, True)
    assert {store.value.dtype.lanes for store in stores} == {16}
