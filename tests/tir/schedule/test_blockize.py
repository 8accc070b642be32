"""blockize: the block it makes of loops or neighbours, and what it refuses."""

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.block import block_division as family
from weft.tir.schedule.testing import assert_structural_equal_ignore_global_symbol

pytestmark = pytest.mark.sampled(3)


def tiled(sch, *tiles):
    """The loops of C split by the tiles, all outer ones first."""
    pairs = [
        sch.split(loop, [None, tile]) for loop, tile in zip(sch.get_loops("C"), tiles, strict=True)
    ]
    sch.reorder(*[outer for outer, _ in pairs], *[inner for _, inner in pairs])
    return [outer for outer, _ in pairs], [inner for _, inner in pairs]


def test_the_script_of_a_tile_of_a_product():
    @T.prim_func
    def expected(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (32, 20))
        B = T.match_buffer(b, (20, 24))
        C = T.match_buffer(c, (32, 24))
        for i_0, j_0, k_0 in T.grid(4, 3, 5):
            with T.block("C_o"):
                vi_o, vj_o, vk_o = T.axis.remap("SSR", [i_0, j_0, k_0])
                T.reads(
                    A[vi_o * 8 : vi_o * 8 + 8, vk_o * 4 : vk_o * 4 + 4],
                    B[vk_o * 4 : vk_o * 4 + 4, vj_o * 8 : vj_o * 8 + 8],
                )
                T.writes(C[vi_o * 8 : vi_o * 8 + 8, vj_o * 8 : vj_o * 8 + 8])
                with T.init():
                    for i_1, j_1 in T.grid(8, 8):
                        with T.block("C_init"):
                            vi_i_init, vj_i_init = T.axis.remap("SS", [i_1, j_1])
                            T.reads()
                            T.writes(C[vi_o * 8 + vi_i_init, vj_o * 8 + vj_i_init])
                            C[vi_o * 8 + vi_i_init, vj_o * 8 + vj_i_init] = T.float32(0)
                for i_1, j_1, k_1 in T.grid(8, 8, 4):
                    with T.block("C"):
                        vi_i, vj_i, vk_i = T.axis.remap("SSR", [i_1, j_1, k_1])
                        T.reads(
                            C[vi_o * 8 + vi_i, vj_o * 8 + vj_i],
                            A[vi_o * 8 + vi_i, vk_o * 4 + vk_i],
                            B[vk_o * 4 + vk_i, vj_o * 8 + vj_i],
                        )
                        T.writes(C[vi_o * 8 + vi_i, vj_o * 8 + vj_i])
                        C[vi_o * 8 + vi_i, vj_o * 8 + vj_i] = (
                            C[vi_o * 8 + vi_i, vj_o * 8 + vj_i]
                            + A[vi_o * 8 + vi_i, vk_o * 4 + vk_i]
                            * B[vk_o * 4 + vk_i, vj_o * 8 + vj_i]
                        )

    sch = tir.Schedule(matmul)
    inner_block = sch.get_block("C")
    _, inner = tiled(sch, 8, 8, 4)
    block = sch.blockize(inner[0])
    assert sch.get(block).name_hint == "C_o"
    assert sch.get(inner_block).name_hint == "C"
    assert sch.get(sch.get_loops(inner_block)[0]) is sch.get(inner[0])
    assert_structural_equal_ignore_global_symbol(expected, sch.mod["main"])
    assert_same_meaning(matmul, sch.mod)


@pytest.mark.parametrize("position", range(6))
def test_from_every_loop_inwards(position):
    sch = tir.Schedule(matmul)
    outer, inner = tiled(sch, 8, 8, 4)
    sch.blockize([*outer, *inner][position])
    assert_same_meaning(matmul, sch.mod, native=position == 3)


@pytest.mark.parametrize("preserve", [True, False])
def test_loops_of_one_iteration(preserve):
    sch = tir.Schedule(elementwise_chain)
    sch.split(sch.get_loops("C")[-1], [1, 12])
    sch.blockize(sch.get_loops("C")[-1], preserve_unit_iters=preserve)
    assert_same_meaning(elementwise_chain, sch.mod)


def test_tails_outside_and_inside():
    sch = tir.Schedule(elementwise_chain)
    i, j = sch.get_loops("C")
    sch.split(i, [None, 5])
    sch.blockize(j)
    sch.split(sch.get_loops("D")[1], [None, 5])
    sch.blockize(sch.get_loops("D")[1])
    assert sch.mod.script().count("T.where") == 2
    assert_same_meaning(elementwise_chain, sch.mod)


def test_a_tail_of_the_reduction_leaves_the_init():
    sch = tir.Schedule(matmul)
    sch.split(sch.get_loops("C")[2], [None, 7])
    sch.blockize(sch.get_loops("C")[2])
    assert sch.mod.script().count("T.where") == 1
    assert_same_meaning(matmul, sch.mod)


