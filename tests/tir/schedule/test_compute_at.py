"""compute_at and reverse_compute_at: scripts, meaning kept, refusals."""

import pytest

from tests.lib.programs import elementwise_chain, matmul, padded
from weft import tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning, child_names
from weft.tir.schedule import errors, surgery
from weft.tir.schedule.primitive.compute import compute_at as moves
from weft.tir.schedule.primitive.compute import move_place as places
from weft.tir.schedule.random_variable import LoopRV
from weft.tir.schedule.testing import assert_structural_equal_ignore_global_symbol as assert_equal
from weft.tir.schedule.tree import StmtSRef


@T.prim_func
def matmul_relu(a: T.handle, b: T.handle, d: T.handle) -> None:
    A = T.match_buffer(a, (20, 12))
    B = T.match_buffer(b, (12, 18))
    C = T.alloc_buffer((20, 18))
    D = T.match_buffer(d, (20, 18))
    for i, j, k in T.grid(20, 18, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(20, 18):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


@T.prim_func
def stencil(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (18, 6), "int32")
    B = T.alloc_buffer((18, 6), "int32")
    C = T.match_buffer(c, (16, 6), "int32")
    for i, j in T.grid(18, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 3
    for i, j in T.grid(16, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]


@T.prim_func
def two_consumers(a: T.handle, c: T.handle, d: T.handle) -> None:
    A = T.match_buffer(a, (16,), "int32")
    B = T.alloc_buffer((16,), "int32")
    C = T.match_buffer(c, (16,), "int32")
    D = T.match_buffer(d, (16,), "int32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + 1
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] * 2
        with T.block("D"):
            vi = T.axis.spatial(16, i)
            D[vi] = B[vi] * 3


def test_a_producer_moves_below_a_loop_of_its_consumer():
    @T.prim_func
    def expected(A: T.Buffer((16, 12)), D: T.Buffer((16, 12))):
        B = T.alloc_buffer((16, 12))
        C = T.alloc_buffer((16, 12))
        for i, j in T.grid(16, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i in range(16):
            for ax0 in range(12):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, ax0])
                    C[vi, vj] = B[vi, vj] + T.float32(1)
            for j in range(12):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = C[vi, vj] * C[vi, vj]

    sch = tir.Schedule(elementwise_chain)
    block = sch.get_block("C")
    sch.compute_at(block, sch.get_loops("D")[0])
    assert_equal(sch.mod["main"], expected)
    assert sch.get(block).name_hint == "C"  # its reference survives
    assert_same_meaning(elementwise_chain, sch.mod)


def test_a_reduction_is_computed_whole_at_each_tile():
    @T.prim_func
    def expected(A: T.Buffer((20, 12)), B: T.Buffer((12, 18)), D: T.Buffer((20, 18))):
        C = T.alloc_buffer((20, 18))
        for i_0, j in T.grid(3, 18):
            for ax0, ax1 in T.grid(8, 12):
                with T.block("C"):
                    vi = T.axis.spatial(20, i_0 * 8 + ax0)
                    vj, vk = T.axis.remap("SR", [j, ax1])
                    T.where(i_0 * 8 + ax0 < 20)
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
            for i_1 in range(8):
                with T.block("D"):
                    vi = T.axis.spatial(20, i_0 * 8 + i_1)
                    vj = T.axis.spatial(18, j)
                    T.where(i_0 * 8 + i_1 < 20)
                    D[vi, vj] = T.max(C[vi, vj], T.float32(0))

    sch = tir.Schedule(matmul_relu)
    i, j = sch.get_loops("D")
    outer, inner = sch.split(i, [None, 8])
    sch.reorder(outer, j, inner)
    sch.compute_at("C", j)
    assert_equal(sch.mod["main"], expected)
    assert_same_meaning(matmul_relu, sch.mod)


@pytest.mark.parametrize("factors", [(4, 3), (5, 7), (20, 18), (1, 1)])
@pytest.mark.parametrize("deeper", [0, 1])
def test_a_consumer_moves_into_tiles_of_its_producer(factors, deeper):
    sch = tir.Schedule(matmul_relu)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, factors[0]])
    j0, j1 = sch.split(j, [None, factors[1]])
    sch.reorder(i0, j0, k, i1, j1)
    sch.reverse_compute_at("D", [i0, j0][deeper])
    assert len(sch.get_child_blocks([i0, j0][deeper])) == 2
    assert_same_meaning(matmul_relu, sch.mod)


@pytest.mark.parametrize("tile", [1, 4, 5, 16])
def test_a_stencil_computes_its_halo_again(tile):
    sch = tir.Schedule(stencil)
    outer, _ = sch.split(sch.get_loops("C")[0], [None, tile])
    sch.compute_at("B", outer)
    assert sch.get(sch.get_loops("B")[1]).extent.value == tile + 2
    assert_same_meaning(stencil, sch.mod)


