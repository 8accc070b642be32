"""Rules of design spaces: what each does to a block, and what it leaves alone."""

from __future__ import annotations

import pytest

import weft
from tests.lib import design_spaces
from weft import meta_schedule as ms
from weft import te
from weft.meta_schedule import schedule_rule
from weft.meta_schedule.testing import te_workload
from weft.meta_schedule.testing.space_generation import (
    check_sketches,
    generate_design_space,
    get_rules,
)

GPU = "nvidia/nvidia-a100"


def module_of(tensors) -> weft.IRModule:
    return weft.IRModule({"main": te.create_prim_func(list(tensors))})


def instructions(sch) -> list[str]:
    return [inst.kind.name for inst in sch.trace.insts]


def block_names(sch) -> list[str]:
    root = sch.get_block("root")
    return [sch.get(block).name_hint for block in sch.get_child_blocks(root)]


def auto_inline(**changes):
    arguments = {
        "into_producer": False, "into_consumer": True, "inline_const_tensor": True,
        "disallow_if_then_else": True, "require_injective": True, "require_ordered": True,
        "disallow_op": ["tir.exp"],
    }  # fmt: skip
    return schedule_rule.AutoInline(**{**arguments, **changes})


def test_auto_inline_leaves_one_block_of_a_function_without_reductions():
    [sch] = design_spaces.sketches(design_spaces.chain(), sch_rules=[auto_inline()])
    assert block_names(sch) == ["D"]


def test_auto_inline_keeps_costly_functions_beside_reductions():
    softmax = module_of(te_workload.softmax_mn(4, 8))
    [sch] = design_spaces.sketches(softmax, sch_rules=[auto_inline()])
    assert any("exp" in name and "sum" not in name for name in block_names(sch))


def test_auto_inline_into_the_producer():
    relu = module_of(te_workload.conv2d_nhwc_bn_relu(1, 4, 4, 3, 4, 3, 1, 1))
    cuda = get_rules("cuda", schedule_rule.AutoInline)
    [sch] = design_spaces.sketches(relu, "cuda", sch_rules=cuda)
    assert len(block_names(sch)) == 2


def test_add_rfactor_splits_a_reduction_of_few_rows():
    rule = schedule_rule.AddRFactor(max_jobs_per_core=16, max_innermost_factor=64)
    spaces = design_spaces.sketches(design_spaces.row_sums(2, 64), sch_rules=[rule])
    assert sorted([instructions(sch).count("RFactor") for sch in spaces]) == [0, 1, 1]


def test_add_rfactor_leaves_a_product_that_keeps_all_cores_busy():
    rule = schedule_rule.AddRFactor()
    product = module_of(te_workload.matmul(64, 64, 16))
    assert len(design_spaces.sketches(product, sch_rules=[rule])) == 1


def test_multi_level_tiling_gives_the_tiles_of_its_structure():
    rule = schedule_rule.MultiLevelTiling("SRS", max_innermost_factor=8)
    product = module_of(te_workload.matmul(16, 16, 16))
    [sch] = design_spaces.sketches(product, sch_rules=[rule])
    loops = [sch.get(loop) for loop in sch.get_loops("C")]
    assert [loop.loop_var.name[0] for loop in loops] == list("ijkij")
    assert sch.get(sch.get_block("C")).annotations["meta_schedule.tiling_structure"] == "SRS"


def test_multi_level_tiling_leaves_blocks_that_reuse_nothing():
    rule = schedule_rule.MultiLevelTiling("SSRSRS")
    [sch] = design_spaces.sketches(design_spaces.row_sums(8, 8), sch_rules=[rule])
    assert "SamplePerfectTile" not in instructions(sch)


def test_multi_level_tiling_by_a_filter():
    rule = schedule_rule.MultiLevelTiling("SRS", filter_fn=lambda sch, sref: True)
    sums = design_spaces.row_sums(8, 8)
    task = design_spaces.context(sums, sch_rules=[rule])
    sch = weft.tir.Schedule(sums)
    [tiled] = task.space_generator.sch_rules[0].apply(sch, sch.get_block("S"))
    assert "SamplePerfectTile" in instructions(tiled)


def test_multi_level_tiling_for_threads_and_shared_memory():
    [plain, *staged] = design_spaces.sketches(
        module_of(te_workload.matmul(64, 64, 64)), GPU,
        sch_rules=get_rules("cuda", schedule_rule.MultiLevelTiling),
    )  # fmt: skip
    assert instructions(plain).count("Bind") == 3
    assert instructions(plain).count("CacheRead") == 2
    assert len(staged) == 2  # copies run ahead by 4 or 5 stages
    assert "software_pipeline_stage" in staged[0].mod.script()


def test_check_sketches_wants_each_program():
    product = module_of(te_workload.matmul(8, 8, 8))
    rule = [schedule_rule.MultiLevelTiling("SRS", max_innermost_factor=8)]
    spaces = generate_design_space("llvm", product, design_spaces.CPU, None, rule)
    decisions = [("SamplePerfectTile", [2, 4]), ("SamplePerfectTile", [4, 2])]
    sch = weft.tir.Schedule(product)
    i, j, k = sch.get_loops("C")
    rows, columns = sch.split(i, [2, 4]), sch.split(j, [4, 2])
    sch.reorder(rows[0], columns[0], k, rows[1], columns[1])
    sch.annotate("C", "meta_schedule.tiling_structure", "SRS")
    check_sketches(product, spaces, [sch.mod], [decisions])
    with pytest.raises(AssertionError, match="sketch #0 is not among those generated"):
        check_sketches(product, spaces, [product], [decisions])


