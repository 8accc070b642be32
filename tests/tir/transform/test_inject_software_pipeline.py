"""InjectSoftwarePipeline: before and after, refusals, every pipeline of small loops by meaning."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

import weft
from weft.ir.functor import rewrite
from weft.script import tir as T
from weft.support.errors import IRValueError, UnsupportedError
from weft.testing.schedules import assert_same_meaning
from weft.tir.interp import run
from weft.tir.stmt import For
from weft.tir.transform import (
    CompactBufferAllocation,
    ConvertBlocksToOpaque,
    InjectSoftwarePipeline,
    LowerInitBlock,
    PlanAndUpdateBufferAllocationLocation,
    Simplify,
)


def pipelined(func):
    return InjectSoftwarePipeline()(weft.IRModule({"main": func}))["main"]


def annotated(func, stages, orders=None, **more):
    """The function with its outer loop annotated."""
    orders = list(range(len(stages))) if orders is None else orders
    notes = {"software_pipeline_stage": stages, "software_pipeline_order": orders, **more}

    def mark(item):
        if isinstance(item, For) and item.loop_var.name == "i":
            return item.with_(annotations=weft.ir.attrs.Attrs(notes))
        return None

    return rewrite(func, mark)


@T.prim_func
def two_steps(A: T.Buffer((16, 4), "float32"), C: T.Buffer((16, 4), "float32")):
    for i in range(16):
        with T.block("both"):
            T.reads(A[i, 0:4])
            T.writes(C[i, 0:4])
            B = T.alloc_buffer((4,), "float32")
            for j in range(4):
                B[j] = A[i, j] * T.float32(2)
            for j in range(4):
                C[i, j] = B[j] + T.float32(1)


def test_an_iteration_loads_what_the_next_one_uses():
    @T.prim_func
    def expected(A: T.Buffer((16, 4), "float32"), C: T.Buffer((16, 4), "float32")):
        with T.block("root"):
            with T.block(""):
                T.reads(A[0:16, 0:4])
                T.writes(C[0:16, 0:4])
                B = T.alloc_buffer((2, 4), "float32")
                with T.block(""):
                    T.reads(A[0, 0:4])
                    T.writes(B[0, 0:4])
                    for j in range(4):
                        B[0, j] = A[0, j] * T.float32(2)
                with T.block(""):
                    T.reads(A[1:16, 0:4], B[0:2, 0:4])
                    T.writes(B[0:2, 0:4], C[0:15, 0:4])
                    for i in T.serial(15, annotations={"kept": 1}):
                        with T.block(""):
                            T.reads(A[i + 1, 0:4])
                            T.writes(B[(i + 1) % 2, 0:4])
                            for j in range(4):
                                B[(i + 1) % 2, j] = A[i + 1, j] * T.float32(2)
                        with T.block(""):
                            T.reads(B[i % 2, 0:4])
                            T.writes(C[i, 0:4])
                            for j in range(4):
                                C[i, j] = B[i % 2, j] + T.float32(1)
                with T.block(""):
                    T.reads(B[1, 0:4])
                    T.writes(C[15, 0:4])
                    for j in range(4):
                        C[15, j] = B[1, j] + T.float32(1)

    after = pipelined(annotated(two_steps, [0, 1], kept=1))
    simple = Simplify()(weft.IRModule({"main": after}))["main"]
    weft.ir.assert_structural_equal(simple, expected.with_attr("global_symbol", "two_steps"))
    assert_same_meaning(two_steps, after)


def test_a_loop_without_stages_is_the_same_object():
    module = weft.IRModule({"main": two_steps})
    assert InjectSoftwarePipeline()(module) is module


def test_fewer_iterations_than_stages_and_symbolic_extents():
    @T.prim_func
    def before(a: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        C = T.match_buffer(c, (n,), "float32")
        for i in range(n):
            with T.block("all"):
                T.reads(A[i])
                T.writes(C[i])
                B = T.alloc_buffer((1,), "float32")
                B[0] = A[i] * T.float32(2)
                C[i] = B[0] + T.float32(1)

    for depth in (1, 2, 3):
        after = pipelined(annotated(before, [0, depth]))
        for extent in range(6):
            given, result = np.arange(extent, dtype="float32"), np.zeros(extent, "float32")
            run(after, given, result)
            np.testing.assert_array_equal(result, given * 2 + 1)


def test_asynchronous_stages_run_as_others_do():
    plain = pipelined(annotated(two_steps, [0, 2]))
    marked = pipelined(annotated(two_steps, [0, 2], software_pipeline_async_stages=[0]))
    weft.ir.assert_structural_equal(plain, marked)


def test_a_pipeline_in_a_pipeline_and_doubled_buffers():
    @T.prim_func
    def before(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        for i in T.serial(
            8,
            annotations={
                "software_pipeline_stage": [0, 0, 1, 1],
                "software_pipeline_order": [0, 2, 1, 3],
            },
        ):
            with T.block("row"):
                T.reads(A[i, 0:8])
                T.writes(C[i, 0:8])
                row = T.alloc_buffer((8,), "float32")
                with T.block("load"):
                    T.reads(A[i, 0:8])
                    T.writes(row[0:8])
                    T.block_attr({"double_buffer_scope": 0})
                    for j in range(8):
                        row[j] = A[i, j]
                for j in T.serial(
                    8,
                    annotations={
                        "software_pipeline_stage": [0, 1],
                        "software_pipeline_order": [0, 1],
                    },
                ):
                    with T.block("element"):
                        T.reads(row[j])
                        T.writes(C[i, j])
                        B = T.alloc_buffer((1,), "float32")
                        B[0] = row[j] * T.float32(2)
                        C[i, j] = B[0] + T.float32(1)

    after = pipelined(before)
    assert "row = T.alloc_buffer((2, 8))" in after.script()
    assert_same_meaning(before, after)


def running(stages, orders):
    """A sum that each iteration reads: not for the next one before it is written."""

    @T.prim_func
    def func(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
        with T.block("root"):
            S = T.alloc_buffer((1,), "int32")
            for i in range(6):
                with T.block("all"):
                    B = T.alloc_buffer((1,), "int32")
                    B[0] = A[i] * 3
                    S[0] = S[0] * 2 + B[0]
                    C[i] = S[0] - B[0]

    return annotated(func, stages, orders)


def in_place(stages, orders):
    """An iteration reads what another one, two before or after it, writes."""

    @T.prim_func
    def func(A: T.Buffer((6,), "int32"), C: T.Buffer((8,), "int32")):
        for i in range(6):
            with T.block("all"):
                B = T.alloc_buffer((1,), "int32")
                B[0] = A[i] + C[i]
                C[i + 2] = B[0] * 2
                A[i] = B[0] + C[i + 1]

    return annotated(func, stages, orders)


def chain(stages, orders):
    """Each statement needs what the one before it wrote in the same iteration."""

    @T.prim_func
    def func(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
        for i in range(6):
            with T.block("all"):
                B = T.alloc_buffer((2,), "int32")
                D = T.alloc_buffer((2,), "int32")
                for j in range(2):
                    B[j] = A[i] * (j + 1)
                for j in range(2):
                    D[j] = B[1 - j] + 1
                C[i] = D[0] * 10 + D[1]

    return annotated(func, stages, orders)


@pytest.mark.parametrize(("program", "least"), [(running, 5), (in_place, 5), (chain, 20)])
def test_every_pipeline_computes_the_same_or_is_refused(program, least):
    rng, accepted = np.random.default_rng(0), 0
    a, c = rng.integers(-9, 9, 6).astype("int32"), rng.integers(-9, 9, 8).astype("int32")
    for stages, orders in product(product(range(3), repeat=3), permutations(range(3))):
        func = program(list(stages), list(orders))
        size = int(func.buffer_map[func.params[1]].shape[0])
        results = []
        try:
            after = pipelined(func)
        except IRValueError:
            continue
        for item in (func, after):
            results.append((a.copy(), c[:size].copy()))
            run(item, *results[-1])
        np.testing.assert_array_equal(results[0][0], results[1][0], str((stages, orders)))
        np.testing.assert_array_equal(results[0][1], results[1][1], str((stages, orders)))
        accepted += 1
    assert accepted >= least


def test_a_schedule_with_a_pipeline_compiles():
    @T.prim_func
    def matmul(
        A: T.Buffer((16, 16), "float32"),
        B: T.Buffer((16, 16), "float32"),
        C: T.Buffer((16, 16), "float32"),
    ):
        for i, j, k in T.grid(16, 16, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = weft.tir.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(k, [None, 4])
    sch.reorder(outer, i, j, inner)
    sch.compute_at(sch.cache_read("C", 1, "global"), outer)
    sch.decompose_reduction("C", outer)
    sch.annotate(outer, "software_pipeline_stage", [0, 1])
    sch.annotate(outer, "software_pipeline_order", [0, 1])
    module = sch.mod
    for step in (
        PlanAndUpdateBufferAllocationLocation(), LowerInitBlock(), ConvertBlocksToOpaque(),
        CompactBufferAllocation(), InjectSoftwarePipeline(),
    ):  # fmt: skip
        module = step(module)
    assert "B_global = T.alloc_buffer((2, 4, 16))" in module.script()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((16, 16)).astype("float32") for _ in range(2))
    result = weft.nd.array(np.zeros((16, 16), "float32"))
    weft.build(module, target="llvm")["matmul"](weft.nd.array(a), weft.nd.array(b), result)
    np.testing.assert_allclose(result.numpy(), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("stages", "orders", "message"),
    [
        ([1, 0], [0, 1], r"statements 0 \(stage 1, order 0\) and 1 .* both use B"),
        ([0, 0], [1, 0], r"statements 0 \(stage 0, order 1\) and 1 .* cannot change places"),
        ([0, 1], [0, 0], r"software_pipeline_order .*each number below 2 once, got \[0, 0\]"),
        ([0, 1, 1], [0, 1, 2], "a number of at least 0 for each of its 2 statements, got"),
        ([0, -1], [0, 1], "a number of at least 0 for each of its 2 statements"),
    ],
)
def test_what_is_no_pipeline_is_refused(stages, orders, message):
    with pytest.raises(IRValueError, match=message):
        pipelined(annotated(two_steps, stages, orders))


def test_other_refusals():
    @T.prim_func
    def single(A: T.Buffer((4,), "float32")):
        for i in T.serial(4, annotations={"software_pipeline_stage": [0]}):
            A[i] = T.float32(0)

    @T.prim_func
    def pointer(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("all"):
                B = T.alloc_buffer((1,), "float32")
                B[0] = A[i]
                A[i] = T.call_pure_extern("float32", "first", B.data)

    @T.prim_func
    def parallel(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i in T.parallel(4):
            A[i] = T.float32(0)
            C[i] = T.float32(0)

    with pytest.raises(IRValueError, match="expected one that runs in order, got parallel"):
        pipelined(annotated(parallel, [0, 1]))
    with pytest.raises(IRValueError, match="expected both .*_stage and .*_order, got .*_stage al"):
        pipelined(single)
    with pytest.raises(IRValueError, match="expected a sequence of statements as its body, got Bu"):
        pipelined(annotated(single, [0]))
    with pytest.raises(UnsupportedError, match="B has a version for each of several iterations"):
        pipelined(annotated(pointer, [0, 1]))
