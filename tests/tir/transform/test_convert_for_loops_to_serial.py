"""ConvertForLoopsToSerial: before and after."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import ConvertForLoopsToSerial


def test_parallel_loops_become_serial(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 4), "int32")):
        for i in T.parallel(4):
            for j in T.vectorized(4):
                a[i, j] = i + j

    @T.prim_func
    def expected(a: T.Buffer((4, 4), "int32")):
        for i in range(4):
            for j in T.vectorized(4):
                a[i, j] = i + j

    becomes(ConvertForLoopsToSerial(), before, expected)
