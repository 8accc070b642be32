"""ConvertBlocksToOpaque: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import ConvertBlocksToOpaque


def test_axes_are_replaced_by_their_values(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        for i, j in T.grid(4, 2):
            with T.block("copy"):
                v = T.axis.spatial(8, i * 2 + j)
                T.where(i < 3)
                c[v] = a[v] + v

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        # with T.block("root"):
        for i, j in T.grid(4, 2):
            with T.block("copy"):
                T.where(i < 3)
                T.reads(a[i * 2 + j])
                T.writes(c[i * 2 + j])
                c[i * 2 + j] = a[i * 2 + j] + (i * 2 + j)

    becomes(ConvertBlocksToOpaque(), before, expected)
