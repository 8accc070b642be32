"""RemoveNoOp: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import RemoveAssume, RemoveNoOp


def test_what_does_nothing_goes(becomes):
    @T.prim_func
    def before(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        for _ in range(4):
            T.evaluate(0)
        for i in range(0):
            c[i] = 5
        if a[0] < 3:
            T.evaluate(1)
        T.evaluate(T.assume(a[1] < 100))
        for i in range(4):
            c[i] = a[i]

    @T.prim_func
    def expected(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        T.evaluate(a[0] < 3)
        T.assume(a[1] < 100)
        for i in range(4):
            c[i] = a[i]

    becomes(RemoveNoOp(), before, expected)


def test_remove_assume(becomes):
    @T.prim_func
    def before(a: T.Buffer((4,), "int32")):
        T.evaluate(T.assume(a[1] < 100))
        a[0] = 1

    @T.prim_func
    def expected(a: T.Buffer((4,), "int32")):
        a[0] = 1

    becomes(RemoveAssume(), before, expected)
