"""Tiles for tensor cores: how axes become those of a fragment, and what the tiled program computes.

The sketches are run by the interpreter before ``RewriteTensorize`` puts instructions in place.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib import design_spaces
from weft import meta_schedule as ms
from weft import te, tir
from weft.meta_schedule import postproc, schedule_rule
from weft.meta_schedule.testing import te_workload
from weft.meta_schedule.testing.space_generation import get_rules
from weft.support.errors import IRValueError, UnsupportedError
from weft.tensor_intrin.cuda import (
    WMMA_SYNC_16x16x16_f16f16f32_INTRIN,
    get_mma_intrin_group,
    get_wmma_intrin_group,
)
from weft.tir.schedule.analysis import get_auto_tensorize_mapping_info
from weft.tir.tensor_intrinsic import TensorIntrin

GPU = "cuda -arch=sm_70"
SHARED = schedule_rule.ReuseType("must", (2,), "shared")


def rule(**changes):
    arguments = {
        "intrin_groups": [get_wmma_intrin_group("shared", "shared", "float16", "float32", False)],
        "structure": "SSSRRSRS",
        "tile_binds": ["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        "max_innermost_factor": 4,
        "vector_load_lens": [1, 2, 4, 8],
        "reuse_read": schedule_rule.ReuseType("must", (4,), "shared"),
        "reuse_write": SHARED,
    }
    return schedule_rule.MultiLevelTilingTensorCore(**{**arguments, **changes})


def module_of(tensors):
    return weft.IRModule({"main": te.create_prim_func(list(tensors))})


def product(rows, columns, depth, dtype="float16"):
    out = "float32"
    return module_of(te_workload.matmul(rows, columns, depth, in_dtype=dtype, out_dtype=out))


def convolution(kernel):
    return module_of(
        te_workload.conv2d_nhwc(1, 6, 8, 8, 16, kernel, 1, kernel // 2, 1, 1, "float16", "float32")
    )


def blocks_with(sch, mark):
    found = {}
    for block in blocks(sch):
        value = sch.get(block).annotations.get(mark)
        if value is not None:
            found[sch.get(block).name_hint] = value
    return found


def blocks(sch):
    """All blocks but those inside of a fragment."""
    waiting = [sch.get_block("root")]
    while waiting:
        block = waiting.pop()
        yield block
        waiting += sch.get_child_blocks(block)


# Axes


def mapped(mod, block):
    sch = tir.Schedule(mod)
    desc = TensorIntrin.get(WMMA_SYNC_16x16x16_f16f16f32_INTRIN).desc
    return get_auto_tensorize_mapping_info(sch, block, desc)


def test_axes_of_a_convolution_become_rows_columns_and_depth():
    info = mapped(convolution(3), "conv2d_nhwc")
    [index_map] = info.mappings
    assert index_map.map_shape([1, 6, 8, 16, 3, 3, 8]) == [48, 16, 72]
    rows, columns, depth = index_map.map_indices([0, 2, 3, 5, 1, 2, 7])
    assert [int(rows), int(columns), int(depth)] == [2 * 8 + 3, 5, (1 * 3 + 2) * 8 + 7]
    assert len(info.lhs_iters) == 7
    assert len(info.rhs_iters) == 3


def test_an_axis_that_the_intrinsic_does_not_have_stays_outside():
    batch = te_workload.batch_matmul_nkkm(4, 16, 32, 64, "float16", "float32")
    [index_map] = mapped(module_of(batch), "Z").mappings
    assert index_map.map_shape([4, 16, 32, 64]) == [4, 16, 32, 64]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_another_data_type_has_no_mapping(dtype):
    assert mapped(product(16, 16, 16, dtype), "C") is None


# Tiles


@pytest.mark.parametrize(
    ("mod", "block"),
    [
        (product(32, 32, 32), "C"),
        (product(20, 17, 30), "C"),
        (convolution(3), "conv2d_nhwc"),
        (convolution(1), "conv2d_nhwc"),
    ],
    ids=["product", "padded", "convolution", "pointwise"],
)
def test_the_tiled_program_computes_the_same(mod, block):
    inline = get_rules("cuda", schedule_rule.AutoInline)
    [sch] = design_spaces.sketches(mod, GPU, sch_rules=[rule(), *inline])
    marks = blocks_with(sch, "meta_schedule.auto_tensorize")
    assert marks[f"{block}_o"] == "wmma_sync_16x16x16_f16f16f32"
    assert len(marks) == 4  # loads of both operands, the product, the store
    scopes = {buffer.scope() for buffer in sch.get(sch.get_block("root")).alloc_buffers}
    assert {"shared", "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"} <= scopes
    for result, expected in zip(
        design_spaces.interpreted(sch.mod["main"]),
        design_spaces.interpreted(mod["main"]),
        strict=True,
    ):
        np.testing.assert_allclose(result, expected, rtol=1e-2, atol=1e-2)


def test_decisions_drawn_anew_move_the_layout_of_the_result():
    mod = product(64, 64, 32)
    task = design_spaces.context(mod, GPU, sch_rules=[rule()])
    [sketch] = task.generate_design_space()
    shapes = set()
    for seed in range(1, 7):
        sch = design_spaces.finished(task, sketch, seed)
        shared = [b for b in sch.get(sch.get_block("root")).alloc_buffers if len(b.shape) == 6]
        shapes.add(str(shared[0].shape))
    assert len(shapes) > 1


def test_instructions_replace_the_fragments():
    parts = [postproc.RewriteReductionBlock(), postproc.RewriteTensorize(vectorize_init_loop=False)]
    task = design_spaces.context(product(32, 32, 32), GPU, sch_rules=[rule()], postprocs=parts)
    [sketch] = task.generate_design_space()
    text = design_spaces.finished(task, sketch, 1).mod.script()
    for call in ("load_matrix_sync", "mma_sync", "fill_fragment", "store_matrix_sync"):
        assert f"T.tvm_{call}(" in text


def test_a_pipeline_marks_both_loops_over_the_depth():
    [sch] = design_spaces.sketches(
        product(64, 64, 256), GPU, sch_rules=[rule(use_software_pipeline=True)]
    )
    loops = [sch.get(loop).annotations for loop in sch.get_loops("C_o")]
    stages = [list(item["software_pipeline_stage"]) for item in loops if item]
    assert stages == [[0, 0, 0, 0, 0, 1, 1], [0, 0, 1]]
    assert len(blocks_with(sch, "double_buffer_scope")) == 2


def test_what_no_intrinsic_computes_stays_as_it_is():
    mod = product(32, 32, 32, "float32")
    [sch] = design_spaces.sketches(mod, GPU, sch_rules=[rule()])
    assert weft.ir.structural_equal(sch.mod["main"], mod["main"])


def test_each_kind_of_fragment_gives_a_schedule():
    groups = [
        get_wmma_intrin_group("shared", "shared", "float16", "float32", turned)
        for turned in (False, True)
    ]
    spaces = design_spaces.sketches(
        product(32, 32, 32), GPU, sch_rules=[rule(intrin_groups=groups)]
    )
    assert len(spaces) == 2  # the second lays the right matrix out anew


def test_kinds_with_tensor_cores_use_them_first():
    kinds = [type(item) for item in ms.ScheduleRule.create("cuda-tensorcore")]
    assert kinds.index(schedule_rule.MultiLevelTilingTensorCore) < kinds.index(
        schedule_rule.MultiLevelTiling
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"intrin_groups": [{"init": "a"}]}, "expected the keys init, load_a, .*found no load_a"),
        ({"tile_binds": ["blockIdx.x", "threadIdx.x"]}, "expected threadIdx.y for warps"),
        ({"reuse_write": None}, r"reuse_write: expected ReuseType\('must', levels, 'shared'\)"),
    ],
)
def test_wrong_arguments(changes, message):
    with pytest.raises(IRValueError, match=message):
        rule(**changes)


def test_newer_instructions_are_planned():
    group = get_mma_intrin_group("shared", "shared", "float16", "float32", False, False)
    with pytest.raises(UnsupportedError, match="code generation for GPUs.*get_wmma_intrin_group"):
        rule(intrin_groups=[group])
