"""Elements at places that memory holds: loads of single lanes, and rows that share places."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.backends.cpu.backend import BACKEND
from weft.backends.cpu.schedules import default
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.support.errors import RuntimeFault
from weft.target.machine import machine_of
from weft.tir.interp import run
from weft.tir.stmt import For, ForKind

SMALL = weft.target.Target("llvm -vector-width=128 -num-cores=2")
"""Vectors of four floats, so that small shapes have whole vectors and tails."""


def taken(mode):
    return lambda x, i: topi.take(x, i, 1, mode=mode)


def with_bias(x, i):
    return topi.add(topi.gather(x, 1, i), topi.strided_slice(x, [0, 0], [1, i.shape[1]]))


def twice(x, i):
    return te.compute(i.shape, lambda n, k: x[n, i[n, i[n, k] % i.shape[1]]])


def of_floats(x, i):
    """The places are computed in floats: no loads of single lanes."""

    def element(n, k):
        return x[n, (x[n, k] * 2.0).astype("int32") % x.shape[1] * 0 + i[n, k]]

    return te.compute(i.shape, element)


CASES = {
    # what, shapes of data and places, whether rows share places
    "columns": ((8, 9), (16,), taken("clip"), True),
    "columns by rows that are no eighths": ((17, 9), (7,), taken("clip"), True),
    "columns of one row": ((1, 9), (33,), taken("clip"), False),
    "columns of seven rows": ((7, 5), (21,), taken("clip"), True),
    "one column": ((9, 9), (1,), taken("clip"), False),
    "no column": ((9, 9), (0,), taken("clip"), False),
    "columns of no row": ((0, 9), (5,), taken("clip"), False),
    "columns from either end": ((10, 9), (19,), taken("wrap"), True),
    "columns that exist": ((10, 9), (19,), taken("nan"), True),
    "columns of images": ((2, 9, 3, 4), (18,), lambda x, i: topi.take(x, i, 3), True),
    "a matrix of columns": ((5, 9), (3, 7), taken("clip"), True),
    "rows": ((9, 20), (7,), lambda x, i: topi.take(x, i, 0), False),
    "elements": ((7, 9), (7, 33), lambda x, i: topi.gather(x, 1, i), False),
    "elements and what is added": ((7, 40), (7, 33), with_bias, False),
    "elements of columns": ((9, 35), (4, 35), lambda x, i: topi.gather(x, 0, i), False),
    "elements at places of places": ((7, 9), (7, 33), twice, False),
    "elements at places of floats": ((3, 19), (3, 19), of_floats, False),
}  # fmt: skip


def made_of(name, target, kinds=("float32", "int64")):
    """The function, its schedule and the arguments."""
    data, places, compute, _ = CASES[name]
    x, i = te.placeholder(data, kinds[0], "x"), te.placeholder(places, kinds[1], "i")
    func = te.create_prim_func([x, i, result := compute(x, i)])
    made = default.schedule(tir.Schedule(func), machine_of(target), ()).mod["main"]
    generator = np.random.default_rng(3)
    first = -3 if "columns" in name and len(places) == 1 and kinds[1] != "uint8" else 0
    values = generator.normal(size=data) > 0 if kinds[0] == "bool" else generator.normal(size=data)
    end = min(size for size in data if size) + 3 if first else 4
    arrays = [values.astype(kinds[0]), generator.integers(first, end, places).astype(kinds[1])]
    return func, made, arrays, [int(extent) for extent in result.shape]


def native_of(made, target, arrays, size):
    result = weft.nd.array(np.full(size, 1, arrays[0].dtype))
    weft.build(made, target)["main"](*[weft.nd.array(array) for array in arrays], result)
    return result.numpy()


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name):
    func, made, arrays, size = made_of(name, SMALL)
    expected, lowered = np.full(size, 7, "float32"), np.full(size, 7, "float32")
    run(func, *arrays, expected)
    run(lower_tir()(weft.IRModule({"main": made}))["main"], *arrays, lowered)
    np.testing.assert_array_equal(lowered, expected)
    np.testing.assert_array_equal(native_of(made, SMALL, arrays, size), expected)
    unrolled = [loop for loop in collect(made.body, For) if loop.kind is ForKind.UNROLLED]
    assert bool(unrolled) == CASES[name][3]


@pytest.mark.parametrize("kind", ["bool", "float16", "int8", "float64"])
@pytest.mark.parametrize("place", ["int32", "uint8"])
def test_elements_and_places_of_any_type(kind, place):
    func, made, arrays, size = made_of("columns by rows that are no eighths", "llvm", (kind, place))
    expected = np.full(size, 1, kind)
    run(func, *arrays, expected)
    np.testing.assert_array_equal(native_of(made, "llvm", arrays, size), expected)


@pytest.mark.parametrize("wrong", [-1, 9, 2**40])
@pytest.mark.parametrize("lane", [0, 31, 32])
def test_a_place_outside_is_refused(wrong, lane):
    _, made, arrays, size = made_of("elements", "llvm")
    arrays[1][5, lane] = wrong
    with pytest.raises(RuntimeFault, match=r"out of bounds for buffer x on axis 1 of extent 9"):
        native_of(made, "llvm", arrays, size)


@pytest.mark.parametrize("name", ["columns", "elements"])
@pytest.mark.parametrize("cpu", ["znver4", "haswell"])
def test_places_stay_out_of_vectors(name, cpu):
    target = weft.target.Target(f"llvm -mcpu={cpu} -num-cores=1")
    _, made, _, _ = made_of(name, target)
    lowered = lower_tir()(weft.IRModule({"main": made}))
    assert "gather" not in BACKEND.emit(lowered, target).get_source("asm")


def test_a_row_at_a_place_that_is_read_is_a_run():
    x, i = te.placeholder((9, 64), "float32", "x"), te.placeholder((7,), "int64", "i")
    func = te.create_prim_func([x, i, topi.take(x, i, 0, mode="fast")])
    target = weft.target.Target("llvm -mcpu=znver4 -num-cores=1")
    made = default.schedule(tir.Schedule(func), machine_of(target), ()).mod["main"]
    source = BACKEND.emit(lower_tir()(weft.IRModule({"main": made})), target).get_source()
    assert "insertelement" not in source
