"""ConvertBlocksToOpaque: before and after, and the same results."""

from __future__ import annotations

import pytest

from weft.ir.module import IRModule
from weft.script import tir as T
from weft.support.errors import TVMError
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


def test_a_predicate_over_the_axes_of_its_own_block_is_an_error():
    @T.prim_func(check_well_formed=False)
    def func(a: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("copy"):
                v = T.axis.spatial(8, i)
                T.where(v < 3)
                a[v] = 0

    with pytest.raises(TVMError, match="block copy uses the block's own axis v"):
        ConvertBlocksToOpaque()(IRModule({"main": func}))
