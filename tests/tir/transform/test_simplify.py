"""Simplify: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import Simplify


def test_what_loops_and_branches_say_is_used(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        for i, j in T.grid(2, 4):
            if i * 4 + j < 8:
                c[i * 4 + j] = a[(i * 4 + j) // 4 * 4 + (i * 4 + j) % 4]
            else:
                c[0] = 1

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        for i, j in T.grid(2, 4):
            c[i * 4 + j] = a[i * 4 + j]

    becomes(Simplify(), before, expected)


def test_data_wraps(becomes):
    @T.prim_func
    def before(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        for i in range(4):
            c[i] = T.Select(a[i] < a[i] + 2147483647, 1, 0)

    becomes(Simplify(), before, before)
