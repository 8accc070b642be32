"""UnifyThreadBinding, ThreadSync, LowerCrossThreadReduction: before and after."""

from __future__ import annotations

import pytest

import weft
from weft.ir.functor import collect
from weft.script import tir as T
from weft.support.errors import IRValueError, ScheduleError
from weft.tir.expr import Call
from weft.tir.stmt import BlockRealize
from weft.tir.transform import LowerCrossThreadReduction, ThreadSync, UnifyThreadBinding


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
    [("B[vi] - A[vi, vk]", "op one of"), ("A[vi, vk]", "op one of")],
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
