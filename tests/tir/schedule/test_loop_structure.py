"""loop_partition, add_unit_loop and reorder_block_iter_var."""

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul, symbolic_fill
from weft import tir
from weft.arith import Analyzer
from weft.ir import assert_structural_equal
from weft.ir.expr import IntImm
from weft.ir.functor import substitute
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.loop import loop_structure, loops

# ---- loop_partition


def extents(sch, parts):
    return [(sch.get(part).min.value, sch.get(part).extent.value) for part in parts]


def test_partition():
    @T.prim_func
    def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")) -> None:
        for i, j in T.grid(16, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @T.prim_func
    def expected(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")) -> None:
        with T.block("root"):
            T.reads()
            T.writes()
            with T.block("B_i_common"):
                T.reads(A[0:16, 0:8])
                T.writes(B[0:16, 0:8])
                with T.block("B_i0_partition"):
                    T.reads(A[0:3, 0:8])
                    T.writes(B[0:3, 0:8])
                    for i0, j in T.grid(3, 8):
                        with T.block("B_i0"):
                            vi, vj = T.axis.remap("SS", [i0, j])
                            B[vi, vj] = A[vi, vj] * T.float32(2)
                with T.block("B_i1_partition"):
                    T.reads(A[3:16, 0:8])
                    T.writes(B[3:16, 0:8])
                    for i1 in range(3, 16):
                        for j in range(8):
                            with T.block("B_i1"):
                                vi, vj = T.axis.remap("SS", [i1, j])
                                B[vi, vj] = A[vi, vj] * T.float32(2)

    sch = tir.Schedule(before)
    parts = sch.loop_partition(sch.get_loops("B")[0], [3])
    assert_structural_equal(sch.mod["main"].body, expected.body)
    assert extents(sch, parts) == [(0, 3), (3, 13)]
    assert_same_meaning(before, sch.mod)


@pytest.mark.parametrize(
    ("factors", "made"),
    [
        ([2, 1, 4], [(0, 2), (2, 1), (3, 4), (7, 9)]),
        ([None, 4], [(0, 12), (12, 4)]),
        ([5, None, 4], [(0, 5), (5, 7), (12, 4)]),
        ([15], [(0, 15), (15, 1)]),
        ([None], [(0, 16)]),
    ],
)
def test_partition_factors(factors, made):
    sch = tir.Schedule(elementwise_chain)
    assert extents(sch, sch.loop_partition(sch.get_loops("C")[0], factors)) == made
    assert_same_meaning(elementwise_chain, sch.mod)


def test_a_loop_that_does_not_start_at_zero():
    sch = tir.Schedule(elementwise_chain)
    _, second = sch.loop_partition(sch.get_loops("C")[0], [4])
    assert extents(sch, sch.loop_partition(second, [3])) == [(4, 3), (7, 9)]
    assert [sch.get(sch.get_block(f"C_i1_i1{n}")).iter_vars[0].dom.min.value for n in (0, 1)] == [
        4,
        7,
    ]
    assert_same_meaning(elementwise_chain, sch.mod)


def test_parts_of_parts():
    sch = tir.Schedule(elementwise_chain)
    sch.loop_partition(sch.get_loops("B")[0], [2, None, 3])
    sch.loop_partition(sch.get_loops("B_i1")[1], [5])
    sch.get_block("B_i1_j0")
    assert_same_meaning(elementwise_chain, sch.mod)


def test_neighbours_see_what_parts_do():
    """The blocks around the parts declare their accesses, so the order is known to others."""
    sch = tir.Schedule(elementwise_chain)
    sch.loop_partition(sch.get_loops("C")[0], [4])
    consumers = [sch.get(item).name_hint for item in sch.get_consumers("B")]
    assert consumers == ["C_i_common"]
    assert [sch.get(item).name_hint for item in sch.get_producers("D")] == ["C_i_common"]
    sch.cache_read("D", 0, "local")
    assert_same_meaning(elementwise_chain, sch.mod)


def test_primitives_inside_of_parts():
    sch = tir.Schedule(elementwise_chain)
    parts = sch.loop_partition(sch.get_loops("D")[0], [8])
    outer, inner = sch.split(parts[0], [None, 4])
    sch.vectorize(sch.get_loops("D_i0")[2])
    sch.parallel(outer)
    sch.unroll(inner)
    assert_same_meaning(elementwise_chain, sch.mod)


def test_partition_of_a_spatial_loop_of_a_reduction():
    sch = tir.Schedule(matmul)
    sch.loop_partition(sch.get_loops("C")[1], [7])
    sch.decompose_reduction(sch.get_block("C_j1"), sch.get_loops("C_j1")[0])
    assert_same_meaning(matmul, sch.mod)


def test_partition_of_an_update():
    sch = tir.Schedule(matmul)
    i, _, k = sch.get_loops("C")
    sch.decompose_reduction("C", i)
    sch.loop_partition(k, [7, None])
    assert_same_meaning(matmul, sch.mod)


def test_partition_of_a_split_loop():
    sch = tir.Schedule(matmul)
    outer, inner = sch.split(sch.get_loops("C")[0], [None, 5])
    sch.loop_partition(inner, [2])
    sch.loop_partition(outer, [6])
    assert_same_meaning(matmul, sch.mod)


def test_a_part_that_a_short_tail_leaves_empty_declares_nothing():
    """10 elements, 8 at a time: the second half of the second turn has none, not -2."""

    @T.prim_func
    def doubled(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i in range(10):
            with T.block("B"):
                vi = T.axis.spatial(10, i)
                B[vi] = A[vi] * T.float32(2)

    sch = tir.Schedule(doubled)
    turns, inner = sch.split(sch.get_loops("B")[0], [None, 8])
    sch.loop_partition(inner, [4, None])
    turn = sch.get(turns)
    declared = {"B_i_1_common": [8, 2], "B_i_10_partition": [4, 2], "B_i_11_partition": [4, 0]}
    for name, expected in declared.items():
        block = sch.get(sch.get_block(name))
        for region in (*block.reads, *block.writes):
            extent = region.region[0].extent
            values = [substitute(extent, {turn.loop_var: IntImm("int32", n)}) for n in range(2)]
            assert [Analyzer().simplify(value).value for value in values] == expected
    assert_same_meaning(doubled, sch.mod)


def test_buffers_inside_are_doubled():
    @T.prim_func
    def func(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")) -> None:
        for i in range(8):
            with T.block("outer"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi, 0:4])
                T.writes(B[vi, 0:4])
                S = T.alloc_buffer((4,))
                for j in range(4):
                    with T.block("S"):
                        vj = T.axis.spatial(4, j)
                        S[vj] = A[vi, vj] + T.float32(1)
                for j in range(4):
                    with T.block("B"):
                        vj = T.axis.spatial(4, j)
                        B[vi, vj] = S[vj] * S[vj]

    sch = tir.Schedule(func)
    sch.loop_partition(sch.get_loops("outer")[0], [3])
    tir.analysis.verify_well_formed(sch.mod)
    assert_same_meaning(func, sch.mod)


def test_several_blocks_in_a_loop():
    sch = tir.Schedule(elementwise_chain)
    outer = sch.get_loops("C")[0]
    sch.compute_at("B", outer)
    sch.loop_partition(outer, [5])
    sch.get_block("B_i0")
    sch.get_block("C_i1")
    assert_same_meaning(elementwise_chain, sch.mod)


def test_a_symbolic_loop_is_not_partitioned():
    sch = tir.Schedule(symbolic_fill)
    with pytest.raises(loop_structure.SymbolicLoopError, match="over n, which is not constant"):
        sch.loop_partition(sch.get_loops("A")[0], [4])


def test_an_annotated_loop_is_not_partitioned():
    sch = tir.Schedule(matmul)
    loop = sch.get_loops("C")[0]
    sch.bind(loop, "threadIdx.x")
    with pytest.raises(loops.AnnotatedLoopError, match="a thread binding"):
        sch.loop_partition(loop, [4])


def test_a_reduction_is_not_partitioned():
    for split in (False, True):
        sch = tir.Schedule(matmul)
        k = sch.get_loops("C")[2]
        if split:
            _, k = sch.split(k, [4, 5])
        with pytest.raises(loop_structure.PartitionedReductionError, match="axis vk of block C"):
            sch.loop_partition(k, [3])


# ---- add_unit_loop


@pytest.mark.parametrize("place", [0, 1, 2, "C"])
def test_add_unit_loop(place):
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    given = sch.get_loops(block)
    made = sch.add_unit_loop(block if place == "C" else given[place])
    assert (sch.get(made).loop_var.name, sch.get(made).extent.value) == ("u", 1)
    names = [sch.get(loop).loop_var.name for loop in sch.get_loops(block)]
    expected = ["i", "j", "k"]
    expected.insert(3 if place == "C" else place, "u")
    assert names == expected
    assert [sch.get(loop).loop_var.name for loop in given] == ["i", "j", "k"]
    assert_same_meaning(matmul, sch.mod)


def test_a_unit_loop_around_a_block_in_a_block():
    @T.prim_func
    def before(A: T.Buffer((), "int32")) -> None:
        with T.block("root"):
            with T.block("A"):
                A[()] = 1

    @T.prim_func
    def expected(A: T.Buffer((), "int32")) -> None:
        for _u in range(1):
            with T.block("A"):
                A[()] = 1

    sch = tir.Schedule(before)
    sch.parallel(sch.add_unit_loop(sch.get_block("A")))
    again = tir.Schedule(before)
    again.add_unit_loop(again.get_block("A"))
    assert_structural_equal(again.mod["main"].body, expected.body)


def test_a_block_under_a_condition():
    @T.prim_func
    def func(A: T.Buffer((8, 4), "int32"), B: T.Buffer((8, 4), "int32")) -> None:
        for i, j in T.grid(8, 4):
            if i < 5:
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + 1

    sch = tir.Schedule(func)
    sch.add_unit_loop(sch.get_block("B"))
    sch.reorder_block_iter_var("B", [1, 0])
    assert_same_meaning(func, sch.mod)


def test_a_unit_loop_can_be_fused():
    sch = tir.Schedule(matmul)
    unit = sch.add_unit_loop(sch.get_loops("C")[0])
    sch.fuse(unit, sch.get_loops("C")[1])
    assert_same_meaning(matmul, sch.mod)


def test_no_loop_around_the_root():
    sch = tir.Schedule(matmul)
    with pytest.raises(errors.RootBlockError, match="a loop cannot stand around the root"):
        sch.add_unit_loop(sch.get_block("root"))


# ---- reorder_block_iter_var


def test_reorder_block_iter_var():
    @T.prim_func
    def expected(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (32, 20))
        B = T.match_buffer(b, (20, 24))
        C = T.match_buffer(c, (32, 24))
        for i, j, k in T.grid(32, 24, 20):
            with T.block("C"):
                vj, vk, vi = T.axis.remap("SRS", [j, k, i])
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    sch.reorder_block_iter_var(block, [1, 2, 0])
    assert_structural_equal(sch.mod["main"].body, expected.body)
    assert [axis.var.name for axis in sch.get(block).iter_vars] == ["vj", "vk", "vi"]
    assert_same_meaning(matmul, sch.mod)


def test_loops_and_blocks_survive_a_new_order():
    sch = tir.Schedule(elementwise_chain)
    sch.merge(sch.get_loops("B")[1], sch.get_loops("C")[1])
    loop = sch.get_loops("B")[0]
    sch.reorder_block_iter_var("C", (1, 0))
    sch.split(loop, [None, 4])
    assert_same_meaning(elementwise_chain, sch.mod)


def test_a_block_without_axes():
    sch = tir.Schedule(matmul)
    sch.reorder_block_iter_var("root", [])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda s, i: s.loop_partition(i, [1000, 2]),
            loop_structure.PartitionFactorError,
            "extent 32, the factors 1000, 2 add up to 1002",
        ),
        (
            lambda s, i: s.loop_partition(i, [16, 16]),
            loop_structure.PartitionFactorError,
            "add up to 32",
        ),
        (
            lambda s, i: s.loop_partition(i, [-2, None]),
            loop_structure.PartitionFactorError,
            "have -2",
        ),
        (lambda s, i: s.loop_partition(i, [0]), loop_structure.PartitionFactorError, "have 0"),
        (
            lambda s, i: s.loop_partition(i, [None, None]),
            loop_structure.PartitionFactorError,
            "None for one of them at most",
        ),
        (
            lambda s, i: s.loop_partition(i, []),
            loop_structure.PartitionFactorError,
            r"expected factors.*got \[\]",
        ),
        (lambda s, i: s.loop_partition("i", [2]), weft.TVMError, "expected a LoopRV"),
        (
            lambda s, i: s.reorder_block_iter_var("C", [0, 1]),
            loop_structure.AxisOrderError,
            r"has 3 axes, \[0, 1\] is no order of them",
        ),
        (
            lambda s, i: s.reorder_block_iter_var("C", [0, 1, 3]),
            loop_structure.AxisOrderError,
            r"\[0, 1, 3\]",
        ),
        (
            lambda s, i: s.reorder_block_iter_var("C", [0, 1, 1]),
            loop_structure.AxisOrderError,
            r"\[0, 1, 1\]",
        ),
        (
            lambda s, i: s.reorder_block_iter_var("C", [-1, 0, 1]),
            loop_structure.AxisOrderError,
            r"\[-1, 0, 1\]",
        ),
        (lambda s, i: s.add_unit_loop(3), weft.TVMError, "block_or_loop: expected a BlockRV"),
    ],
)
def test_refusals(call, error, message):
    sch = tir.Schedule(matmul)
    with pytest.raises(error, match=message) as raised:
        call(sch, sch.get_loops("C")[0])
    assert len(str(raised.value).splitlines()) <= 10