def test_wide_vectors_fill_the_last_axis():
    rule = schedule_rule.MultiLevelTilingWideVector("SRSRS", vector_length_in_bits=256)
    [sch] = design_spaces.sketches(module_of(te_workload.matmul(16, 32, 8)), sch_rules=[rule])
    loops = [sch.get(loop) for loop in sch.get_loops("C")]
    assert loops[-1].extent.value == 8


def test_an_intrinsic_is_the_innermost_tile():
    left, right = te.placeholder((8, 32), dtype="uint8"), te.placeholder((32, 32), dtype="int8")
    k = te.reduce_axis((0, 32), name="k")
    product = te.compute(
        (8, 32),
        lambda i, j: te.sum(left[i, k].astype("int32") * right[j, k].astype("int32"), axis=k),
        name="C",
    )
    mod = module_of([left, right, product])
    rules = get_rules("vnni", schedule_rule.MultiLevelTilingWithIntrin)
    spaces = design_spaces.sketches(mod, sch_rules=rules)
    assert len(spaces) == 3
    names = [
        sch.get(sch.get_block("C_o")).annotations["meta_schedule.auto_tensorize"] for sch in spaces
    ]
    assert names == ["dot_16x4_vnni"] * 3


def test_an_intrinsic_that_does_not_fit_leaves_the_program():
    rules = get_rules("vnni", schedule_rule.MultiLevelTilingWithIntrin)
    mod = module_of(te_workload.matmul(16, 16, 16))
    [sch] = design_spaces.sketches(mod, sch_rules=rules)
    assert weft.ir.structural_equal(sch.mod["main"].body, mod["main"].body)


def test_marks_for_threads_vectors_and_unrolling():
    rule = schedule_rule.ParallelizeVectorizeUnroll(4, 32, [0, 16])
    [sch] = design_spaces.sketches(design_spaces.row_sums(4, 4), sch_rules=[rule])
    marks = sch.get(sch.get_block("root")).annotations
    assert marks["meta_schedule.parallel"] == 8
    assert marks["meta_schedule.vectorize"] == 32
    assert "meta_schedule.unroll_explicit" in marks


def test_random_compute_location_samples_for_producers():
    rule = schedule_rule.RandomComputeLocation()
    [sch] = design_spaces.sketches(design_spaces.chain(), sch_rules=[rule])
    assert instructions(sch).count("SampleComputeLocation") == 2


def test_auto_bind_chooses_threads():
    rule = schedule_rule.AutoBind(max_threadblocks=8, thread_extents=[8, 16])
    [sch] = design_spaces.sketches(
        design_spaces.chain(), GPU, sch_rules=[auto_inline(), rule]
    )  # fmt: skip
    tags = [sch.get(loop).thread_binding.thread_tag for loop in sch.get_loops("D")]
    assert tags == ["blockIdx.x", "threadIdx.x"]


def test_auto_bind_wants_to_know_the_threads():
    with pytest.raises(weft.TVMError, match="does not say its max_threads_per_block"):
        design_spaces.sketches(design_spaces.chain(), "cuda", sch_rules=[schedule_rule.AutoBind()])


def test_threads_share_a_reduction():
    rule = schedule_rule.CrossThreadReduction([4, 8])
    spaces = design_spaces.sketches(design_spaces.row_sums(4, 64), GPU, sch_rules=[rule])
    assert sorted([instructions(sch).count("Bind") for sch in spaces]) == [0, 1]


def test_a_rule_of_the_user_takes_its_block():
    @weft.register_func("meta_schedule.cpu.tests_unrolled", override=True)
    def unrolled(sch, block):
        sch.unroll(sch.get_loops(block)[0])
        return [sch]

    sch = weft.tir.Schedule(design_spaces.row_sums(4, 4))
    sch.annotate("S", "schedule_rule", "tests_unrolled")
    [space] = design_spaces.sketches(sch.mod, sch_rules="llvm")
    assert space.get(space.get_loops("S")[0]).kind.name == "UNROLLED"
    assert "RFactor" not in instructions(space)


def test_an_unknown_rule_of_the_user_is_left_with_a_warning(caplog):
    sch = weft.tir.Schedule(design_spaces.row_sums(4, 4))
    sch.annotate("S", "schedule_rule", "nobody_has_it")
    with caplog.at_level("WARNING"):
        [space] = design_spaces.sketches(sch.mod, sch_rules=[schedule_rule.ApplyCustomRule()])
    assert "nobody_has_it" in caplog.text
    assert "schedule_rule" not in space.get(space.get_block("S")).annotations


def test_a_rule_written_in_python():
    @ms.derived_object
    class Twice(schedule_rule.PyScheduleRule):
        def apply(self, sch, block):
            return [sch, sch.copy()]

    assert len(design_spaces.sketches(design_spaces.chain(), sch_rules=[Twice()])) == 16


@pytest.mark.parametrize("kind", ["llvm", "avx512", "vnni", "asimd", "dotprod", "cuda", "hexagon"])
def test_kinds_have_rules(kind):
    assert isinstance(ms.ScheduleRule.create(kind)[0], schedule_rule.ApplyCustomRule)


def test_an_unknown_kind():
    with pytest.raises(weft.TVMError, match="expected a kind of 'llvm'"):
        ms.ScheduleRule.create("abacus")


@pytest.mark.parametrize("structure", ["", "SXR"])
def test_an_unknown_structure(structure):
    with pytest.raises(weft.TVMError, match="expected letters S"):
        schedule_rule.MultiLevelTiling(structure)


def test_a_loop_of_one_iteration_is_bound_whatever_it_runs():
    sch = weft.tir.Schedule(design_spaces.row_sums(4, 4))
    unit = sch.add_unit_loop(sch.get_loops("S")[0])
    sch.bind(unit, "threadIdx.x")
    assert sch.get(sch.get_loops("S")[0]).kind.name == "THREAD_BINDING"
