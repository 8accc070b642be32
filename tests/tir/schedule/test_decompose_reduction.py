"""decompose_reduction: the blocks it makes, where it stands, what it refuses."""

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.reduction import decompose_reduction as family


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_at_every_loop_outside_of_the_reduction(depth):
    sch = tir.Schedule(matmul)
    loops = sch.get_loops("C")
    init = sch.decompose_reduction("C", loops[depth])
    assert sch.get(init).name_hint == "C_init"
    assert len(sch.get_loops(init)) == 2
    assert_same_meaning(matmul, sch.mod)


def test_the_script_of_a_tiled_product():
    @T.prim_func
    def expected(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (32, 20))
        B = T.match_buffer(b, (20, 24))
        C = T.match_buffer(c, (32, 24))
        for i, j_0 in T.grid(32, 6):
            for j_1_init in range(4):
                with T.block("C_init"):
                    vi = T.axis.spatial(32, i)
                    vj = T.axis.spatial(24, j_0 * 4 + j_1_init)
                    T.reads()
                    T.writes(C[vi, vj])
                    C[vi, vj] = T.float32(0)
            for k, j_1 in T.grid(20, 4):
                with T.block("C_update"):
                    vi = T.axis.spatial(32, i)
                    vj = T.axis.spatial(24, j_0 * 4 + j_1)
                    vk = T.axis.reduce(20, k)
                    T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    _, j, k = sch.get_loops(block)
    _, j1 = sch.split(j, [None, 4])
    sch.reorder(k, j1)
    sch.decompose_reduction(block, k)
    assert sch.get(block).name_hint == "C_update"
    tir.schedule.testing.assert_structural_equal_ignore_global_symbol(expected, sch.mod["main"])


def test_tails_keep_the_conditions_of_spatial_loops_only():
    sch = tir.Schedule(matmul)
    i, _, k = sch.get_loops("C")
    sch.split(i, [None, 5])
    k0, _ = sch.split(k, [None, 7])
    init = sch.decompose_reduction("C", k0)
    assert sch.mod.script().count("T.where") == 2
    assert len(sch.get_loops(init)) == 3
    assert_same_meaning(matmul, sch.mod)


def test_the_update_may_be_scheduled_on():
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    sch.parallel(i)
    init = sch.decompose_reduction(block, j)
    sch.vectorize(sch.get_loops(init)[-1])
    sch.reorder(k, j)
    assert_same_meaning(matmul, sch.mod)


def test_a_reduction_fused_with_a_spatial_loop():
    sch = tir.Schedule(matmul)
    _, j, k = sch.get_loops("C")
    fused = sch.fuse(j, k)
    sch.decompose_reduction("C", fused)
    assert_same_meaning(matmul, sch.mod)


@pytest.mark.parametrize("sizes", [{"n": 1, "m": 1}, {"n": 7, "m": 3}, {"n": 0, "m": 4}])
def test_symbolic_rows(sizes):
    @T.prim_func
    def rows(a: T.handle, b: T.handle, n: T.int32, m: T.int32) -> None:
        A = T.match_buffer(a, (n, m))
        B = T.match_buffer(b, (n,))
        for i, k in T.grid(n, m):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(1)
                B[vi] = B[vi] + A[vi, vk]

    sch = tir.Schedule(rows)
    sch.decompose_reduction("B", sch.get_loops("B")[1])
    assert_same_meaning(rows, sch.mod, sizes)


def test_refusals():
    sch = tir.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    with pytest.raises(
        family.LoopHeightError, match="loop k runs the reduction axis vk and is out"
    ):
        sch.decompose_reduction("C", i)
    chain = tir.Schedule(elementwise_chain)
    with pytest.raises(
        errors.NotReductionBlockError, match="block C is no reduction block: it has"
    ):
        chain.decompose_reduction("C", chain.get_loops("C")[0])
    with pytest.raises(family.LoopPositionError, match="loop i is not around block C"):
        chain.decompose_reduction("C", chain.get_loops("B")[0])
    with pytest.raises(weft.TVMError, match="loop: expected a LoopRV, got int 0"):
        chain.decompose_reduction("C", 0)


def test_a_condition_over_both_kinds_of_axes_is_refused():
    @T.prim_func
    def triangle(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (8, 8))
        B = T.match_buffer(b, (8,))
        for i, k in T.grid(8, 8):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(i + k < 9)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    sch = tir.Schedule(triangle, enable_check=False)
    with pytest.raises(family.InitPredicateError, match="runs where i \\+ k < 9"):
        sch.decompose_reduction("B", sch.get_loops("B")[1])


def test_a_condition_on_the_reduction_and_a_symbolic_extent_is_dropped():
    @T.prim_func
    def tiles(a: T.handle, b: T.handle) -> None:
        n = T.int32()
        A = T.match_buffer(a, (8, n))
        B = T.match_buffer(b, (8,))
        for i, k_0, k_1 in T.grid(8, (n + 3) // 4, 4):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(n, k_0 * 4 + k_1)
                T.where(k_0 * 4 + k_1 < n)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

    sch = tir.Schedule(tiles)
    init = sch.decompose_reduction("B", sch.get_loops("B")[1])
    assert "T.where" not in sch.mod["main"].script().split("B_update")[0]
    assert len(sch.get_loops(init)) == 1


def test_a_loop_that_repeats_the_reduction_is_refused():
    @T.prim_func
    def repeated(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (8,))
        C = T.match_buffer(c, (4,))
        for i, _t, k in T.grid(4, 3, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vk]

    sch = tir.Schedule(repeated)
    _, t, k = sch.get_loops("C")
    with pytest.raises(family.RepeatedBlockError, match="loop _t repeats block C, whose"):
        sch.decompose_reduction("C", t)
    sch.decompose_reduction("C", k)
    assert_same_meaning(repeated, sch.mod)


def test_a_part_that_does_not_start_the_sum_is_refused():
    @T.prim_func
    def rest(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4, 20))
        C = T.match_buffer(c, (4,))
        for i in range(4):
            for k in range(8, 20):
                with T.block("C"):
                    vi = T.axis.spatial(4, i)
                    vk = T.axis.reduce(20, k)
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]

    sch = tir.Schedule(rest)
    message = "starts axis vk at 8, its domain starts at 0"
    with pytest.raises(weft.tir.ScheduleError, match=message):
        sch.decompose_reduction("C", sch.get_loops("C")[1])
