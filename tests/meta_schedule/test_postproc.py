"""Postprocessors: what each rewrites, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib import design_spaces
from weft import meta_schedule as ms
from weft import te, tir
from weft.meta_schedule import postproc

GPU = "nvidia/nvidia-a100"


def applied(part: postproc.Postproc, sch: tir.Schedule, target: str = design_spaces.CPU) -> bool:
    design_spaces.context(sch.mod, target, postprocs=[part])
    return part.apply(sch)


def assert_same(sch: tir.Schedule, mod: weft.IRModule) -> None:
    for given, wanted in zip(
        design_spaces.native(sch.mod), design_spaces.interpreted(mod["main"]), strict=True
    ):
        np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-4)


def kinds(sch: tir.Schedule, block: str) -> list[str]:
    return [sch.get(loop).kind.name for loop in sch.get_loops(block)]


def marked(mod: weft.IRModule, **marks: int) -> tir.Schedule:
    sch = tir.Schedule(mod)
    for name, value in marks.items():
        sch.annotate("root", f"meta_schedule.{name}", value)
    return sch


def test_all_loops_of_a_plain_block_become_threads_and_a_vector():
    mod = design_spaces.chain()
    sch = marked(mod, parallel=32, vectorize=8)
    assert applied(postproc.RewriteParallelVectorizeUnroll(), sch)
    assert kinds(sch, "B") == ["PARALLEL", "VECTORIZED"]
    assert not sch.get(sch.get_block("root")).annotations
    assert_same(sch, mod)


def test_a_reduction_runs_in_parallel_and_is_unrolled():
    mod = design_spaces.row_sums(4, 8)
    sch = marked(mod, parallel=32, vectorize=8, unroll_explicit=16)
    assert applied(postproc.RewriteParallelVectorizeUnroll(), sch)
    assert kinds(sch, "S") == ["PARALLEL", "SERIAL"]
    marks = sch.get(sch.get_loops("S")[0]).annotations
    assert (marks["pragma_auto_unroll_max_step"], marks["pragma_unroll_explicit"]) == (16, 1)
    assert_same(sch, mod)


def test_loops_that_jump_through_memory_get_no_vector():
    data = te.placeholder((8, 8, 8), name="A")
    turned = te.compute((8, 8, 8), lambda i, j, k: data[k, j, i] + 1.0, name="B")
    mod = weft.IRModule({"main": te.create_prim_func([data, turned])})
    sch = marked(mod, parallel=4, vectorize=64)
    assert applied(postproc.RewriteParallelVectorizeUnroll(), sch)
    assert kinds(sch, "B") == ["PARALLEL", "SERIAL", "VECTORIZED"]  # one loop, not two
    assert_same(sch, mod)


def test_inits_leave_the_reduction():
    mod = design_spaces.row_sums(4, 8)
    sch = tir.Schedule(mod)
    assert applied(postproc.RewriteReductionBlock(), sch)
    assert sch.get(sch.get_block("S_update")).init is None
    assert_same(sch, mod)


def test_inits_of_threads_that_share_a_reduction_stay():
    sch = tir.Schedule(design_spaces.row_sums(4, 8))
    sch.bind(sch.get_loops("S")[1], "threadIdx.x")
    assert applied(postproc.RewriteReductionBlock(), sch, GPU)
    assert sch.get(sch.get_block("S")).init is not None


def test_a_loop_of_no_constant_extent_is_refused():
    size = tir.Var("n", "int32")
    data = te.placeholder((size,), name="A")
    result = te.compute((size,), lambda i: data[i] + 1.0, name="B")
    sch = tir.Schedule(te.create_prim_func([data, result]))
    assert not postproc.DisallowDynamicLoop().apply(sch)
    assert postproc.DisallowDynamicLoop().apply(tir.Schedule(design_spaces.chain()))


def test_a_weight_is_read_in_the_order_of_the_loops():
    left, right = (te.placeholder((16, 16), name=name) for name in "AB")
    k = te.reduce_axis((0, 16), name="k")
    product = te.compute((16, 16), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="C")
    function = te.create_prim_func([left, right, product])
    mod = weft.IRModule({"main": function.with_attr("layout_free_buffers", [1])})
    sch = tir.Schedule(mod)
    i, j, k_loop = sch.get_loops("C")
    outer, inner = sch.split(j, [2, 8])
    sch.reorder(outer, i, k_loop, inner)
    assert applied(postproc.RewriteLayout(), sch)
    copy = sch.get(sch.get_block("B_global"))
    assert copy.annotations["meta_schedule.layout_rewrite_preproc"]
    assert [int(size) for size in copy.writes[0].buffer.shape] == [2, 16, 8]
    assert_same(sch, mod)


def test_blocks_without_threads_are_bound():
    sch = tir.Schedule(design_spaces.chain(32))
    assert applied(postproc.RewriteUnboundBlock(max_threadblocks=256), sch, GPU)
    tags = [sch.get(loop).thread_binding.thread_tag for loop in sch.get_loops("D")]
    assert tags == ["blockIdx.x", "threadIdx.x"]


def test_more_work_than_threads_leaves_a_serial_loop():
    sch = tir.Schedule(design_spaces.chain(2048))
    assert applied(postproc.RewriteUnboundBlock(max_threadblocks=2), sch, GPU)
    assert kinds(sch, "B") == ["THREAD_BINDING", "THREAD_BINDING", "SERIAL"]


def test_threads_share_a_copy():
    task = design_spaces.context(
        weft.IRModule({"main": product(64)}), GPU,
        sch_rules=ms.ScheduleRule.create("cuda")[:2],
        postprocs=[postproc.RewriteCooperativeFetch()],
    )  # fmt: skip
    sch = task.generate_design_space()[0]
    assert task.space_generator.postprocs[0].apply(sch)
    tags = [
        loop.thread_binding.thread_tag
        for loop in [sch.get(item) for item in sch.get_loops("A_shared")]
        if loop.thread_binding is not None
    ]
    assert tags[-1] == "threadIdx.x"
    assert tags.count("threadIdx.x") == 2


def product(size: int) -> tir.PrimFunc:
    left, right = (te.placeholder((size, size), name=name) for name in "AB")
    k = te.reduce_axis((0, size), name="k")
    result = te.compute(
        (size, size), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="C"
    )
    return te.create_prim_func([left, right, result])


@pytest.mark.parametrize(("threads", "fits"), [(64, True), (2048, False)])
def test_a_kernel_with_too_many_threads_is_refused(threads, fits):
    sch = tir.Schedule(design_spaces.row_sums(4096, 2))
    outer, inner = sch.split(sch.get_loops("S")[0], [None, threads])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    assert applied(postproc.VerifyGPUCode(), sch, GPU) is fits


@pytest.mark.parametrize(("capacity", "fits"), [(100, False), (2000, True), (0, True)])
def test_fast_memory_has_a_size(capacity, fits):
    part = postproc.VerifyVTCMLimit()
    sch = tir.Schedule(design_spaces.chain(16))
    design_spaces.context(
        sch.mod, weft.target.hexagon("v68", vtcm_capacity=capacity), postprocs=[part]
    )
    sch.cache_read("B", 0, "global.vtcm")
    assert part.apply(sch) is fits


@pytest.mark.parametrize(("iterations", "fits"), [((0, 0), True), ((0, 1), False)])
def test_fast_memory_for_several_iterations_counts(iterations, fits):
    """A row of 16 floats, and two of them where the next is copied while one is read."""
    part = postproc.VerifyVTCMLimit()
    sch = tir.Schedule(product(16))
    target = weft.target.hexagon("v68", vtcm_capacity=100)
    design_spaces.context(sch.mod, target, postprocs=[part])
    rows = sch.get_loops("C")[0]
    sch.compute_at(sch.cache_read("C", 0, "global.vtcm"), rows)
    sch.annotate(rows, "software_pipeline_stage", list(iterations))
    sch.annotate(rows, "software_pipeline_order", [0, 1])
    assert part.apply(sch) is fits


@pytest.mark.parametrize(
    ("read", "asynchronous", "fits"),
    [(0, [0], True), (1, [0], False), (1, [], True)],
    ids=["row", "column", "column, not beside"],
)
def test_copies_beside_the_computation_go_through_memory_in_order(read, asynchronous, fits):
    sch = tir.Schedule(product(16))
    _, columns, _ = sch.get_loops("C")
    sch.compute_at(sch.cache_read("C", read, "global.vtcm"), columns)
    sch.annotate(columns, "software_pipeline_stage", [0, 1])
    sch.annotate(columns, "software_pipeline_order", [0, 1])
    sch.annotate(columns, "software_pipeline_async_stages", asynchronous)
    before = sch.mod
    part = postproc.DisallowAsyncStridedMemCopy()
    assert applied(part, sch, weft.target.hexagon("v68")) is fits
    assert sch.mod is before


@pytest.mark.parametrize("kind", ["llvm", "vnni", "cuda", "cuda-tensorcore", "hexagon"])
def test_kinds_have_postprocessors(kind):
    assert isinstance(ms.Postproc.create(kind)[0], postproc.DisallowDynamicLoop)
