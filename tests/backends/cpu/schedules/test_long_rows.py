"""Sums of rows that are longer than registers hold."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.backends.cpu.schedules import default
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.interp import run
from weft.tir.stmt import For

NARROW = "llvm -mcpu=x86-64 -vector-width=128 -num-cores=2"
"""Sixteen registers of four floats, and two cores: 56 sums of a core are in registers."""
RNG = np.random.default_rng(5)


def total(shape, axis, dtype="float32", compute=topi.sum):
    x = te.placeholder(shape, dtype, "x")
    return [x, compute(x, axis)]


CASES = {
    **{f"{rows} rows of {size}": total((rows, size), 0)
       for rows, size in ((1, 300), (7, 301), (17, 113), (0, 260), (9, 2300), (513, 150))},
    "the middle": total((3, 6, 270), 1), "outer ones": total((3, 5, 270), [0, 1]),
    "the largest": total((6, 270), 0, compute=topi.max),
    "integers": total((6, 270), 0, "int32"), "doubles": total((6, 270), 0, "float64"),
    "means": total((6, 270), 0, compute=lambda x, axis: topi.divide(topi.sum(x, axis), 6.0)),
}  # fmt: skip


def scheduled(tensors, target):
    func = te.create_prim_func(tensors)
    return default.schedule(tir.Schedule(func), machine_of(target), ()).mod["main"]


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name):
    given, result = CASES[name]
    array = (RNG.normal(size=[int(size) for size in given.shape]) * 9).astype(str(given.dtype))
    made = scheduled([given, result], NARROW)
    expected, interpreted = [
        np.ones([int(size) for size in result.shape], str(result.dtype)) for _ in range(2)
    ]
    run(te.create_prim_func([given, result]), array, expected)
    run(lower_tir()(weft.IRModule({"main": made}))["main"], array, interpreted)
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-3)
    native = weft.nd.array(np.ones_like(expected))
    weft.build(made, NARROW)["main"](weft.nd.array(array), native)
    np.testing.assert_allclose(native.numpy(), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("size", "tile"), [(112, None), (300, 152), (2300, 576)])
def test_rows_run_as_far_as_a_part_of_the_first_cache_holds(size, tile):
    """Two cores share a row; a vector of its sums meets four rows at a time."""
    func = scheduled(total((8, size), 0), NARROW + " -l1d-cache-bytes=32768")
    extents = [loop.extent.value for loop in collect(func.body, For)]
    assert (tile is None) == (4 not in extents)
    if tile is not None:
        assert {tile // 4, 4, tile} <= set(extents)


@pytest.mark.parametrize("rows", [0, 1, 7, 17])
def test_an_unknown_number_of_rows(rows):
    given, result = total((te.var("n", "int64"), 270), 0)
    array, native = RNG.normal(size=(rows, 270)).astype("float32"), weft.nd.empty((270,), "float32")
    weft.build(scheduled([given, result], NARROW), NARROW)["main"](weft.nd.array(array), native)
    np.testing.assert_allclose(native.numpy(), array.sum(0), rtol=1e-4, atol=1e-4)
