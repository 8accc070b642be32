"""The reference interpreter on GPU threads: barriers, scopes, reductions over threads, races."""

from __future__ import annotations

import numpy as np
import pytest

from weft.script import tir as T
from weft.support.errors import IRValueError, RuntimeFault
from weft.tir.interp import run


def reversed_blocks(size, block):
    values = np.arange(size, dtype="float32")
    return values, values.reshape(-1, block)[:, ::-1].ravel()


@T.prim_func
def reversing(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for bx in T.thread_binding(2, "blockIdx.x"):
        with T.block("tile"):
            S = T.alloc_buffer((32,), "float32", scope="shared")
            for tx in T.thread_binding(32, "threadIdx.x"):
                S[tx] = A[bx * 32 + tx]
            for tx in T.thread_binding(32, "threadIdx.x"):
                B[bx * 32 + tx] = S[31 - tx]


def test_barriers_are_found_where_a_function_has_none():
    given, expected = reversed_blocks(64, 32)
    result = np.zeros(64, "float32")
    run(reversing, given, result)
    np.testing.assert_array_equal(result, expected)


def test_without_threads_bound_loops_are_loops():
    given, expected = reversed_blocks(64, 32)
    result = np.zeros(64, "float32")
    run(reversing, given, result, threads=False)
    np.testing.assert_array_equal(result, expected)


def test_explicit_barriers_in_a_loop_and_double_use_of_memory():
    @T.prim_func
    def main(A: T.Buffer((3, 8), "float32"), B: T.Buffer((3, 8), "float32")):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.allocate([8], "float32", "shared")
        s = T.Buffer((8,), "float32", data=S, scope="shared")
        for k in range(3):
            s[tx] = A[k, tx]
            T.tvm_storage_sync("shared")
            B[k, tx] = s[7 - tx]
            T.tvm_storage_sync("shared")

    given = np.arange(24, dtype="float32").reshape(3, 8)
    result = np.zeros_like(given)
    run(main, given, result)
    np.testing.assert_array_equal(result, given[:, ::-1])


def test_a_missing_barrier_is_a_race():
    @T.prim_func
    def main(A: T.Buffer((3, 8), "float32"), B: T.Buffer((3, 8), "float32")):
        tx = T.launch_thread("threadIdx.x", 8)
        S = T.allocate([8], "float32", "shared")
        s = T.Buffer((8,), "float32", data=S, scope="shared")
        for k in range(3):
            s[tx] = A[k, tx]
            T.tvm_storage_sync("shared")
            B[k, tx] = s[7 - tx]

    given = np.arange(24, dtype="float32").reshape(3, 8)
    with pytest.raises(RuntimeFault, match=r"a race: thread .* s\[\d\], with no barrier"):
        run(main, given, np.zeros_like(given))


def test_blocks_must_not_write_the_same_element():
    @T.prim_func
    def main(B: T.Buffer((4,), "int32")):
        for bx in T.thread_binding(8, "blockIdx.x"):
            B[bx // 2] = bx

    message = r"block \(blockIdx.x=1\) and block \(blockIdx.x=0\) write B\[0\]"
    with pytest.raises(RuntimeFault, match=message):
        run(main, np.zeros(4, "int32"))


def test_what_all_threads_write_alike_is_no_race():
    @T.prim_func
    def main(B: T.Buffer((4,), "int32")):
        for tx in T.thread_binding(4, "threadIdx.x"):
            B[0] = 7
            if tx > 0:
                B[tx] = B[0] + tx

    result = np.zeros(4, "int32")
    run(main, result)
    assert result.tolist() == [7, 8, 9, 10]


def test_a_barrier_that_not_all_threads_reach():
    @T.prim_func
    def main(B: T.Buffer((4,), "int32")):
        for tx in T.thread_binding(4, "threadIdx.x"):
            if tx < 2:
                T.tvm_storage_sync("shared")
                B[tx] = 1

    with pytest.raises(RuntimeFault, match=r"\(threadIdx.x=0\) waits at a shared barrier"):
        run(main, np.zeros(4, "int32"))


@pytest.mark.parametrize("threads", [True, False])
def test_a_reduction_over_threads(threads):
    @T.prim_func
    def main(A: T.Buffer((4, 64), "int32"), B: T.Buffer((4,), "int32")):
        for i in T.thread_binding(4, "blockIdx.x"):
            for k0 in range(4):
                for k1 in T.thread_binding(16, "threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(60, k0 * 16 + k1)
                        T.where(k0 * 16 + k1 < 60)
                        with T.init():
                            B[vi] = 0
                        B[vi] = B[vi] + A[vi, vk]

    given = np.random.default_rng(0).integers(0, 9, (4, 64), "int32")
    result = np.zeros(4, "int32")
    run(main, given, result, threads=threads)
    np.testing.assert_array_equal(result, given[:, :60].sum(1))


def test_local_memory_is_each_threads_own():
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        with T.block("root"):
            R = T.alloc_buffer((1,), "int32", scope="local")
            for tx in T.thread_binding(8, "threadIdx.x"):
                with T.block("load"):
                    R[0] = A[tx]
                with T.block("use"):
                    B[tx] = R[0] * 2

    result = np.zeros(8, "int32")
    run(main, np.arange(8, dtype="int32"), result)
    assert result.tolist() == list(range(0, 16, 2))


def test_virtual_threads_meet_at_barriers():
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        with T.block("root"):
            S = T.alloc_buffer((8,), "int32", scope="shared")
            for vx in T.thread_binding(2, "vthread.x"):
                for tx in T.thread_binding(4, "threadIdx.x"):
                    S[vx * 4 + tx] = A[vx * 4 + tx]
                    B[vx * 4 + tx] = S[7 - vx * 4 - tx]

    result = np.zeros(8, "int32")
    run(main, np.arange(8, dtype="int32"), result)
    assert result.tolist() == list(range(8))[::-1]


def test_loops_of_one_tag_have_one_extent():
    @T.prim_func
    def main(A: T.Buffer((8,), "int32")):
        for _bx in T.thread_binding(1, "blockIdx.x"):
            for tx in T.thread_binding(4, "threadIdx.x"):
                A[tx] = 1
            for tx in T.thread_binding(2, "threadIdx.x"):
                A[tx + 4] = 1

    with pytest.raises(IRValueError, match="there are two, with extent 4 and 2"):
        run(main, np.zeros(8, "int32"))