def test_unit_loops_are_kept_on_demand():
    for keep in (False, True):
        sch = tir.Schedule(elementwise_chain)
        sch.compute_at("C", sch.get_loops("D")[1], preserve_unit_loops=keep)
        assert len(sch.get_loops("C")) == (4 if keep else 2)
        assert_same_meaning(elementwise_chain, sch.mod)


@pytest.mark.parametrize(("index", "place"), [(-1, 0), (-2, 0), (0, 0)])
def test_the_place_before_the_first_consumer(index, place):
    sch = tir.Schedule(two_consumers)
    loop = sch.get_loops("C")[0]
    sch.compute_at("B", loop, index=index)
    assert child_names(sch, loop).index("B") == place
    assert_same_meaning(two_consumers, sch.mod)


@pytest.mark.parametrize(("index", "order"), [(-1, "CDX"), (-2, "CXD"), (1, "CXD"), (2, "CDX")])
def test_the_place_after_the_last_producer(index, order):
    @T.prim_func
    def before(a: T.handle, d: T.handle, x: T.handle) -> None:
        A = T.match_buffer(a, (8,), "int32")
        C = T.alloc_buffer((8,), "int32")
        D = T.match_buffer(d, (8,), "int32")
        X = T.match_buffer(x, (8,), "int32")
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + 1
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                D[vi] = A[vi] + 2
        for i in range(8):
            with T.block("X"):
                vi = T.axis.spatial(8, i)
                X[vi] = C[vi] * 2

    sch = tir.Schedule(before)
    loop = sch.get_loops("C")[0]
    sch.reverse_compute_at("X", loop, index=index)
    assert "".join(child_names(sch, loop)) == order
    assert_same_meaning(before, sch.mod)


