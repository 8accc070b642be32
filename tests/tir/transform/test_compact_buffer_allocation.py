"""CompactBufferAllocation: before and after, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.script import tir as T
from weft.support.errors import IRValueError
from weft.tir.interp import run
from weft.tir.stmt import Block
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


def test_a_loop_of_one_iteration_around_a_buffer_adds_nothing_to_what_is_used():
    @T.prim_func
    def func(a: T.handle, c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 16))
        C = T.match_buffer(c, (n, 16))
        for i in range(n):
            for one in range(T.int64(1)):
                with T.block("row"):
                    T.reads()
                    T.writes()
                    t = T.alloc_buffer((n, 16))
                    for j in range(16):
                        t[i, j] = A[i, j] + T.float32(1)
                    for j in range(16):
                        C[i, j] = t[i + one, j]

    after = CompactBufferAllocation(is_strict=False)(weft.IRModule({"main": func}))["main"]
    [buffer] = [item for block in collect(after.body, Block) for item in block.alloc_buffers]
    assert [int(extent) for extent in buffer.shape] == [1, 16]
    x, out = np.ones((3, 16), "float32"), np.zeros((3, 16), "float32")
    run(after, x, out)
    assert (out == 2).all()


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


def test_storage_align_becomes_strides(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((8, 4), "int32")):
        t = T.alloc_buffer((4, 8), "int32", scope="shared")
        with T.block("fill"):
            T.reads(a[0:4, 0:8])
            T.writes(t[0:4, 0:8])
            T.block_attr({"buffer_dim_align": [[0, 0, 16, 1]]})
            for i, j in T.grid(4, 8):
                t[i, j] = a[i, j]
        with T.block("use"):
            T.reads(t[0:4, 0:8])
            T.writes(c[0:8, 0:4])
            for i, j in T.grid(8, 4):
                c[i, j] = t[j, i]

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((8, 4), "int32")):
        t = T.alloc_buffer((4, 8), "int32", strides=(17, 1), scope="shared")
        with T.block("fill"):
            T.reads(a[0:4, 0:8])
            T.writes(t[0:4, 0:8])
            T.block_attr({"buffer_dim_align": [[0, 0, 16, 1]]})
            for i, j in T.grid(4, 8):
                t[i, j] = a[i, j]
        with T.block("use"):
            T.reads(t[0:4, 0:8])
            T.writes(c[0:8, 0:4])
            for i, j in T.grid(8, 4):
                c[i, j] = t[j, i]

    becomes(CompactBufferAllocation(), before, expected)
    given, result = np.arange(32, dtype="int32").reshape(4, 8), np.zeros((8, 4), "int32")
    built, output = weft.build(before, name="main"), weft.nd.array(result)
    built["main"](weft.nd.array(given), output)
    np.testing.assert_array_equal(output.numpy(), given.T)


def test_an_alignment_names_a_buffer_that_the_block_writes():
    @T.prim_func
    def before(c: T.Buffer((4, 8), "int32")):
        with T.block("fill"):
            T.reads()
            T.writes(c[0:4, 0:8])
            T.block_attr({"buffer_dim_align": [[1, 0, 16, 1]]})
            for i, j in T.grid(4, 8):
                c[i, j] = 1

    with pytest.raises(IRValueError, match="the number of a buffer it writes, below 1, got 1"):
        CompactBufferAllocation()(weft.IRModule({"main": before}))


def test_a_matched_region_counts_as_accessed(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        for i in range(4):
            with T.block("row"):
                T.reads()
                T.writes()
                t = T.alloc_buffer((4, 8), "int32")
                t[i, 0] = 1
                with T.block("part"):
                    T.reads()
                    T.writes()
                    m = T.match_buffer(t[i, 1:6], (5,), "int32", offset_factor=1)
                    for j in range(5):
                        m[j] = a[i, j]
                c[i, 0] = t[i, 0]

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        # with T.block("root"):
        for i in range(4):
            with T.block("row"):
                T.reads()
                T.writes()
                t = T.alloc_buffer((1, 6), "int32")
                t[i - i, 0] = 1
                with T.block("part"):
                    T.reads()
                    T.writes()
                    m = T.match_buffer(t[0, 1:6], (5,), "int32", offset_factor=1)
                    for j in range(5):
                        m[j] = a[i, j]
                c[i, 0] = t[i - i, 0]

    becomes(CompactBufferAllocation(), before, expected)


def test_lowered_allocations_shrink_too(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        for i in range(4):
            t = T.decl_buffer((4, 16), "int32")
            for j in range(8):
                t[i, j + 2] = a[i, j] + 1
            for j in range(8):
                c[i, j] = t[i, j + 2] * 2

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        for i in range(4):
            t = T.decl_buffer((1, 8), "int32")
            for j in range(8):
                t[i - i, j + 2 - 2] = a[i, j] + 1
            for j in range(8):
                c[i, j] = t[i - i, j + 2 - 2] * 2

    becomes(CompactBufferAllocation(), before, expected)


def test_shared_memory_covers_what_all_threads_use(becomes):
    @T.prim_func
    def before(a: T.Buffer((16,), "int32"), c: T.Buffer((16,), "int32")):
        for bx in T.thread_binding(2, "blockIdx.x"):
            for tx in T.thread_binding(8, "threadIdx.x"):
                with T.block("tile"):
                    T.reads()
                    T.writes()
                    t = T.alloc_buffer((16,), "int32", scope="shared")
                    t[bx * 8 + tx] = a[bx * 8 + tx]
                    c[bx * 8 + tx] = t[bx * 8 + 7 - tx]

    @T.prim_func
    def expected(a: T.Buffer((16,), "int32"), c: T.Buffer((16,), "int32")):
        # with T.block("root"):
        for bx in T.thread_binding(2, "blockIdx.x"):
            for tx in T.thread_binding(8, "threadIdx.x"):
                with T.block("tile"):
                    T.reads()
                    T.writes()
                    t = T.alloc_buffer((8,), "int32", scope="shared")
                    t[bx * 8 + tx - bx * 8] = a[bx * 8 + tx]
                    c[bx * 8 + tx] = t[bx * 8 + 7 - tx - bx * 8]

    becomes(CompactBufferAllocation(), before, expected)


def test_the_parts_of_a_fused_loop_are_put_together():
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        for i_j in range(32):
            with T.block("tile"):
                T.reads()
                T.writes()
                t = T.alloc_buffer((4, 8), "int32")
                t[i_j // 8, i_j % 8] = a[i_j // 8, i_j % 8] + 1
                c[i_j // 8, i_j % 8] = t[(i_j // 8 * 8 + i_j % 8) // 8, i_j % 8] * 2

    after = CompactBufferAllocation()(weft.IRModule({"main": before}))["main"]
    [owner] = [block for block in collect(after.body, Block) if block.alloc_buffers]
    assert [int(extent) for extent in owner.alloc_buffers[0].shape] == [1, 1]
    a = np.arange(32, dtype="int32").reshape(4, 8)
    found = np.zeros((4, 8), "int32")
    run(after, a, found)
    np.testing.assert_array_equal(found, (a + 1) * 2)


def test_vectors_count_from_their_first_lane_to_the_last(becomes):
    @T.prim_func
    def before(c: T.Buffer((4, 8), "int32")):
        for i in range(4):
            with T.block("row"):
                T.reads()
                T.writes()
                t = T.alloc_buffer((4, 32), "int32")
                t[i, T.ramp(i * 8, 1, 8)] = T.broadcast(i, 8)
                c[i, T.ramp(0, 1, 8)] = t[i, T.ramp(i * 8, 1, 8)]

    made = CompactBufferAllocation()(weft.IRModule({"main": before}))["main"]
    [block] = [block for block in collect(made.body, Block) if block.name_hint == "row"]
    assert [int(extent) for extent in block.alloc_buffers[0].shape] == [1, 8]
    out = np.zeros((4, 8), "int32")
    run(made, out)
    np.testing.assert_array_equal(out, np.repeat(np.arange(4), 8).reshape(4, 8))


def _tiles_of_unknown_extent(first):
    """``t`` has n elements, of which each tile uses four from ``first`` on."""

    @T.prim_func
    def main(x: T.handle, c: T.handle):
        n = T.int32()
        source = T.match_buffer(x, (n,), "int32")
        result = T.match_buffer(c, (n,), "int32")
        for tile in range((n + 3) // 4):
            with T.block("tile"):
                T.reads()
                T.writes()
                t = T.alloc_buffer((n,), "int32")
                for j in range(4):
                    if tile * 4 + j < n:
                        t[first * tile + j] = source[tile * 4 + j] + 1
                for j in range(4):
                    if tile * 4 + j < n:
                        result[tile * 4 + j] = t[first * tile + j]

    return main


@pytest.mark.parametrize(
    ("is_strict", "first", "kept"), [(False, 4, True), (True, 4, False), (False, 0, False)]
)
def test_of_an_unknown_extent_the_part_of_an_iteration_is_kept(is_strict, first, kept):
    before = weft.IRModule({"main": _tiles_of_unknown_extent(first)})
    after = CompactBufferAllocation(is_strict)(before)["main"]
    [buffer] = [b for block in collect(after.body, Block) for b in block.alloc_buffers]
    assert [getattr(extent, "value", "n") for extent in buffer.shape] == [4 if kept else "n"]
    for size in (4, 7, 0):
        x, c = np.arange(size, dtype="int32"), np.zeros(size, "int32")
        run(after, x, c)
        np.testing.assert_array_equal(c, x + 1)
