"""Buffers in loops that run no iteration are kept as they are."""

from __future__ import annotations

import pytest

from weft.ir.module import IRModule
from weft.script import tir as T
from weft.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from weft.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque


@pytest.mark.parametrize("extent", [0, 3])
def test_an_access_in_a_loop_without_iterations(extent):
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("outer"):
                T.reads()
                T.writes(A[i])
                B = T.alloc_buffer((64,), "float32")
                B[i] = T.float32(0)
                for k in range(extent):
                    B[i] = B[i + k * 2] + T.float32(1)
                A[i] = B[i]

    module = ConvertBlocksToOpaque()(IRModule({"main": main}))
    text = CompactBufferAllocation(is_strict=False)(module)["main"].script()
    assert f"T.alloc_buffer(({1 if extent == 0 else 5},))" in text
