"""LowerOpaqueBlock: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import LowerOpaqueBlock


def test_blocks_become_branches_and_allocations(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        for i, u in T.grid(8, 1):
            with T.block("row"):
                T.where(i < 6)
                T.reads()
                T.writes()
                t = T.alloc_buffer((1,), "int32")
                t[0] = a[i + u]
                c[i] = t[0]

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        for i in range(8):
            if i < 6:
                t = T.decl_buffer((1,), "int32")
                t[0] = a[T.Add(i, 0)]
                c[i] = t[0]

    becomes(LowerOpaqueBlock(), before, expected)
