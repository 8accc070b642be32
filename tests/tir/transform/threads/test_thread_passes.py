"""UnifyThreadBinding, ThreadSync, LowerCrossThreadReduction: before and after."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.ir.transform import Sequential
from weft.script import tir as T
from weft.support.errors import IRValueError, ScheduleError
from weft.tir.expr import Call
from weft.tir.interp import run
from weft.tir.stmt import BlockRealize, For
from weft.tir.transform import (
    ConvertBlocksToOpaque,
    InjectVirtualThread,
    LowerCrossThreadReduction,
    LowerOpaqueBlock,
    LowerThreadAllreduce,
    Simplify,
    ThreadSync,
    UnifyThreadBinding,
)


def barriers(func):
    calls = collect(func.body, Call)
    return len([call for call in calls if call.op.name == "tir.tvm_storage_sync"])


def through(step, func):
    return step(weft.IRModule({"main": func}))["main"]


def test_one_variable_a_tag(becomes):
    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for bx in T.thread_binding(2, "blockIdx.x"):
            for tx in T.thread_binding(4, "threadIdx.x"):
                A[bx * 4 + tx] = 1
            for ty in T.thread_binding(4, "threadIdx.x"):
                B[bx * 4 + ty] = 2

    @T.prim_func
    def expected(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for bx in T.thread_binding(2, "blockIdx.x"):
            for tx in T.thread_binding(4, "threadIdx.x"):
                A[bx * 4 + tx] = 1
                B[bx * 4 + tx] = 2

    becomes(UnifyThreadBinding(), before, expected)


def test_a_barrier_between_a_write_and_a_read_of_others(becomes):
    @T.prim_func
    def before(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        for tx in T.thread_binding(32, "threadIdx.x"):
            with T.block("tile"):
                S = T.alloc_buffer((32,), "int32", scope="shared")
                S[tx] = A[tx]
                B[tx] = S[31 - tx]

    @T.prim_func
    def expected(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        for tx in T.thread_binding(32, "threadIdx.x"):
            with T.block("tile"):
                S = T.alloc_buffer((32,), "int32", scope="shared")
                S[tx] = A[tx]
                T.tvm_storage_sync("shared")
                B[tx] = S[31 - tx]

    becomes(ThreadSync("shared"), before, expected)


def test_no_barrier_for_what_is_a_threads_own():
    @T.prim_func
    def main(A: T.Buffer((64,), "int32"), B: T.Buffer((32,), "int32")):
        for tx in T.thread_binding(32, "threadIdx.x"):
            with T.block("tile"):
                S = T.alloc_buffer((64,), "int32", scope="shared")
                for j in range(2):
                    S[tx * 2 + j] = A[tx * 2 + j]
                for j in range(2):
                    B[tx] = B[tx] + S[tx * 2 + j]

    assert barriers(through(ThreadSync("shared"), main)) == 0


def test_a_loop_needs_a_barrier_for_its_next_iteration():
    @T.prim_func
    def main(A: T.Buffer((4, 32), "int32"), B: T.Buffer((4, 32), "int32")):
        for tx in T.thread_binding(32, "threadIdx.x"):
            with T.block("tile"):
                S = T.alloc_buffer((32,), "int32", scope="shared")
                for k in range(4):
                    S[tx] = A[k, tx]
                    B[k, tx] = S[31 - tx]

    assert barriers(through(ThreadSync("shared"), main)) == 2


def test_a_barrier_in_a_branch_on_the_thread_is_refused():
    @T.prim_func
    def main(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        for tx in T.thread_binding(32, "threadIdx.x"):
            with T.block("tile"):
                S = T.alloc_buffer((32,), "int32", scope="shared")
                if tx < 16:
                    S[tx] = A[tx]
                    B[tx] = S[15 - tx]

    with pytest.raises(IRValueError, match="where not all threads come by: under tx < 16"):
        through(ThreadSync("shared"), main)


def test_the_parts_of_a_reduction_over_threads():
    @T.prim_func
    def main(A: T.Buffer((4, 64), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            for k0 in range(4):
                for k1 in T.thread_binding(16, "threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(64, k0 * 16 + k1)
                        with T.init():
                            B[vi] = 0
                        B[vi] = B[vi] + A[vi, vk]

    after = through(LowerCrossThreadReduction(), main)
    names = [item.block.name_hint for item in collect(after.body, BlockRealize)]
    assert names[:4] == ["B_in_thread_init", "B_in_thread", "B_cross_thread", "B_write_back"]


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ("B[vi] - A[vi, vk]", "no known reducer: 0 and B.vi. - A.vi, vk."),
        ("A[vi, vk]", "no known reducer: 0 and A.vi, vk."),
    ],
)
def test_an_update_that_is_no_reduction(update, message):
    source = f"""
