"""Data along the columns of a tiled reduction: when it is copied into panels, and results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import convolution, floats, matmul, results_of, scheduled
from weft import te, tir
from weft.backends.cpu.schedules import default
from weft.ir.functor import collect
from weft.runtime.threads.parallel import set_num_threads
from weft.target.machine import machine_of
from weft.tir.stmt import Block

pytestmark = pytest.mark.sampled(4)


def machine(second):
    """One with small caches, of which the second one holds so many bytes."""
    return weft.target.Target(
        f"llvm -vector-width=128 -num-cores=2 -l1d-cache-bytes=1024 -l2-cache-bytes={second}"
    )


TINY, LARGER = machine(4096), machine(16384)
"""Half of the first one's second cache holds the smaller operands below."""
CASES = {
    "whole": matmul(100, 19, 20),
    "batched": matmul(100, 19, 20, (2,)),
    "panel by panel": matmul(100, 40, 20),
    "pixels": convolution((1, 20, 5, 5), (100, 20, 1, 1), padding=0),
    "images of pixels": convolution((2, 20, 1, 30), (100, 20, 1, 1), padding=0),
}


LONG = (100, 37, 512)
"""Rows, columns and depth of a product whose sum is computed in parts."""


def program(name):
    inputs, result = CASES[name]()
    return te.create_prim_func([*inputs, result]), inputs, result


def blocks_of(func):
    return [block.name_hint for block in collect(func.body, Block)]


def on(target, func):
    return default.schedule(tir.Schedule(func), machine_of(target), ()).mod["main"]


@pytest.mark.parametrize("name", CASES)
def test_results(name, monkeypatch):
    monkeypatch.setattr("tests.lib.default_schedules.SMALL", TINY)
    func, inputs, result = program(name)
    arrays = [floats(*[int(extent) for extent in tensor.shape]) for tensor in inputs]
    shape = [int(extent) for extent in result.shape]
    _, expected, interpreted, native = results_of(func, arrays, shape)
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("target", "sizes"), [(TINY, (100, 19, 20)), (TINY, (100, 40, 20)), (LARGER, LONG)], ids=str
)
def test_rows_that_many_tiles_use_are_copied(target, sizes):
    func = te.create_prim_func(_flat(matmul(*sizes)()))
    assert any(block.startswith("B_global") for block in blocks_of(on(target, func)))


def test_few_tiles_read_rows_where_they_lie():
    func = te.create_prim_func(_flat(matmul(8, 40, 20)()))
    assert not any(block.startswith("B_global") for block in blocks_of(on(TINY, func)))


def test_rows_that_stay_in_the_first_cache_are_read_where_they_lie():
    func, _, _ = program("whole")
    assert not any(block.startswith("B_global") for block in blocks_of(scheduled(func)))


def test_one_panel_needs_no_copy():
    func = te.create_prim_func(_flat(matmul(100, 4, 300)()))
    assert not any(block.startswith("B_global") for block in blocks_of(on(TINY, func)))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("target", "sizes"), [(TINY, (100, 40, 20)), (LARGER, LONG), (TINY, LONG)], ids=str
)
def test_threads_copy_for_themselves(target, sizes, threads):
    rows, columns, depth = sizes
    func = te.create_prim_func(_flat(matmul(*sizes)()))
    kernel = weft.build(on(target, func), target)["main"]
    a, b, c = floats(rows, depth), floats(depth, columns), weft.nd.array(floats(rows, columns))
    set_num_threads(threads)
    try:
        kernel(weft.nd.array(a), weft.nd.array(b), c)
    finally:
        set_num_threads(None)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4, atol=1e-4)


def _flat(tensors):
    inputs, result = tensors
    return [*inputs, result]
