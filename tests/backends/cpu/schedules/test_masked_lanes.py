"""Short rows, some of whose elements are chosen by their place: whole vectors with lanes masked."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.backends.cpu.schedules import default
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.buffer import BufferLoad
from weft.tir.interp import run
from weft.tir.stmt import For

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
