"""reindex, reindex_cache_read, reindex_cache_write: layouts, predicates, meaning, refusals."""

import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning, child_names
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.cache import cache_checks, cache_stage, reindex, reindex_cache

pytestmark = pytest.mark.sampled(3)


def unnamed(func):
    return func.with_attr("global_symbol", "")


# ---- reindex


def test_a_read_is_laid_out_by_the_axes_of_the_block():
    @T.prim_func
    def expected(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (32, 20))
        B = T.match_buffer(b, (20, 24))
        C = T.match_buffer(c, (32, 24))
        B_reindex = T.alloc_buffer((24, 20))
        for ax0, ax1 in T.grid(24, 20):
            with T.block("B_reindex_reindex"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                B_reindex[v0, v1] = B[v1, v0]
        for i, j, k in T.grid(32, 24, 20):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B_reindex[vj, vk]

    sch = tir.Schedule(matmul)
    made = sch.reindex("C", ("read", 1))
    assert sch.get(made).name_hint == "B_reindex_reindex"
    assert_structural_equal(unnamed(sch.mod["main"]), unnamed(expected))
    assert_same_meaning(matmul, sch.mod)


def test_a_write_is_copied_back_after_the_loops():
    sch = tir.Schedule(matmul)
    sch.reindex("C", "C")
    assert child_names(sch) == ["C", "C_reindex"]
    assert 'buffer=("write", 0)' in str(sch.trace)
    assert_same_meaning(matmul, sch.mod)


@T.prim_func
def convolution(x: T.handle, w: T.handle, y: T.handle) -> None:
    X = T.match_buffer(x, (12, 3))
    W = T.match_buffer(w, (3, 3, 4))
    Y = T.match_buffer(y, (10, 4))
    for i, o, r, c in T.grid(10, 4, 3, 3):
        with T.block("Y"):
            vi, vo, vr, vc = T.axis.remap("SSRR", [i, o, r, c])
            with T.init():
                Y[vi, vo] = T.float32(0)
            Y[vi, vo] = Y[vi, vo] + X[vi + vr, vc] * W[vr, vc, vo // 4 + vo]


@pytest.mark.parametrize("buffer", ["X", "W", "Y", ("read", 0), ("write", 0)])
def test_convolution(buffer):
    sch = tir.Schedule(convolution)
    i, o, r, _ = sch.get_loops("Y")
    sch.split(i, [None, 4])
    sch.split(o, [2, 2])
    sch.split(r, [None, 2])
    made = sch.reindex("Y", buffer)
    assert len(sch.get_loops(made)) == {"X": 3, "W": 3, "Y": 2}.get(
        buffer, len(sch.get_loops(made))
    )
    assert_same_meaning(convolution, sch.mod)


@T.prim_func
def shifted(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (10,))
    B = T.match_buffer(b, (12,))
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = T.if_then_else(1 <= vi and vi < 11, A[vi - 1], T.float32(0))


def test_elements_outside_of_the_buffer_are_not_copied():
    sch = tir.Schedule(shifted)
    made = sch.reindex("B", "A")
    assert "T.where(0 <= ax0 - 1 and ax0 - 1 < 10)" in sch.mod.script()
    assert len(sch.get_loops(made)) == 1
    assert_same_meaning(shifted, sch.mod)
    mapped = tir.Schedule(shifted)
    mapped.reindex_cache_read("B", 0, "shared", lambda i: i)
    assert "T.where(0 <= i - 1 and i - 1 < 10)" in mapped.mod.script()
    assert_same_meaning(shifted, mapped.mod)


def test_indices_that_are_loaded_are_declared():
    @T.prim_func
    def gather(a: T.handle, x: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (10,))
        X = T.match_buffer(x, (6,), "int32")
        B = T.match_buffer(b, (6,))
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                T.reads(A[T.max(X[vi], 0)], X[vi])
                T.writes(B[vi])
                B[vi] = A[T.max(X[vi], 0)]

    sch = tir.Schedule(gather)
    made = sch.reindex("B", ("read", 0))
    assert [region.buffer.name for region in sch.get(made).reads] == ["A", "X"]
    assert_same_meaning(gather, sch.mod)


@T.prim_func
def symbolic(a: T.handle, b: T.handle, n: T.int64) -> None:
    A = T.match_buffer(a, (n, T.int64(4)))
    B = T.match_buffer(b, (T.int64(4), n))
    for i, j in T.grid(T.int64(4), n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] + T.float32(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.reindex("B", "A"),
        lambda s: s.reindex("B", "B"),
        lambda s: s.reindex_cache_read("B", 0, "shared", lambda i, j: (j, i // 2, i % 2)),
        lambda s: s.reindex_cache_write("B", 0, "local", lambda i, j: (j, i)),
    ],
)
def test_symbolic_shapes(call):
    sch = tir.Schedule(symbolic)
    made = call(sch)
    assert {str(sch.get(loop).loop_var.dtype) for loop in sch.get_loops(made)} == {"int64"}
    for n in (0, 1, 5):
        assert_same_meaning(symbolic, sch.mod, {"n": n})


# ---- reindex_cache_read, reindex_cache_write


def test_a_read_cache_in_the_layout_of_a_map():
    @T.prim_func
    def expected(a: T.handle, d: T.handle) -> None:
        A = T.match_buffer(a, (16, 12))
        B = T.alloc_buffer((16, 12))
        C = T.alloc_buffer((16, 12))
        D = T.match_buffer(d, (16, 12))
        B_shared = T.alloc_buffer((12, 8, 2), scope="shared")
        for i, j in T.grid(16, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(16, 12):
            with T.block("B_shared"):
                vi, vj = T.axis.remap("SS", [i, j])
                B_shared[vj, vi // 2, vi % 2] = B[vi, vj]
        for i, j in T.grid(16, 12):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B_shared[vj, vi // 2, vi % 2] + T.float32(1)
        for i, j in T.grid(16, 12):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] * C[vi, vj]

    sch = tir.Schedule(elementwise_chain)
    sch.reindex_cache_read("C", 0, "shared", lambda i, j: (j, i // 2, i % 2))
    assert_structural_equal(unnamed(sch.mod["main"]), unnamed(expected))
    assert_same_meaning(elementwise_chain, sch.mod)


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.reindex_cache_read("C", 0, "shared", lambda i, j, k: (k, i)),
        lambda s: s.reindex_cache_read("C", 1, "shared", lambda i, j, k: k * 24 + j),
        lambda s: s.reindex_cache_write("C", 0, "local", lambda i, j, k: (j, i)),
        lambda s: s.reindex_cache_write("C", 0, "local", lambda i, j, k: (i // 5, j, i % 5)),
    ],
)
def test_tails_of_loops(call):
    sch = tir.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    sch.split(i, [None, 5])
    sch.split(j, [None, 7])
    sch.split(k, [3, None])
    call(sch)
    assert_same_meaning(matmul, sch.mod)


def test_the_reader_before_the_writer_gets_the_old_values():
    @T.prim_func
    def turn(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (9,), "int32")
        B = T.match_buffer(b, (9,), "int32")
        for i in range(9):
            with T.block("B"):
                vi = T.axis.spatial(9, i)
                B[vi] = A[8 - vi]
        for i in range(9):
            with T.block("A"):
                vi = T.axis.spatial(9, i)
                A[vi] = B[vi] + 1

    sch = tir.Schedule(turn)
    with pytest.raises(errors.NotStagePipelineError, match="A writes what B read"):
        sch.reindex_cache_read("B", 0, "shared", lambda i: 8 - i)


def test_one_map_for_a_window():
    sch = tir.Schedule(convolution)
    sch.reindex_cache_read("Y", 0, "shared", lambda i, o, r, c: (c, i + r))
    assert_same_meaning(convolution, sch.mod)


# ---- refusals


@T.prim_func
def two_places(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8, 8))
    B = T.match_buffer(b, (8, 8))
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + A[vj, vi]


@T.prim_func
def halves(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8,))
    B = T.match_buffer(b, (8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.opaque(8, i)
            B[vi // 2] = A[vi]


@T.prim_func
def some(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8,))
    B = T.match_buffer(b, (8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(B[vi])
            if A[vi] > T.float32(0):
                B[vi] = A[vi]


@T.prim_func
def not_all(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8,))
    B = T.match_buffer(b, (8,))
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


@T.prim_func
def shared_loop(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (8,))
    C = T.match_buffer(c, (8,))
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def inplace(a: T.handle) -> None:
    A = T.match_buffer(a, (8,))
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + T.float32(1)


@T.prim_func
def blocks_inside(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8,))
    B = T.match_buffer(b, (8,))
    for i in range(4):
        with T.block("outer"):
            vo = T.axis.spatial(4, i)
            for j in range(2):
                with T.block("B"):
                    vi = T.axis.spatial(2, j)
                    B[vo * 2 + vi] = A[vo * 2 + vi]


@T.prim_func
def loop_inside(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (8, 4))
    B = T.match_buffer(b, (8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.float32(0)
            for k in range(4):
                B[vi] = B[vi] + A[vi, k]


@pytest.mark.parametrize(
    ("func", "call", "error", "message"),
    [
        (two_places, lambda s: s.reindex("B", "A"), reindex.AccessPatternError,
         r"\[vi, vj\] and \[vj, vi\]"),
        (loop_inside, lambda s: s.reindex("B", "A"), reindex.AccessPatternError, "that use k"),
        (halves, lambda s: s.reindex("B", "B"), reindex.NotInjectiveError, r"twice: \[vi // 2\]"),
        (some, lambda s: s.reindex("B", "B"), cache_checks.PartialWriteError, "without writing"),
        (not_all, lambda s: s.reindex("B", "B"), cache_checks.PartialWriteError, "not run for all"),
        (shared_loop, lambda s: s.reindex("C", "B"), reindex.LoopChainError, "not all that loop i"),
        (inplace, lambda s: s.reindex("A", ("read", 0)), reindex.AccessPatternError,
         "reads and writes A"),
        (inplace, lambda s: s.reindex("A", "A"), cache_checks.PreviousContentError, "held before"),
        (blocks_inside, lambda s: s.reindex("outer", "A"), reindex.NotLeafBlockError, "inside"),
        (matmul, lambda s: s.reindex("C", ("read", 5)), errors.BufferIndexError, "got index 5"),
        (matmul, lambda s: s.reindex("C", ("both", 0)), weft.TVMError, r"\('read', i\)"),
        (matmul, lambda s: s.reindex("C", 0), weft.TVMError, "a name, a Buffer or a pair"),
        (matmul, lambda s: s.reindex("C", "Z"), weft.TVMError, "no buffer Z; its .* A, B, C"),
        (matmul, lambda s: s.reindex_cache_read("C", 0, "shared", lambda i, j, k: (i, j)),
         reindex_cache.AxisMismatchError, "axis vj .* used in .*vi, vj.* not in .*vi, vk"),
        (matmul, lambda s: s.reindex_cache_read("C", 0, "shared", lambda i, j, k: (i + k)),
         reindex.NotInjectiveError, r"two elements at one place: \[vi \+ vk\]"),
        (matmul, lambda s: s.reindex_cache_read("C", 0, "shared", lambda i, j: (i, j)),
         weft.TVMError, "2"),
        (matmul, lambda s: s.reindex_cache_write("C", 0, "gpu", lambda i, j, k: (i, j)),
         cache_stage.StorageScopeError, "'gpu'"),
        (matmul, lambda s: s.reindex_cache_write("C", 0, "local", lambda i, j, k: (i, k)),
         reindex_cache.AxisMismatchError, "axis vj"),
        (matmul, lambda s: s.reindex_cache_write("C", 3, "local", lambda i, j, k: (i, k)),
         errors.BufferIndexError, "got index 3"),
        (inplace, lambda s: s.reindex_cache_write("A", 0, "local", lambda i: i),
         cache_checks.PreviousContentError, "held before"),
        (inplace, lambda s: s.reindex_cache_read("A", 0, "local", lambda i: i),
         reindex.AccessPatternError, "also writes A"),
        (some, lambda s: s.reindex_cache_write("B", 0, "local", lambda i: i),
         cache_checks.PartialWriteError, "may leave parts of B"),
        (blocks_inside, lambda s: s.reindex_cache_read("outer", 0, "local", lambda i: i),
         reindex.AccessPatternError, "more than one element"),
    ],
)  # fmt: skip
def test_refusals(func, call, error, message):
    sch = tir.Schedule(func)
    with pytest.raises(error, match=message) as raised:
        call(sch)
    assert len(str(raised.value).splitlines()) <= 10
    assert "reindex" not in str(sch.trace)
