"""read_at, write_at: the block that copies, its region, meaning, refusals."""

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning, child_names
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.cache import cache_checks, cache_stage, read_write_at

pytestmark = pytest.mark.sampled(3)


@T.prim_func
def tiled(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (32, 16))
    B = T.match_buffer(b, (16, 24))
    C = T.match_buffer(c, (32, 24))
    for io, jo, ko, ii, ji, ki in T.grid(4, 3, 2, 8, 8, 8):
        with T.block("C"):
            vi = T.axis.spatial(32, io * 8 + ii)
            vj = T.axis.spatial(24, jo * 8 + ji)
            vk = T.axis.reduce(16, ko * 8 + ki)
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def test_tiles_are_copied_by_one_block_each():
    @T.prim_func
    def expected(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (32, 16))
        B = T.match_buffer(b, (16, 24))
        C = T.match_buffer(c, (32, 24))
        A_shared = T.alloc_buffer((32, 16), scope="shared")
        C_local = T.alloc_buffer((32, 24), scope="local")
        for io, jo in T.grid(4, 3):
            for ko in range(2):
                with T.block("A_shared"):
                    v0, v1 = T.axis.remap("SS", [io, ko])
                    T.reads(A[v0 * 8 : v0 * 8 + 8, v1 * 8 : v1 * 8 + 8])
                    T.writes(A_shared[v0 * 8 : v0 * 8 + 8, v1 * 8 : v1 * 8 + 8])
                    T.block_attr({"auto_copy": 1})
                    for ax0, ax1 in T.grid(8, 8):
                        A_shared[v0 * 8 + ax0, v1 * 8 + ax1] = A[v0 * 8 + ax0, v1 * 8 + ax1]
                for ii, ji, ki in T.grid(8, 8, 8):
                    with T.block("C"):
                        vi = T.axis.spatial(32, io * 8 + ii)
                        vj = T.axis.spatial(24, jo * 8 + ji)
                        vk = T.axis.reduce(16, ko * 8 + ki)
                        T.reads(A_shared[vi, vk], B[vk, vj])
                        T.writes(C_local[vi, vj])
                        with T.init():
                            C_local[vi, vj] = T.float32(0)
                        C_local[vi, vj] = C_local[vi, vj] + A_shared[vi, vk] * B[vk, vj]
            with T.block("C_local"):
                v0, v1 = T.axis.remap("SS", [io, jo])
                T.reads(C_local[v0 * 8 : v0 * 8 + 8, v1 * 8 : v1 * 8 + 8])
                T.writes(C[v0 * 8 : v0 * 8 + 8, v1 * 8 : v1 * 8 + 8])
                T.block_attr({"auto_copy": 1})
                for ax0, ax1 in T.grid(8, 8):
                    C[v0 * 8 + ax0, v1 * 8 + ax1] = C_local[v0 * 8 + ax0, v1 * 8 + ax1]

    sch = tir.Schedule(tiled)
    block = sch.get_block("C")
    loops = sch.get_loops(block)
    made = sch.read_at(loops[2], block, 0, "shared")
    sch.write_at(loops[1], block, 0, "local")
    assert sch.get(made).name_hint == "A_shared"
    assert_structural_equal(
        sch.mod["main"].with_attr("global_symbol", ""), expected.with_attr("global_symbol", "")
    )
    assert_same_meaning(tiled, sch.mod)


@pytest.mark.parametrize("position", range(6))
@pytest.mark.parametrize("what", ["A", "B", "C"])
def test_any_loop(position, what):
    sch = tir.Schedule(tiled)
    loop = sch.get_loops("C")[position]
    if what == "C":
        sch.write_at(loop, "C", 0, "local")
    else:
        sch.read_at(loop, "C", "AB".index(what), "shared")
    assert_same_meaning(tiled, sch.mod, native=position % 2 == 0)


