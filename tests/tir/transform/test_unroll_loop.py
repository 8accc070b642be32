"""UnrollLoop: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import UnrollLoop


def test_an_unrolled_loop_is_its_bodies(becomes):
    @T.prim_func
    def before(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        for i in T.unroll(3):
            c[i] = a[i + 1]

    @T.prim_func
    def expected(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        c[0] = a[T.Add(0, 1)]
        c[1] = a[T.Add(1, 1)]
        c[2] = a[T.Add(2, 1)]

    becomes(UnrollLoop(), before, expected)


def test_copies_define_variables_of_their_own(becomes):
    @T.prim_func
    def before(a: T.Buffer((2,), "int32"), c: T.Buffer((2,), "int32")):
        for i in T.unroll(2):
            v: T.int32 = a[i] + 1
            c[i] = v * v

    @T.prim_func
    def expected(a: T.Buffer((2,), "int32"), c: T.Buffer((2,), "int32")):
        with T.LetStmt(a[0] + 1) as v:
            c[0] = v * v
        with T.LetStmt(a[1] + 1) as w:
            c[1] = w * w

    becomes(UnrollLoop(), before, expected)
