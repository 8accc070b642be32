"""SerializeThreads: kernels as loops; native code of GPU schedules against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.script import tir as T
from weft.support.errors import UnsupportedError
from weft.tir.interp import run
from weft.tir.stmt import Allocate
from weft.tir.transform import SerializeThreads


def test_a_stretch_between_barriers_is_a_loop_over_threads(becomes):
    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for tx in T.thread_binding(8, "threadIdx.x"):
            S = T.decl_buffer((8,), "int32", scope="shared")
            S[tx] = A[tx]
            T.tvm_storage_sync("shared")
            B[tx] = S[7 - tx]

    @T.prim_func
    def expected(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        S = T.decl_buffer((8,), "int32", scope="shared")
        for tx in range(8):
            S[tx] = A[tx]
        for ty in range(8):
            B[ty] = S[7 - ty]

    becomes(SerializeThreads(), before, expected)


def test_local_memory_across_a_barrier_has_a_place_for_each_thread():
    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for tx in T.thread_binding(8, "threadIdx.x"):
            S = T.decl_buffer((8,), "int32", scope="shared")
            R = T.decl_buffer((1,), "int32", scope="local")
            R[0] = A[tx] * 3
            S[tx] = A[tx]
            T.tvm_storage_sync("shared")
            B[tx] = S[7 - tx] + R[0]

    after = SerializeThreads()(weft.IRModule({"main": before}))["main"]
    extents = [[e.value for e in item.extents] for item in collect(after.body, Allocate)]
    assert sorted(extents) == [[8], [8, 1]]
    given, results = np.arange(8, dtype="int32"), []
    for func in (before, after):
        results.append(np.zeros(8, "int32"))
        run(func, given, results[-1])
    np.testing.assert_array_equal(*results)


def test_a_barrier_under_a_branch_on_the_thread_is_refused():
    @T.prim_func
    def before(B: T.Buffer((8,), "int32")):
        for tx in T.thread_binding(8, "threadIdx.x"):
            if tx < 4:
                T.tvm_storage_sync("shared")
                B[tx] = 1

    with pytest.raises(UnsupportedError, match="inside a branch on .* < 4, which differs between"):
        SerializeThreads()(weft.IRModule({"main": before}))


@T.prim_func
def matmul(
    A: T.Buffer((32, 32), "float32"),
    B: T.Buffer((32, 32), "float32"),
    C: T.Buffer((32, 32), "float32"),
):
    T.func_attr({"global_symbol": "main"})
    with T.block("root"):
        As = T.alloc_buffer((32, 32), "float32", scope="shared")
        Bs = T.alloc_buffer((32, 32), "float32", scope="shared")
        Cl = T.alloc_buffer((32, 32), "float32", scope="local")
        for by in T.thread_binding(2, "blockIdx.y"):
            for bx in T.thread_binding(2, "blockIdx.x"):
                for ty in T.thread_binding(8, "threadIdx.y"):
                    for tx in T.thread_binding(8, "threadIdx.x"):
                        for i, j in T.grid(2, 2):
                            with T.block("init"):
                                vi = T.axis.spatial(32, by * 16 + ty * 2 + i)
                                vj = T.axis.spatial(32, bx * 16 + tx * 2 + j)
                                Cl[vi, vj] = T.float32(0)
                        for k0 in range(4):
                            for a in T.thread_binding(8, "threadIdx.y"):
                                for b in T.thread_binding(8, "threadIdx.x"):
                                    for c in range(2):
                                        with T.block("As"):
                                            vi = T.axis.spatial(32, by * 16 + a * 2 + c)
                                            vk = T.axis.spatial(32, k0 * 8 + b)
                                            As[vi, vk] = A[vi, vk]
                            for a in T.thread_binding(8, "threadIdx.y"):
                                for b in T.thread_binding(8, "threadIdx.x"):
                                    for c in range(2):
                                        with T.block("Bs"):
                                            vk = T.axis.spatial(32, k0 * 8 + a)
                                            vj = T.axis.spatial(32, bx * 16 + b * 2 + c)
                                            Bs[vk, vj] = B[vk, vj]
                            for k1, i, j in T.grid(8, 2, 2):
                                with T.block("update"):
                                    vi = T.axis.spatial(32, by * 16 + ty * 2 + i)
                                    vj = T.axis.spatial(32, bx * 16 + tx * 2 + j)
                                    vk = T.axis.reduce(32, k0 * 8 + k1)
                                    Cl[vi, vj] = Cl[vi, vj] + As[vi, vk] * Bs[vk, vj]
                        for i, j in T.grid(2, 2):
                            with T.block("C"):
                                vi = T.axis.spatial(32, by * 16 + ty * 2 + i)
                                vj = T.axis.spatial(32, bx * 16 + tx * 2 + j)
                                C[vi, vj] = Cl[vi, vj]


@T.prim_func
def softmax(A: T.Buffer((4, 60), "float32"), B: T.Buffer((4, 60), "float32")):
    T.func_attr({"global_symbol": "main"})
    with T.block("root"):
        M = T.alloc_buffer((4,), "float32", scope="shared")
        S = T.alloc_buffer((4,), "float32", scope="shared")
        for i in T.thread_binding(4, "blockIdx.x"):
            for k0 in range(2):
                for k1 in T.thread_binding(32, "threadIdx.x"):
                    with T.block("max"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(60, k0 * 32 + k1)
                        T.where(k0 * 32 + k1 < 60)
                        with T.init():
                            M[vi] = T.float32(-1e30)
                        M[vi] = T.max(M[vi], A[vi, vk])
            for k0 in range(2):
                for k1 in T.thread_binding(32, "threadIdx.x"):
                    with T.block("sum"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(60, k0 * 32 + k1)
                        T.where(k0 * 32 + k1 < 60)
                        with T.init():
                            S[vi] = T.float32(0)
                        S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi])
            for k0 in range(2):
                for k1 in T.thread_binding(32, "threadIdx.x"):
                    with T.block("divide"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.spatial(60, k0 * 32 + k1)
                        T.where(k0 * 32 + k1 < 60)
                        B[vi, vk] = T.exp(A[vi, vk] - M[vi]) / S[vi]


def outcomes(func, *shapes):
    """The results of the interpreter before and after lowering, without threads, and natively."""
    random = np.random.default_rng(0)
    given = [random.integers(0, 5, shape).astype("float32") for shape in shapes]
    lowered = weft.lower(func)["main"]
    ways = [
        lambda *args: run(func, *args),
        lambda *args: run(func, *args, threads=False),
        lambda *args: run(lowered, *args),
    ]
    results = []
    for way in ways:
        arguments = [array.copy() for array in given]
        way(*arguments)
        results.append(arguments[-1])
    arguments = [weft.nd.array(array) for array in given]
    weft.build(func)["main"](*arguments)
    return [*results, arguments[-1].numpy()], given


def test_a_tiled_product():
    results, given = outcomes(matmul, (32, 32), (32, 32), (32, 32))
    for result in results:
        np.testing.assert_array_equal(result, given[0] @ given[1])


def test_a_softmax_that_reduces_over_threads():
    results, given = outcomes(softmax, (4, 60), (4, 60))
    powers = np.exp(given[0] - given[0].max(1, keepdims=True))
    for result in results:
        np.testing.assert_allclose(result, powers / powers.sum(1, keepdims=True), rtol=1e-5)