def test_tails_stay_inside_the_buffer():
    sch = tir.Schedule(matmul)
    i, j, _k = sch.get_loops("C")
    outer, _ = sch.split(i, [None, 5])
    sch.split(j, [None, 7])
    sch.read_at(outer, "C", 0, "shared")
    assert "if v0 * 5 + ax0 < 32" in sch.mod.script()
    assert_same_meaning(matmul, sch.mod)


def test_a_chain_in_one_loop():
    @T.prim_func
    def rows(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (6, 10))
        C = T.match_buffer(c, (6, 10))
        B = T.alloc_buffer((6, 10))
        for i in range(6):
            for j in range(10):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + T.float32(1)
            for j in range(9):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi, vj] + B[vi, vj + 1]

    sch = tir.Schedule(rows)
    loop = sch.get_loops("B")[0]
    sch.read_at(loop, "C", 0, "local")
    assert child_names(sch, loop) == ["B", "B_local", "C"]
    assert_same_meaning(rows, sch.mod)
    sch.write_at(loop, "C", 0, "shared")
    assert_same_meaning(rows, sch.mod)


def test_threads_that_share_the_memory_copy_for_all():
    @T.prim_func
    def threads(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (8, 4, 4))
        B = T.match_buffer(b, (8, 4, 4))
        for bx in T.thread_binding(8, thread="blockIdx.x"):
            for tx in T.thread_binding(4, thread="threadIdx.x"):
                for i in range(4):
                    with T.block("B"):
                        vb, vt, vi = T.axis.remap("SSS", [bx, tx, i])
                        B[vb, vt, vi] = A[vb, 3 - vt, vi]

    shared, local = tir.Schedule(threads), tir.Schedule(threads)
    for sch, scope, count in ((shared, "shared", 1), (local, "local", 2)):
        made = sch.read_at(sch.get_loops("B")[1], "B", 0, scope)
        assert len(sch.get(made).iter_vars) == count


@T.prim_func
def increment(a: T.handle) -> None:
    A = T.match_buffer(a, (8,), "int32")
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + 1


@T.prim_func
def even(a: T.handle) -> None:
    A = T.match_buffer(a, (16,), "int32")
    for i, j in T.grid(2, 4):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi * 8 + vj * 2] = 7


def first(sch, name):
    return sch.get_loops(name)[0]


@pytest.mark.parametrize(
    ("func", "call", "error", "message"),
    [
        (increment, lambda s: s.read_at(first(s, "A"), "A", 0, "local"),
         read_write_at.AccessOrderError, "A writes A in loop i after it is read"),
        (increment, lambda s: s.write_at(first(s, "A"), "A", 0, "local"),
         cache_checks.PreviousContentError, "held before"),
        (even, lambda s: s.write_at(first(s, "A"), "A", 0, "local"),
         cache_checks.PartialWriteError, "in loop i parts of A"),
        (elementwise_chain, lambda s: s.read_at(first(s, "B"), "C", 0, "local"),
         read_write_at.NotInLoopError, "block C does not stand in loop i"),
        (elementwise_chain, lambda s: s.read_at(first(s, "C"), "C", 1, "local"),
         errors.BufferIndexError, "got index 1"),
        (elementwise_chain, lambda s: s.write_at(first(s, "C"), "C", 4, "local"),
         errors.BufferIndexError, "got index 4"),
        (elementwise_chain, lambda s: s.write_at(first(s, "C"), "C", 0, "here"),
         cache_stage.StorageScopeError, "'here'"),
        (elementwise_chain, lambda s: s.read_at("C", "C", 0, "local"),
         weft.TVMError, "loop: expected a LoopRV"),
    ],
)  # fmt: skip
def test_refusals(func, call, error, message):
    sch = tir.Schedule(func)
    with pytest.raises(error, match=message) as raised:
        call(sch)
    assert len(str(raised.value).splitlines()) <= 10
    assert "_at(" not in str(sch.trace)
