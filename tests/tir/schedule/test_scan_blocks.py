"""Blocks with an ordered axis and an init: which moves keep the order of what runs along it."""

import numpy as np
import pytest

import weft
from tests.lib.dangerous_programs.running import (
    on_from_row_to_row,
    one_running_value,
    running_sums,
    running_sums_before,
)
from weft import tir
from weft.driver.pipeline import lower_tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.interp import run
from weft.tir.schedule.errors import NotCompactDataflowError, NotCompleteOrReductionBlockError
from weft.tir.schedule.primitive.block.block_division import BlockizeInitError
from weft.tir.schedule.primitive.loop.kinds import LoopCarriedError
from weft.tir.schedule.primitive.loop.loop_structure import PartitionedReductionError
from weft.tir.schedule.primitive.loop.loops import LoopOrderError
from weft.tir.schedule.primitive.reduction.decompose_reduction import LoopHeightError


def test_the_init_runs_at_the_first_step():
    data, sums = np.arange(30, dtype="int32").reshape(6, 5), np.zeros((6, 5), "int32")
    lowered = sums.copy()
    run(running_sums, data, sums)
    run(lower_tir()(weft.IRModule({"main": running_sums}))["main"], data, lowered)
    np.testing.assert_array_equal(sums, np.cumsum(data * 2, 1) + 1)
    np.testing.assert_array_equal(lowered, sums)


@pytest.mark.parametrize("program", [running_sums, running_sums_before])
def test_rows_run_side_by_side_inside_of_the_steps(program):
    sch = tir.Schedule(program)
    i, k = sch.get_loops("C")
    outer, lane = sch.split(i, [None, 4])
    around, step = sch.split(k, [None, 2])
    sch.reorder(outer, around, step, lane)
    sch.vectorize(lane)
    sch.parallel(outer)
    sch.unroll(step)
    sch.decompose_reduction("C", around)
    assert sch.get(sch.get_block("C_update")).init is None
    assert_same_meaning(program, sch.mod)


def test_the_blocks_that_decompose_makes():
    @T.prim_func
    def expected(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")) -> None:
        running = T.alloc_buffer((6,), "int32")
        for i in range(6):
            with T.block("C_init"):
                vi = T.axis.spatial(6, i)
                T.reads()
                T.writes(running[vi])
                running[vi] = 0
            for k in range(5):
                with T.block("C_update"):
                    vi = T.axis.spatial(6, i)
                    vk = T.axis.scan(5, k)
                    T.reads(running[vi], A[vi, vk])
                    T.writes(running[vi], C[vi, vk])
                    C[vi, vk] = running[vi]
                    running[vi] = running[vi] * 2 + A[vi, vk]

    sch = tir.Schedule(running_sums_before)
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    made = sch.mod["main"].with_attr("global_symbol", "expected")
    weft.ir.assert_structural_equal(made, expected)


def test_the_order_of_the_steps_is_kept():
    sch = tir.Schedule(running_sums)
    i, k = sch.get_loops("C")
    with pytest.raises(BlockizeInitError, match="an init and the ordered axis vk"):
        sch.blockize(k)
    around, step = sch.split(k, [None, 2])
    with pytest.raises(LoopOrderError, match="keep k_0, k_1 in this order"):
        sch.reorder(step, around)
    for kind in (sch.parallel, sch.vectorize):
        with pytest.raises(LoopCarriedError, match="it runs axis vk of block C, which is no spat"):
            kind(around)
    with pytest.raises(LoopHeightError, match="loop k_0 runs the ordered axis vk and is outside"):
        sch.decompose_reduction("C", step)
    with pytest.raises(PartitionedReductionError, match="runs axis vk of block C"):
        sch.loop_partition(around, [1, None])
    with pytest.raises(NotCompleteOrReductionBlockError, match="axis vk is not data-parallel"):
        sch.compute_at("C", sch.get_loops("D")[0])
    sch.reorder(around, step, i)
    assert_same_meaning(running_sums, sch.mod)


def test_rows_that_share_a_running_value_stay_in_order():
    for program in (one_running_value, on_from_row_to_row):
        sch = tir.Schedule(program)
        i, k = sch.get_loops("C")
        with pytest.raises(LoopOrderError, match="keep i, k in this order"):
            sch.reorder(k, i)
        with pytest.raises((LoopCarriedError, NotCompactDataflowError)):
            sch.parallel(i)


def test_tiles_of_what_is_read_and_stored():
    sch = tir.Schedule(running_sums)
    i, k = sch.get_loops("C")
    outer, row = sch.split(i, [None, 4])
    tile, step = sch.split(k, [None, 2])
    sch.reorder(outer, tile, step, row)
    sch.compute_at(sch.cache_read("C", 0, "local"), tile)
    sch.reverse_compute_at(sch.cache_write("C", "C", "local"), tile)
    sch.compute_at("B", tile)
    sch.reverse_compute_at("D", tile)
    assert_same_meaning(running_sums, sch.mod)
