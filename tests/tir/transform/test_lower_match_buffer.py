"""LowerMatchBuffer: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import LowerMatchBuffer


def test_accesses_of_a_view_are_of_its_source(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        for i, j in T.grid(4, 2):
            with T.block("tile"):
                T.reads(a[i, j * 4:j * 4 + 4])
                T.writes(c[i, j * 4:j * 4 + 4])
                x = T.match_buffer(a[i, j * 4:j * 4 + 4], (4,), "int32", strides=("s",))
                y = T.match_buffer(c[i, j * 4:j * 4 + 4], (4,), "int32")
                for k in range(4):
                    y[k] = x[k] + x.strides[0]

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        # with T.block("root"):
        for i, j in T.grid(4, 2):
            with T.block("tile"):
                T.reads(a[i, j * 4:j * 4 + 4])
                T.writes(c[i, j * 4:j * 4 + 4])
                for k in range(4):
                    c[i, j * 4 + k] = a[i, j * 4 + k] + 1

    becomes(LowerMatchBuffer(), before, expected)