def test_symbolic_extents_get_predicates():
    @T.prim_func
    def before(a: T.handle, c: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (n,))
        B = T.alloc_buffer((n,))
        C = T.match_buffer(c, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = B[vi] * T.float32(2)

    for move, target in (("compute_at", "C"), ("reverse_compute_at", "B")):
        sch = tir.Schedule(before)
        outer, _ = sch.split(sch.get_loops(target)[0], [None, 8])
        getattr(sch, move)("B" if target == "C" else "C", outer)
        assert "T.where" in sch.mod.script()
        for n in (0, 1, 7, 8, 9, 33):
            assert_same_meaning(before, sch.mod, {"n": n})


def test_computed_extents_of_fused_loops_need_no_predicate():
    """An extent of a parameter is no negative number, whatever the variables are."""

    @T.prim_func
    def before(a: T.handle, c: T.handle, n: T.int64) -> None:
        m = T.int64()
        A = T.match_buffer(a, (m, (n + T.int64(7)) // T.int64(8)))
        B = T.alloc_buffer((m, (n + T.int64(7)) // T.int64(8)))
        C = T.match_buffer(c, (m, (n + T.int64(7)) // T.int64(8)))
        for i, j in T.grid(m, (n + T.int64(7)) // T.int64(8)):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(m, (n + T.int64(7)) // T.int64(8)):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * T.float32(2)

    sch = tir.Schedule(before)
    sch.compute_at("B", sch.fuse(*sch.get_loops("C")))
    assert "T.where" not in sch.mod.script()
    for m, n in ((0, 0), (1, 1), (3, 17)):
        assert_same_meaning(before, sch.mod, {"m": m, "n": n})


def test_digits_of_a_fused_loop_need_no_predicate():
    """The axes of the consumer are in their domains; that does not follow from the loop alone."""

    @T.prim_func
    def before(a: T.handle, c: T.handle, n: T.int64) -> None:
        m = T.int64()
        A = T.match_buffer(
            a, (m, T.int64(6), (n - T.int64(1)) // T.int64(8) + T.int64(1), T.int64(4))
        )
        B = T.alloc_buffer((m, T.int64(6), (n - T.int64(1)) // T.int64(8) + T.int64(1), T.int64(4)))
        C = T.match_buffer(
            c, (m, T.int64(6), (n - T.int64(1)) // T.int64(8) + T.int64(1), T.int64(4))
        )
        for i, j, k, l in T.grid(
            m, T.int64(6), (n - T.int64(1)) // T.int64(8) + T.int64(1), T.int64(4)
        ):
            with T.block("B"):
                vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
                B[vi, vj, vk, vl] = A[vi, vj, vk, vl] + T.float32(1)
        for i, j, k, l in T.grid(
            m, T.int64(6), (n - T.int64(1)) // T.int64(8) + T.int64(1), T.int64(4)
        ):
            with T.block("C"):
                vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
                C[vi, vj, vk, vl] = B[vi, vj, vk, vl] * T.float32(2)

    sch = tir.Schedule(before)
    i, j, k, _ = sch.get_loops("C")
    tile, inner = sch.split(j, [None, 3])
    sch.reorder(i, tile, k, inner)
    place = sch.fuse(i, tile, k)
    sch.compute_at("B", place)
    assert "T.where" not in sch.mod.script()
    sch.parallel(place)
    for m, n in ((0, 0), (0, 9), (2, 0), (1, 1), (3, 17)):
        assert_same_meaning(before, sch.mod, {"m": m, "n": n})


def test_what_a_consumer_does_not_run_says_nothing_of_its_axes():
    """Its axis is in its domain where it runs; the producer must not be computed elsewhere."""

    @T.prim_func
    def before(A: T.Buffer((20,)), C: T.Buffer((20,))) -> None:
        B = T.alloc_buffer((20,))
        for i in range(20):
            with T.block("B"):
                vi = T.axis.spatial(20, i)
                B[vi] = A[vi] + T.float32(1)
        for i, j in T.grid(3, 8):
            with T.block("C"):
                vi = T.axis.spatial(20, i * 8 + j)
                T.where(i * 8 + j < 20)
                C[vi] = B[vi] * T.float32(2)

    sch = tir.Schedule(before)
    sch.compute_at("B", sch.get_loops("C")[1])
    assert "T.where" in sch.mod.script().split('T.block("C")')[0]
    assert_same_meaning(before, sch.mod)


def test_a_packed_buffer_is_solved_by_the_inverse_of_its_indices():
    @T.prim_func
    def before(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (24,), "int32")
        B = T.alloc_buffer((6, 4), "int32")
        C = T.match_buffer(c, (6,), "int32")
        for i in range(24):
            with T.block("B"):
                vi = T.axis.spatial(24, i)
                B[vi // 4, vi % 4] = A[vi] * 2
        for i, k in T.grid(6, 4):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + B[vi, vk]

    sch = tir.Schedule(before)
    sch.compute_at("B", sch.get_loops("C")[0])
    assert "vi = T.axis.spatial(24, i * 4 + ax0)" in sch.mod.script()
    assert_same_meaning(before, sch.mod)


def test_rows_that_cross_digits_are_computed_whole():
    """The remainders of 3..5 by 4 are 3, 0, 1: not between those of the ends."""

    @T.prim_func
    def before(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (3, 4), "int32")
        B = T.alloc_buffer((12,), "int32")
        C = T.match_buffer(c, (4,), "int32")
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi * 4 + vj] = A[vi, vj] * 2
        for i, k in T.grid(4, 3):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + B[vi * 3 + vk]

    sch = tir.Schedule(before)
    sch.compute_at("B", sch.get_loops("C")[0])
    assert_same_meaning(before, sch.mod)


def test_moves_fuse_with_other_primitives():
    sch = tir.Schedule(matmul_relu)
    outer, _ = sch.split(sch.get_loops("D")[0], [None, 6])
    sch.compute_at("C", outer)
    _, i, j, k = sch.get_loops("C")
    fused = sch.fuse(i, j)
    k0, k1 = sch.split(k, [None, 5])
    sch.reorder(k0, fused, k1)
    assert_same_meaning(matmul_relu, sch.mod)


@pytest.mark.no_replay("the marks come from sample_compute_location")
def test_marks_for_inlined_and_where_it_is():
    sch = tir.Schedule(elementwise_chain)
    stay, dissolve = LoopRV("root"), LoopRV("inline")
    sch._symbols.update({stay: StmtSRef.root_mark(), dissolve: StmtSRef.inline_mark()})
    before = sch.mod
    sch.compute_at("C", stay)
    sch.reverse_compute_at("C", stay)
    assert sch.mod is before
    sch.compute_at("B", dissolve)
    sch.reverse_compute_at("D", dissolve)
    assert child_names(sch) == ["C"]
    assert_same_meaning(elementwise_chain, sch.mod)


def loop_of(sch, block, number=0):
    return sch.get_loops(block)[number]


@pytest.mark.parametrize(
    ("program", "call", "error", "message"),
    [
        (
            elementwise_chain,
            lambda s: s.compute_at("D", loop_of(s, "B")),
            errors.OutputBlockError,
            "D is an output block",
        ),
        (
            elementwise_chain,
            lambda s: s.compute_at("B", loop_of(s, "B")),
            places.NotInSameScopeError,
            "loop i is an ancestor of block B",
        ),
        (
            elementwise_chain,
            lambda s: s.compute_at("B", loop_of(s, "D")),
            places.RequiredBlocksError,
            "requires all the consumers of block B below loop i; not there: C",
        ),
        (
            elementwise_chain,
            lambda s: s.reverse_compute_at("D", loop_of(s, "B")),
            places.RequiredBlocksError,
            "requires all the producers of block D below loop i; not there: C",
        ),
        (
            elementwise_chain,
            lambda s: s.compute_at("C", loop_of(s, "D"), index=1),
            places.InsertionPointError,
            "index 1 .* 0 to 0 are",
        ),
        (
            elementwise_chain,
            lambda s: s.reverse_compute_at("B", loop_of(s, "D")),
            places.InsertionPointError,
            "C, a consumer of block B, is before loop i",
        ),
        (
            stencil,
            lambda s: s.reverse_compute_at("C", loop_of(s, "B")),
            moves.DomainUnsolvedError,
            "from index vi:vi \\+ 2 \\+ 1 of block C",
        ),
        (
            matmul_relu,
            lambda s: s.compute_at("root", loop_of(s, "D")),
            errors.RootBlockError,
            "block root is the root block",
        ),
        (
            matmul,
            lambda s: s.compute_at("C", None),
            Exception,
            "loop: expected a LoopRV",
        ),
    ],
)
def test_refusals(program, call, error, message):
    sch = tir.Schedule(program)
    text = sch.mod.script()
    with pytest.raises(error, match=message) as raised:
        call(sch)
    assert len(str(raised.value).splitlines()) <= 10
    assert sch.mod.script() == text


@T.prim_func
def outer_product(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (6,), "int32")
    X = T.alloc_buffer((6,), "int32")
    Y = T.alloc_buffer((6,), "int32")
    C = T.match_buffer(c, (6, 6), "int32")
    for i in range(6):
        with T.block("X"):
            vi = T.axis.spatial(6, i)
            X[vi] = A[vi] + 1
        with T.block("Y"):
            vi = T.axis.spatial(6, i)
            Y[vi] = A[vi] + 2
    for i, j in T.grid(6, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = X[vi] * Y[vj]


@T.prim_func
def partly_used(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (8,), "int32")
    B = T.alloc_buffer((8,), "int32")
    C = T.match_buffer(c, (8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.where(i % 3 == 1)
            C[vi] = B[vi]


@T.prim_func
def added_twice(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 6), "int32")
    B = T.alloc_buffer((4,), "int32")
    C = T.match_buffer(c, (4,), "int32")
    for i, k, _again in T.grid(4, 6, 2):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi]


@T.prim_func
def sums_in_parts(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 6), "int32")
    B = T.alloc_buffer((4,), "int32")
    C = T.match_buffer(c, (6, 4), "int32")
    for k in range(6):
        for i in range(4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
        for i in range(4):
            with T.block("C"):
                vk, vi = T.axis.remap("SS", [k, i])
                C[vk, vi] = B[vi]


@T.prim_func(check_well_formed=False)
def uses_its_loop(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (6,), "int32")
    B = T.alloc_buffer((6,), "int32")
    C = T.match_buffer(c, (6,), "int32")
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = A[vi] + i
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi]


@pytest.mark.parametrize(
    ("program", "call", "error", "message"),
    [
        (
            padded,
            lambda s: s.reverse_compute_at("C", loop_of(s, "B")),
            moves.LostInstancesError,
            "may read B at vi - 1, outside of 6",
        ),
        (
            outer_product,
            lambda s: s.reverse_compute_at("C", loop_of(s, "X")),
            moves.DomainUnsolvedError,
            "axis vj of block C does not index X",
        ),
        (
            partly_used,
            lambda s: s.reverse_compute_at("C", loop_of(s, "B")),
            moves.LostInstancesError,
            "its axes are i where i % 3 == 1",
        ),
        (
            added_twice,
            lambda s: s.compute_at("B", loop_of(s, "C")),
            moves.PartialReductionError,
            "block B may add terms of its sums several times",
        ),
        (
            sums_in_parts,
            lambda s: s.compute_at("B", loop_of(s, "C", 1)),
            moves.PartialReductionError,
            "axis vk of block B is k",
        ),
        (
            uses_its_loop,
            lambda s: s.compute_at("B", loop_of(s, "C")),
            surgery.OuterVariableError,
            "block B uses i of the loop around it directly",
        ),
    ],
)
def test_moves_that_would_change_the_result(program, call, error, message):
    """Each of these gave another result when it was let through."""
    sch = tir.Schedule(program)
    with pytest.raises(errors.ScheduleFailure, match=message) as raised:
        call(sch)
    assert type(raised.value) is error
    assert len(str(raised.value).splitlines()) <= 10
