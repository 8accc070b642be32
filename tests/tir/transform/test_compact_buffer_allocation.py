"""CompactBufferAllocation: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import CompactBufferAllocation


def test_a_buffer_shrinks_to_what_is_used(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        for i in range(4):
            with T.block("row"):
                T.reads()
                T.writes()
                t = T.alloc_buffer((4, 16), "int32")
                for j in range(8):
                    t[i, j + 2] = a[i, j] + 1
                for j in range(8):
                    c[i, j] = t[i, j + 2] * 2

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        # with T.block("root"):
        for i in range(4):
            with T.block("row"):
                T.reads()
                T.writes()
                t = T.alloc_buffer((1, 8), "int32")
                for j in range(8):
                    t[i - i, j + 2 - 2] = a[i, j] + 1
                for j in range(8):
                    c[i, j] = t[i - i, j + 2 - 2] * 2

    becomes(CompactBufferAllocation(), before, expected)


def test_a_gathered_or_symbolic_dimension_stays(becomes):
    @T.prim_func
    def before(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("row"):
                T.reads()
                T.writes()
                t = T.alloc_buffer((8,), "int32")
                t[a[i]] = 1
                c[i] = t[a[i]]

    becomes(CompactBufferAllocation(), before, before)