@T.prim_func
def main(A: T.Buffer((4, 64), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        for k in T.thread_binding(64, "threadIdx.x"):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = {update}
"""
    with pytest.raises(ScheduleError, match=message):
        through(LowerCrossThreadReduction(), weft.script.from_source(source))


def test_a_spatial_loop_inside_a_reduction_over_threads():
    @T.prim_func
    def main(A: T.Buffer((4, 64), "int32"), B: T.Buffer((4,), "int32")):
        for k in T.thread_binding(64, "threadIdx.x"):
            for i in range(4):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + A[vi, vk]

    with pytest.raises(ScheduleError, match="the spatial loop i is inside the reduction loop k"):
        through(LowerCrossThreadReduction(), main)


def test_virtual_threads_next_to_each_other(becomes):
    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        vx = T.launch_thread("vthread", 2)
        B = T.decl_buffer((4,), "int32", scope="local")
        for i in range(4):
            B[i] = A[i * 2 + vx]
        for i in range(4):
            C[i * 2 + vx] = B[i] + 1

    @T.prim_func
    def expected(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        B = T.decl_buffer((8,), "int32", scope="local")
        for i in range(4):
            B[i + T.Mul(0, 4)] = A[i * 2 + 0]
            B[i + T.Mul(1, 4)] = A[i * 2 + 1]
        for i in range(4):
            C[i * 2 + 0] = B[i + T.Mul(0, 4)] + 1
            C[i * 2 + 1] = B[i + T.Mul(1, 4)] + 1

    after = through(Sequential([InjectVirtualThread(), Simplify()]), before)
    wanted = through(Simplify(), expected)
    weft.ir.assert_structural_equal(after.body, wanted.body, map_free_vars=True)
    given = np.arange(8, dtype="int32")
    for func in (before, after):
        result = np.zeros(8, "int32")
        run(func, given, result)
        np.testing.assert_array_equal(result, given + 1)


def test_many_virtual_threads_are_a_loop():
    @T.prim_func
    def main(C: T.Buffer((32,), "int32")):
        vx = T.launch_thread("vthread", 32)
        C[vx] = vx

    after = through(InjectVirtualThread(), main)
    (loop,) = collect(after.body, For)
    assert loop.extent.value == 32


@pytest.mark.parametrize("threads", [5, 8, 13])
def test_a_reduction_over_threads_is_a_tree_in_shared_memory(threads):
    @T.prim_func
    def main(A: T.Buffer((3, threads), "int32"), B: T.Buffer((3,), "int32")):
        for i in T.thread_binding(3, "threadIdx.y"):
            for k in T.thread_binding(threads, "threadIdx.x"):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 1
                    B[vi] = B[vi] * A[vi, vk]

    steps = [LowerCrossThreadReduction(), ConvertBlocksToOpaque(), LowerOpaqueBlock()]
    lowered = through(Sequential([*steps, LowerThreadAllreduce()]), main)
    assert not [c for c in collect(lowered.body, Call) if "allreduce" in str(c.op)]
    given = np.random.default_rng(0).integers(1, 4, (3, threads), "int32")
    for func in (main, lowered):
        result = np.zeros(3, "int32")
        run(func, given, result)
        np.testing.assert_array_equal(result, given.prod(1))
    built, result = weft.build(lowered, name="main"), weft.nd.array(np.zeros(3, "int32"))
    built["main"](weft.nd.array(given), result)
    np.testing.assert_array_equal(result.numpy(), given.prod(1))
