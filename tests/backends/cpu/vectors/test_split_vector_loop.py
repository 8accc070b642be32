"""SplitVectorLoop: before and after, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.stmt import For, ForKind
from weft.tir.transform import SplitVectorLoop


def test_lanes_that_are_no_power_of_two(becomes):
    @T.prim_func
    def before(a: T.Buffer((24,), "int32"), c: T.Buffer((24,), "int32")):
        for i in T.vectorized(24):
            c[i] = a[i] + 1

    @T.prim_func
    def expected(a: T.Buffer((24,), "int32"), c: T.Buffer((24,), "int32")):
        for i in T.vectorized(16):
            c[i] = a[i] + 1
        for i in T.vectorized(8):
            c[i + 16] = a[i + 16] + 1

    becomes(SplitVectorLoop(), before, expected)


def test_as_many_long_vectors_as_there_are(becomes):
    @T.prim_func
    def before(a: T.Buffer((44,), "int32"), c: T.Buffer((44,), "int32")):
        for i in T.vectorized(44):
            c[i] = a[i] + 1

    @T.prim_func
    def expected(a: T.Buffer((44,), "int32"), c: T.Buffer((44,), "int32")):
        for i in T.unroll(2):
            for i_1 in T.vectorized(16):
                c[i * 16 + i_1] = a[i * 16 + i_1] + 1
        for i in T.vectorized(8):
            c[i + 32] = a[i + 32] + 1
        for i in T.vectorized(4):
            c[i + 40] = a[i + 40] + 1

    becomes(SplitVectorLoop(), before, expected)


@pytest.mark.parametrize("extent", [1, 7, 12, 16, 32, 64])
def test_what_is_one_vector_stays(becomes, extent):
    @T.prim_func
    def before(a: T.Buffer((extent,), "int32"), c: T.Buffer((extent,), "int32")):
        for i in T.vectorized(extent):
            c[i] = a[i] + 1

    becomes(SplitVectorLoop(), before, before)


@pytest.mark.parametrize("extent", [24, 200, 615])
def test_a_loop_without_a_vector_form_is_one_serial_loop(becomes, extent):
    """In parts, it would be as many scalar instructions as iterations after LLVM unrolls them."""

    @T.prim_func
    def before(a: T.Buffer((extent, 19), "int32"), c: T.Buffer((extent,), "int32")):
        for i in T.vectorized(extent):
            c[i] = a[i, 3] + 1

    @T.prim_func
    def expected(a: T.Buffer((extent, 19), "int32"), c: T.Buffer((extent,), "int32")):
        for i in range(extent):
            c[i] = a[i, 3] + 1

    becomes(SplitVectorLoop(), before, expected)


def test_many_vectors_are_a_loop_of_long_ones(becomes):
    @T.prim_func
    def before(a: T.Buffer((615,), "int32"), c: T.Buffer((615,), "int16")):
        for i in T.vectorized(615):
            c[i] = T.Cast("int16", a[i])

    @T.prim_func
    def expected(a: T.Buffer((615,), "int32"), c: T.Buffer((615,), "int16")):
        for i in range(9):
            for i_1 in T.vectorized(64):
                c[i * 64 + i_1] = T.Cast("int16", a[i * 64 + i_1])
        for i in T.vectorized(32):
            c[i + 576] = T.Cast("int16", a[i + 576])
        for i in T.vectorized(4):
            c[i + 608] = T.Cast("int16", a[i + 608])
        for i in range(3):
            c[i + 612] = T.Cast("int16", a[i + 612])

    becomes(SplitVectorLoop(), before, expected)


def test_float16_that_is_converted_has_vectors_of_eight(becomes):
    @T.prim_func
    def before(a: T.Buffer((44,), "float16"), c: T.Buffer((44,), "float16")):
        for i in T.vectorized(44):
            c[i] = a[i] + T.float16(1)
        for i in T.vectorized(32):
            c[i] = T.max(a[i], T.float16(1))

    @T.prim_func
    def expected(a: T.Buffer((44,), "float16"), c: T.Buffer((44,), "float16")):
        for i in range(5):
            for i_1 in T.vectorized(8):
                c[i * 8 + i_1] = a[i * 8 + i_1] + T.float16(1)
        for i in T.vectorized(4):
            c[i + 40] = a[i + 40] + T.float16(1)
        for i in T.vectorized(32):
            c[i] = T.max(a[i], T.float16(1))

    becomes(SplitVectorLoop(), before, expected)


@pytest.mark.parametrize("extent", [17, 58, 128, 17 * 16, 1000])
def test_every_element_is_computed_once(extent):
    @T.prim_func
    def before(a: T.Buffer((extent,), "int32"), c: T.Buffer((extent,), "int32")):
        for i in T.vectorized(extent):
            c[i] = c[i] + a[i]

    made = SplitVectorLoop()(weft.IRModule({"main": before}))["main"]
    vectors = [loop for loop in collect(made.body, For) if loop.kind is ForKind.VECTORIZED]
    assert all(int(loop.extent) <= 64 for loop in vectors)
    data, out = np.arange(extent, dtype="int32"), np.ones(extent, "int32")
    run(made, data, out)
    np.testing.assert_array_equal(out, data + 1)


def test_lengths_that_an_unrolled_loop_decides(becomes):
    @T.prim_func
    def before(a: T.Buffer((40,), "int32"), c: T.Buffer((2, 40), "int32")):
        for p in T.unroll(2):
            for i in T.vectorized(20 + p * 4):
                c[p, i] = a[i]

    @T.prim_func
    def expected(a: T.Buffer((40,), "int32"), c: T.Buffer((2, 40), "int32")):
        for i in T.vectorized(16):
            c[0, i] = a[i]
        for i in T.vectorized(4):
            c[0, i + 16] = a[i + 16]
        for i in T.vectorized(16):
            c[1, i] = a[i]
        for i in T.vectorized(8):
            c[1, i + 16] = a[i + 16]

    becomes(SplitVectorLoop(), before, expected)


def test_a_loop_of_unknown_length_has_long_and_short_vectors_and_scalars():
    @T.prim_func
    def before(a: T.handle, c: T.handle, k: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        C = T.match_buffer(c, (n,), "int32")
        for i in T.vectorized(n):
            C[i] = T.if_then_else(k > T.int64(0), A[i] + 1, -1)

    after = SplitVectorLoop()(weft.IRModule({"main": before}))["main"]
    loops = collect(after.body, For)
    assert sorted([int(loop.extent) for loop in loops if loop.kind is ForKind.VECTORIZED]) == [
        4,
        16,
    ]
    assert len([loop for loop in loops if loop.kind is ForKind.SERIAL]) == 3
    for n in (0, 1, 3, 4, 15, 16, 17, 31, 39):
        x, out = np.arange(n, dtype="int32"), np.zeros(n, "int32")
        for k, wanted in ((1, x + 1), (0, np.full(n, -1, "int32"))):
            run(after, x, out, k)
            np.testing.assert_array_equal(out, wanted)


def test_a_loop_of_unknown_length_without_a_vector_form_stays(becomes):
    @T.prim_func
    def before(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int32")
        for i in T.vectorized(n):
            A[0] = A[0] + A[i]

    becomes(SplitVectorLoop(), before, before)