def test_values_that_are_not_affine():
    @T.prim_func
    def reverse(A: T.Buffer((8, 4), "int32"), B: T.Buffer((8, 4), "int32")):
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi = T.axis.spatial(8, 7 - i)
                vj = T.axis.spatial(4, (j * 3) % 4)
                B[vi, vj] = A[vi, vj] + 1

    sch = tir.Schedule(reverse)
    block = sch.blockize(sch.get_loops("B")[1])
    assert len(sch.get_loops(block)) == 1
    assert_same_meaning(reverse, sch.mod)


@pytest.mark.parametrize("sizes", [{"n": 1}, {"n": 7}, {"n": 32}])
def test_symbolic_extents(sizes):
    @T.prim_func
    def rows(a: T.handle, b: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (n, 16))
        B = T.match_buffer(b, (n, 16))
        for i, j in T.grid(n, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)

    sch = tir.Schedule(rows)
    _, j = sch.get_loops("B")
    _, j1 = sch.split(j, [None, 4])
    sch.blockize(j1)
    assert_same_meaning(rows, sch.mod, sizes)


@T.prim_func
def side_by_side(A: T.Buffer((16, 12), "float32"), D: T.Buffer((16, 12), "float32")):
    B = T.alloc_buffer((16, 12))
    C = T.alloc_buffer((16, 12))
    for i in range(16):
        for j in range(12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(12):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1)
        for j in range(12):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] * B[vi, vj]


@pytest.mark.parametrize("names", [("B", "C"), ("C", "B"), ("C", "D"), ("B", "C", "D"), ("C",)])
def test_neighbours(names):
    sch = tir.Schedule(side_by_side)
    given = [sch.get_block(name) for name in names]
    block = sch.blockize(given)
    assert sch.get(block).name_hint == "_".join(["outer", *sorted(names)]) + "_"
    assert [len(sch.get_loops(b)) for b in given] == [len(names) > 1] * len(names)
    assert_same_meaning(side_by_side, sch.mod)


def test_the_region_of_neighbours():
    sch = tir.Schedule(side_by_side)
    block = sch.get(sch.blockize([sch.get_block("C"), sch.get_block("D")]))
    written = [str(region).split("\n")[-1] for region in block.writes]
    assert written == ["C[vi_o, 0:12]", "D[vi_o, 0:12]"]
    assert {region.buffer.name for region in block.reads} == {"B", "C"}


def test_with_other_primitives():
    sch = tir.Schedule(matmul)
    outer, inner = tiled(sch, 8, 8, 4)
    block = sch.blockize(inner[0])
    sch.parallel(outer[0])
    sch.decompose_reduction(block, outer[2])
    sch.unroll(sch.get_loops("C")[2])
    assert_same_meaning(matmul, sch.mod)


def test_a_consumer_moves_to_the_block():
    sch = tir.Schedule(elementwise_chain)
    sch.split(sch.get_loops("B")[0], [None, 4])
    block = sch.blockize(sch.get_loops("B")[1])
    sch.reverse_compute_at("C", sch.get_loops(block)[0])
    assert_same_meaning(elementwise_chain, sch.mod)


@pytest.mark.parametrize("position", range(4))
def test_a_tail_of_one_iteration_is_kept(position):
    @T.prim_func
    def product(
        A: T.Buffer((7, 1), "int32"), B: T.Buffer((1, 5), "int32"), C: T.Buffer((7, 5), "int32")
    ):
        for i, j, k in T.grid(7, 5, 1):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    sch = tir.Schedule(product)
    sch.split(sch.get_loops("C")[2], [None, 4], preserve_unit_iters=False)
    sch.blockize(sch.get_loops("C")[position])
    assert_same_meaning(product, sch.mod)


