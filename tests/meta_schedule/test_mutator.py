"""Mutators: each changes its kind of decision, and no other."""

from __future__ import annotations

import math

import pytest

import weft
from tests.lib import design_spaces
from weft import meta_schedule as ms
from weft import te, tir
from weft.meta_schedule import mutator
from weft.meta_schedule.testing import te_workload

GPU = "nvidia/nvidia-a100"


def prepared(part: mutator.Mutator, mod: weft.IRModule, target: str = design_spaces.CPU):
    design_spaces.context(mod, target, mutator_probs={part: 1.0})
    return part


def differing(old: tir.schedule.Trace, new: tir.schedule.Trace) -> list[tuple[str, object, object]]:
    """The decisions that two traces of the same instructions differ in."""
    return [
        (inst.kind.name, old.decisions[inst], new.decisions[inst])
        for inst in new.insts
        if inst in new.decisions and old.decisions[inst] != new.decisions[inst]
    ]


def product() -> weft.IRModule:
    return weft.IRModule({"main": te.create_prim_func(list(te_workload.matmul(64, 64, 64)))})


def test_a_factor_moves_from_tile_to_tile():
    mod = product()
    trace = design_spaces.sketches(mod, sch_rules="llvm")[0].trace
    part = prepared(mutator.MutateTileSize(), mod)
    for _ in range(20):
        [(name, old, new)] = differing(trace, part.apply(trace))
        assert name == "SamplePerfectTile"
        assert math.prod(old) == math.prod(new)
        assert sum(a != b for a, b in zip(old, new, strict=True)) == 2
        assert new[-1] <= 64


def test_the_last_tile_keeps_its_limit():
    sch = tir.Schedule(product())
    sch.sample_perfect_tile(sch.get_loops("C")[0], 2, 4, decision=[16, 4])
    part = prepared(mutator.MutateTileSize(), sch.mod)
    tiles = {tuple(part.apply(sch.trace).decisions[sch.trace.insts[-1]]) for _ in range(20)}
    assert tiles == {(32, 2), (64, 1)}


def test_another_number_of_steps_to_unroll():
    mod = product()
    trace = design_spaces.sketches(mod, sch_rules="llvm")[0].trace
    part = prepared(mutator.MutateUnroll(), mod)
    numbers = set()
    for _ in range(30):
        [(name, old, new)] = differing(trace, part.apply(trace))
        assert name == "SampleCategorical"
        numbers.add(new)
    assert numbers == {0, 1, 2, 3} - {old}


def test_another_place_of_a_block():
    mod = design_spaces.chain()
    rule = ms.schedule_rule.RandomComputeLocation()
    trace = design_spaces.sketches(mod, sch_rules=[rule])[0].trace
    part = prepared(mutator.MutateComputeLocation(), mod)
    [(name, _, _)] = differing(trace, part.apply(trace))
    assert name == "SampleComputeLocation"


def test_another_number_of_parallel_iterations():
    mod = product()
    sch = tir.Schedule(mod)
    sch.annotate(sch.get_block("root"), "meta_schedule.parallel", 64)
    part = prepared(mutator.MutateParallel(max_jobs_per_core=2**13), mod)
    changed = part.apply(sch.trace)
    assert changed.insts[-1].inputs[1] == 64 * 64
    assert part.apply(changed).insts[-1].inputs[1] == 64


def test_another_number_of_threads():
    mod = design_spaces.row_sums(4, 64)
    rule = ms.schedule_rule.CrossThreadReduction([4, 8, 16])
    trace = design_spaces.sketches(mod, GPU, sch_rules=[rule])[0].trace
    part = prepared(mutator.MutateThreadBinding(), mod, GPU)
    [(name, _, _)] = differing(trace, part.apply(trace))
    assert name == "SampleCategorical"


@pytest.mark.parametrize(
    "part",
    [mutator.MutateTileSize(), mutator.MutateUnroll(), mutator.MutateThreadBinding(),
     mutator.MutateComputeLocation(), mutator.MutateParallel(16)],
)  # fmt: skip
def test_a_trace_without_decisions_stays(part):
    mod = product()
    assert prepared(part, mod).apply(tir.Schedule(mod).trace) is None
