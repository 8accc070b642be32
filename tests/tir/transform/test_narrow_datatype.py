"""NarrowDataType: before and after, what stays wide, random programs."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.random_workloads import random_workload
from weft import tir
from weft.ir.functor import collect
from weft.script import tir as T
from weft.support.dtype import DataType
from weft.support.errors import PassError
from weft.te.index_dtype import normalize_index_dtype
from weft.testing.schedules import assert_same_meaning
from weft.tir.interp import run
from weft.tir.stmt import For
from weft.tir.transform import NarrowDataType


def narrowed(func, bits=32):
    return NarrowDataType(bits)(weft.IRModule({"main": func}))["main"]


def test_loops_axes_and_conditions(becomes):
    @T.prim_func
    def before(A: T.Buffer((128,), "float32"), B: T.Buffer((130,), "float32")):
        for i, j in T.grid(T.int64(2), T.int64(65)):
            with T.block("B"):
                v = T.axis.spatial(T.int64(130), i * T.int64(65) + j)
                T.where(i * T.int64(65) + j < T.int64(129))
                B[v] = T.if_then_else(v < T.int64(128), A[v], T.float32(0))

    @T.prim_func
    def expected(A: T.Buffer((128,), "float32"), B: T.Buffer((130,), "float32")):
        for i, j in T.grid(2, 65):
            with T.block("B"):
                v = T.axis.spatial(130, i * 65 + j)
                T.where(i * 65 + j < 129)
                B[v] = T.if_then_else(v < 128, A[v], T.float32(0))

    becomes(NarrowDataType(32), before, expected)


def test_values_keep_their_type(becomes):
    @T.prim_func
    def before(A: T.Buffer((16,), "int64"), B: T.Buffer((16,), "int64")):
        for i in range(T.int64(15)):
            n: T.int64 = i * T.int64(3)
            A[i + T.int64(1)] = T.max(i - T.int64(4), T.int64(0))
            B[A[i + T.int64(1)] + T.int64(1)] = n
            T.evaluate(T.call_extern("int32", "abs", i))

    @T.prim_func
    def expected(A: T.Buffer((16,), "int64"), B: T.Buffer((16,), "int64")):
        for i in range(15):
            n: T.int64 = T.Cast("int64", i * 3)
            A[i + 1] = T.Cast("int64", T.max(i - 4, 0))
            B[A[i + 1] + T.int64(1)] = n
            T.evaluate(T.call_extern("int32", "abs", T.Cast("int64", i)))

    becomes(NarrowDataType(32), before, expected)


def test_threads_and_casts(becomes):
    @T.prim_func
    def before(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        for b in T.thread_binding(T.int64(2), "blockIdx.x"):
            for t in T.thread_binding(T.int64(32), "threadIdx.x"):
                B[b * T.int64(32) + t] = A[T.Cast("int64", T.Cast("int32", t)) + T.int64(1)]

    @T.prim_func
    def expected(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        for b in T.thread_binding(2, "blockIdx.x"):
            for t in T.thread_binding(32, "threadIdx.x"):
                B[b * 32 + t] = A[t + 1]

    becomes(NarrowDataType(32), before, expected)


@pytest.mark.parametrize(
    ("extent", "factor", "bits", "dtypes"),
    [
        (100, 327, 16, ["int16"]),
        (101, 328, 16, ["int64"]),  # the largest index is 32800
        (32767, 1, 16, ["int16"]),
        (32768, 1, 16, ["int64"]),  # the indices fit, the extent does not
        (1 << 20, 2047, 32, ["int32"]),
        (1 << 20, 2049, 32, ["int64"]),
        (4, 8, 8, ["int8"]),
    ],
)
def test_what_fits(extent, factor, bits, dtypes):
    @T.prim_func
    def main(A: T.Buffer((T.int64(1) << T.int64(40),), "int8")):
        for i in range(T.int64(extent)):
            A[i * T.int64(factor)] = T.int8(1)

    after = narrowed(main, bits)
    assert [loop.loop_var.dtype for loop in collect(after.body, For)] == dtypes


def test_symbolic_extents_and_shapes_stay():
    @T.prim_func
    def main(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 8), "int8")
        for i in range(n):
            for j in range(T.int64(8)):
                A[i, j] = T.int8(1)
        for k in range(T.int64(4)):
            B = T.decl_buffer((k + T.int64(1),), "int8")
            B[0] = A[0, k]

    variables = [loop.loop_var for loop in collect(narrowed(main).body, For)]
    assert {var.name: var.dtype for var in variables} == {"i": "int64", "j": "int32", "k": "int64"}


def test_a_sum_with_what_has_no_bound_keeps_the_loop_wide():
    @T.prim_func
    def main(A: T.Buffer((16,), "int64")):
        for i in range(T.int64(16)):
            A[i] = A[i] + i

    weft.ir.assert_structural_equal(narrowed(main), main)


def test_thread_extents():
    @T.prim_func
    def main(A: T.Buffer((64,), "int32")):
        t = T.launch_thread("threadIdx.x", T.int64(64))
        A[t] = 1

    launch = narrowed(main, 16).body
    assert launch.node.var.dtype == "int16"
    assert launch.value.dtype == "int16"


def test_a_product_beyond_the_range_stays_wide():
    """Both factors fit, and neither is a counting variable."""

    @T.prim_func
    def main(P: T.Buffer((2,), "int32"), A: T.Buffer((T.int64(1) << T.int64(40),), "int8")):
        A[T.Cast("int64", P[0]) * T.Cast("int64", P[1])] = T.int8(1)

    weft.ir.assert_structural_equal(narrowed(main), main)


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("block", range(3))
def test_random_programs_mean_the_same(bits, block):
    for seed in range(block * 6, block * 6 + 6):
        workload = random_workload(seed)
        wide = normalize_index_dtype(workload.func, DataType("int64"))
        after = narrowed(wide, bits)
        if not workload.sizes:
            dtypes = {loop.loop_var.dtype for loop in collect(after.body, For)}
            assert dtypes == {f"int{bits}"}
        assert_same_meaning(wide, after, workload.sizes, native=seed % 3 == 0)


def test_a_scheduled_product_of_matrices():
    @T.prim_func
    def main(A: T.Buffer((20, 20), "int32"), C: T.Buffer((20, 20), "int32")):
        for i, j, k in T.grid(T.int64(20), T.int64(20), T.int64(20)):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * A[vk, vj]

    sch = tir.Schedule(main)
    i, j, _ = sch.get_loops("C")
    sch.split(sch.fuse(i, j), [None, 32])
    after = narrowed(sch.mod["main"], 16)
    given = np.random.default_rng(0).integers(0, 9, (20, 20), "int32")
    result = np.zeros((20, 20), "int32")
    run(after, given, result)
    np.testing.assert_array_equal(result, given @ given)
    assert {loop.loop_var.dtype for loop in collect(after.body, For)} == {"int16"}


@pytest.mark.parametrize("bits", [64, 0, "32"])
def test_a_width_that_is_none(bits):
    with pytest.raises(PassError, match="target_bits: expected 8, 16 or 32, got"):
        NarrowDataType(bits)
