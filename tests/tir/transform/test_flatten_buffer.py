"""FlattenBuffer: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import FlattenBuffer


def test_indices_become_one_offset(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((2, 2, 8), "int32")):
        for i, j in T.grid(4, 8):
            c[i // 2, i % 2, j] = a[i, j]

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((2, 2, 8), "int32")):
        a_1 = T.decl_buffer((T.int64(32),), "int32", data=a.data)
        c_1 = T.decl_buffer((T.int64(32),), "int32", data=c.data)
        for i, j in T.grid(4, 8):
            c_1[
                (T.Cast("int64", i // 2) * T.int64(2) + T.Cast("int64", i % 2)) * T.int64(8)
                + T.Cast("int64", j)
            ] = a_1[T.Cast("int64", i) * T.int64(8) + T.Cast("int64", j)]

    becomes(FlattenBuffer(), before, expected)
