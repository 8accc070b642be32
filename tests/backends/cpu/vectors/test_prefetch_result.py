"""PrefetchResult: before and after, and what is left as it is."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.transform import PrefetchResult


def rows_of_a_product(width):
    """A product, row by row, with the annotation and a guard."""

    @T.prim_func
    def func(
        a: T.Buffer((7, 5), "float32"),
        b: T.Buffer((5, width), "float32"),
        c: T.Buffer((7, width), "float32"),
    ):
        total = T.alloc_buffer((2, width), "float32", scope="local")
        for r in T.serial(4, annotations={"tir.prefetch_result": True}):
            for i in T.unroll(2):
                for x in T.vectorized(width):
                    total[i, x] = T.float32(0)
            for k in range(5):
                for i in T.unroll(2):
                    for x in T.vectorized(width):
                        if r * 2 + i < 7:
                            total[i, x] = total[i, x] + a[r * 2 + i, k] * b[k, x]
            for i in T.unroll(2):
                for x in T.vectorized(width):
                    if r * 2 + i < 7:
                        c[r * 2 + i, x] = total[i, x]

    return func


def lowered(func):
    return PrefetchResult()(weft.IRModule({"func": func}))["func"]


def test_a_tile_starts_with_the_lines_that_it_ends_with(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 5), "float32"), c: T.Buffer((4, 40), "float32")):
        total = T.alloc_buffer((40,), "float32", scope="local")
        for r in T.serial(4, annotations={"tir.prefetch_result": True}):
            for x in T.vectorized(40):
                total[x] = T.float32(0)
            for k in range(5):
                for x in T.vectorized(40):
                    total[x] = total[x] + a[r, k]
            for x in T.vectorized(40):
                c[r, x] = total[x]

    @T.prim_func
    def expected(a: T.Buffer((4, 5), "float32"), c: T.Buffer((4, 40), "float32")):
        total = T.alloc_buffer((40,), "float32", scope="local")
        for r in range(4):
            for x in T.unroll(3):
                T.Call("int32", "tir.prefetch", [c[r, x * 16], 1, 3, 1])
            for x in T.vectorized(40):
                total[x] = T.float32(0)
            for k in range(5):
                for x in T.vectorized(40):
                    total[x] = total[x] + a[r, k]
            for x in T.vectorized(40):
                c[r, x] = total[x]

    becomes(PrefetchResult(), before, expected)


@pytest.mark.parametrize("width", [4, 16, 33])
def test_results_and_guards_stay(width):
    func = rows_of_a_product(width)
    after = lowered(func)
    assert after.script().count("r * 2 + i < 7") == 3
    assert "prefetch_result" not in after.script()
    kernel = weft.build(func)
    assert "llvm.prefetch" in kernel.get_source("ll")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in ((7, 5), (5, width))]
    native = weft.nd.array(np.zeros((7, width), np.float32))
    kernel["func"](*[weft.nd.array(array) for array in arrays], native)
    interpreted = np.zeros((7, width), np.float32)
    run(after, *arrays, interpreted)
    for result in (native.numpy(), interpreted):
        np.testing.assert_allclose(result, arrays[0] @ arrays[1], rtol=1e-5, atol=1e-5)


def test_stores_to_registers_need_no_memory():
    @T.prim_func
    def func(a: T.Buffer((4, 16), "float32"), c: T.Buffer((16,), "float32")):
        total = T.alloc_buffer((16,), "float32", scope="local")
        for r in T.serial(4, annotations={"tir.prefetch_result": True}):
            for x in T.vectorized(16):
                c[x] = a[r, x]
            for x in T.vectorized(16):
                total[x] = a[r, x]

    text = lowered(func).script()
    assert "prefetch" not in text


def test_a_loop_with_one_statement_stays():
    @T.prim_func
    def func(a: T.Buffer((4, 16), "float32"), c: T.Buffer((4, 16), "float32")):
        for r in T.serial(4, annotations={"tir.prefetch_result": True}):
            for x in T.vectorized(16):
                c[r, x] = a[r, x]

    assert "prefetch" not in lowered(func).script()


def test_more_than_a_tile_is_not_asked_for():
    @T.prim_func
    def func(a: T.Buffer((4, 99, 16), "float32"), c: T.Buffer((4, 99, 16), "float32")):
        for r in T.serial(4, annotations={"tir.prefetch_result": True}):
            for x in T.vectorized(16):
                c[r, 0, x] = T.float32(0)
            for i in range(99):
                for x in T.vectorized(16):
                    c[r, i, x] = a[r, i, x]

    assert "prefetch" not in lowered(func).script()