@T.prim_func
def guarded_sum(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        for k in range(8):
            with T.block():
                T.reads(A[i, k], B[i])
                T.writes(B[i])
                T.where(k < 5)
                B[i] = B[i] + A[i, k]


@pytest.mark.parametrize("position", [0, 1])
def test_a_condition_on_loops_of_one_kind_is_kept(position):
    sch = tir.Schedule(guarded_sum)
    block = sch.get_child_blocks(sch.get_block("root"))[0]
    sch.blockize(sch.get_loops(block)[position])
    assert sch.mod.script().count("T.where(k < 5)") == 1
    assert_same_meaning(guarded_sum, sch.mod)


@pytest.mark.parametrize("position", [0, 1])
def test_an_axis_bound_to_a_loop_around_the_block_around_it(position):
    """The value of such an axis is one place of its domain, not its start."""
    sch = tir.Schedule(matmul)
    sch.loop_partition(sch.get_loops("C")[1], [1, None])
    block = sch.blockize(sch.get_loops("C_j0")[position])
    assert len(sch.get(block).iter_vars) == 3
    assert_same_meaning(matmul, sch.mod)


def test_a_partition_inside_of_a_block_with_an_init():
    sch = tir.Schedule(matmul)
    sch.blockize(sch.get_loops("C")[1])
    sch.loop_partition(sch.get_loops("C")[1], [1, None])
    sch.blockize(sch.get_loops(sch.get_block("C_k0"))[0])
    assert_same_meaning(matmul, sch.mod)


# ---- what is refused


@T.prim_func
def repeated(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
    for i, _again, k in T.grid(4, 2, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def repeated_in_one_loop(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 16):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, k % 8)
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def mixed(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi = T.axis.spatial(32, j * 8 + i)
            B[vi] = A[vi]


@T.prim_func
def guarded(A: T.Buffer((8, 4), "int32"), B: T.Buffer((8, 4), "int32")):
    for i in range(8):
        for j in range(4):
            if j < i:
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]


@T.prim_func
def from_one(A: T.Buffer((9,), "int32"), B: T.Buffer((9,), "int32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial((1, 9), i + 1)
            B[vi] = A[vi]


@T.prim_func
def moved(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    for i, j in T.grid(2, 4):
        with T.block("B"):
            vi = T.axis.spatial(16, i * 4 + j + 3)
            B[vi] = A[vi]


@T.prim_func
def triangle(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i + k < 9)
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def unlike(A: T.Buffer((8, 8), "int32"), B: T.Buffer((8, 8), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for _j in range(1):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi, 0]
        for k in range(8):
            with T.block("D"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]


def at_loop(block, position):
    return lambda sch: sch.blockize(sch.get_loops(block)[position])


def of_blocks(*names):
    return lambda sch: sch.blockize([sch.get_block(name) for name in names])


ILLEGAL = [
    ("outer after inner", mixed, at_loop("B", 1), family.SubspaceError,
     "of block B does not divide into outer and inner loops"),
    ("guarded", guarded, at_loop("B", 0), family.BlockizeNestError, "something else than loops"),
    ("from one", from_one, at_loop("B", 0), family.SubspaceError, "axis vi of block B starts at 1"),
    ("moved", moved, at_loop("B", 1), family.SubspaceError, "starts at 3, not at 0"),
    ("triangle", triangle, at_loop("B", 0), family.BlockizeInitError, "B runs where i . k < 9"),
    ("a loop more", repeated, at_loop("B", 0), family.BlockizeInitError, "again repeats block B"),
    ("iterations more", repeated_in_one_loop, at_loop("B", 0), family.BlockizeInitError,
     "block B may run an instance twice"),
    ("three blocks", side_by_side, at_loop("B", 0), family.BlockizeNestError,
     "loop i has 3 blocks .B, C, D., expected one"),
    ("a gap", side_by_side, of_blocks("B", "D"), family.BlockizeNestError,
     "blocks B, D do not stand side by side in loop i"),
    ("twice", side_by_side, of_blocks("B", "B"), family.BlockizeNestError, "do not stand side by"),
    ("the root", side_by_side, of_blocks("root"), errors.RootBlockError, "the root block cannot"),
    ("fewer axes", unlike, of_blocks("B", "C"), family.BlockizeOuterError, "the outer axes of"),
    ("a reduction", unlike, of_blocks("C", "D"), family.BlockizeInitError,
     "block D has an init and the reduction axis vk"),
    ("a number", matmul, lambda s: s.blockize(3), weft.TVMError, "expected a LoopRV or a list"),
    ("none", matmul, lambda s: s.blockize([]), weft.TVMError, "expected a LoopRV or a list"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("func", "call", "kind", "text"), [row[1:] for row in ILLEGAL], ids=[row[0] for row in ILLEGAL]
)
def test_refusals(func, call, kind, text):
    sch = tir.Schedule(func)
    before = sch.mod
    with pytest.raises(kind, match=text) as caught:
        call(sch)
    assert len(str(caught.value).splitlines()) <= 10
    weft.ir.assert_structural_equal(before, sch.mod)


@pytest.mark.parametrize("position", [0, 1])
def test_a_part_that_starts_late_keeps_its_start_or_is_refused(position):
    sch = tir.Schedule(matmul)
    sch.split(sch.get_loops("C")[0], [4, None])
    sch.loop_partition(sch.get_loops("C")[0], [1, None])
    with pytest.raises(family.SubspaceError, match="starts at 8, not at 0"):
        sch.blockize(sch.get_loops("C_i_01")[position])
    assert_same_meaning(matmul, sch.mod)


def test_a_part_that_starts_late_below_a_condition_is_refused():
    @T.prim_func
    def late(A: T.Buffer((16, 4), "int32"), B: T.Buffer((16, 4), "int32")):
        for i_0 in T.serial(1, 5):
            for i_1, j in T.grid(4, 4):
                with T.block("B"):
                    vi = T.axis.spatial(16, i_0 * 4 + i_1)
                    vj = T.axis.spatial(4, j)
                    T.where(i_0 < 4)
                    B[vi, vj] = A[vi, vj] + 1

    sch = tir.Schedule(late)
    with pytest.raises(family.SubspaceError, match="starts at 4, not at 0"):
        sch.blockize(sch.get_loops("B")[2])
