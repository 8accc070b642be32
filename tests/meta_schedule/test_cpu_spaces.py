"""Every schedule that the rules of CPUs give computes what the program as written does."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib import design_spaces
from weft import meta_schedule as ms
from weft import te
from weft.meta_schedule.testing import te_workload

pytestmark = pytest.mark.sampled(2)

PROGRAMS = {
    "matmul": lambda: te_workload.matmul(24, 20, 36),
    "matmul of few rows": lambda: te_workload.matmul(1, 4, 128),
    "matmul and relu": lambda: te_workload.matmul_relu(16, 24, 12),
    "batch of products": lambda: te_workload.batch_matmul_nkkm(2, 8, 12, 16),
    "convolution": lambda: te_workload.conv2d_nhwc(1, 7, 7, 3, 8, 3, 2, 1),
    "convolution in groups": lambda: te_workload.conv2d_nhwc(1, 6, 6, 4, 8, 3, 1, 1, 1, 2),
    "convolution, normalised": lambda: te_workload.conv2d_nhwc_bn_relu(1, 6, 6, 3, 4, 3, 1, 1),
    "depthwise convolution": lambda: te_workload.depthwise_conv2d_nhwc(1, 6, 6, 4, 3, 1, 1),
    "transposed convolution": lambda: te_workload.conv2d_transpose_nhwc(1, 4, 4, 3, 4, 4, 2, 1),
    "attention": lambda: te_workload.transpose_batch_matmul(1, 8, 2, 6),
    "softmax": lambda: te_workload.softmax_mn(6, 40),
    "norm": lambda: te_workload.norm_bmn(2, 12, 10),
    "pooling": lambda: te_workload.max_pool2d_nchw(1, 6, 6, 4, 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_sketch_computes_the_same(name):
    mod = weft.IRModule({"main": te.create_prim_func(list(PROGRAMS[name]()))})
    wanted = design_spaces.interpreted(mod["main"])
    task = design_spaces.context(mod, sch_rules="llvm", postprocs="llvm", mutator_probs="llvm")
    sketches = task.generate_design_space()
    accepted = 0
    for number, sketch in enumerate(sketches):
        for seed in (11 + number, 1001 + number):
            sch = design_spaces.finished(task, sketch, seed)
            if sch is None:  # a place that was drawn gives a loop of no constant extent
                continue
            accepted += 1
            for given, expected in zip(design_spaces.native(sch.mod), wanted, strict=True):
                np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-4)
    assert accepted >= len(sketches)


def test_a_product_has_a_sketch_for_each_place_of_its_result():
    mod = weft.IRModule({"main": te.create_prim_func(list(te_workload.matmul(16, 16, 16)))})
    names = [
        sorted({inst.kind.name for inst in sch.trace.insts} & {"CacheWrite", "ReverseComputeAt"})
        for sch in design_spaces.sketches(mod, sch_rules="llvm")
    ]
    assert sorted(names) == [
        [],
        ["CacheWrite", "ReverseComputeAt"],
        ["CacheWrite", "ReverseComputeAt"],
    ]


def test_mutated_schedules_compute_the_same():
    mod = weft.IRModule({"main": te.create_prim_func(list(te_workload.matmul_relu(16, 16, 16)))})
    wanted = design_spaces.interpreted(mod["main"])
    task = design_spaces.context(mod, sch_rules="llvm", postprocs="llvm", mutator_probs="llvm")
    changed = 0
    for sketch in task.generate_design_space():
        for mutator in task.space_generator.mutator_probs:
            trace = mutator.apply(sketch.trace)
            if trace is None:
                continue
            assert trace.as_json() != sketch.trace.as_json()
            sch = weft.tir.Schedule(mod)
            trace.apply_to_schedule(sch)
            assert all(postproc.apply(sch) for postproc in task.space_generator.postprocs)
            result = design_spaces.native(sch.mod)[-1]
            np.testing.assert_allclose(result, wanted[-1], rtol=1e-4, atol=1e-4)
            changed += 1
    assert changed >= 6


def test_a_space_of_the_targets_own_rules():
    mod = weft.IRModule({"main": te.create_prim_func(list(te_workload.matmul(8, 8, 8)))})
    task = ms.TuneContext(mod, target="llvm -num-cores=2", space_generator="post-order-apply")
    assert len(task.generate_design_space()) == 3
    assert len(task.space_generator.postprocs) >= 4
    assert abs(sum(task.space_generator.mutator_probs.values()) - 1) < 1e-9
