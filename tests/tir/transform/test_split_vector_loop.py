"""SplitVectorLoop: before and after, and the same results."""

from __future__ import annotations

import pytest

from weft.script import tir as T
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


@pytest.mark.parametrize("extent", [1, 7, 12, 16, 32, 58, 17 * 16])
def test_what_has_one_vector_or_no_good_ones_stays(becomes, extent):
    @T.prim_func
    def before(a: T.Buffer((extent,), "int32"), c: T.Buffer((extent,), "int32")):
        for i in T.vectorized(extent):
            c[i] = a[i] + 1

    becomes(SplitVectorLoop(), before, before)
