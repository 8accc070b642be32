"""Region cover: what producers write before, together, and as threads that share memory."""

import pytest

from tests.lib.programs import matmul
from weft import tir
from weft.script import tir as T
from weft.support.errors import InternalError
from weft.tir.schedule import flags, region_cover, tree
from weft.tir.stmt_functor import renew_defs


def covered(func, name="C"):
    sch = tir.Schedule(func)
    sref = sch.get_sref(sch.get_block(name))
    return region_cover.is_region_cover(sch.state, sref, tree.scope_of(sref))


def through(scope, tag):
    """Thread i writes a row of B and reads a column of it."""

    @T.prim_func
    def func(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")) -> None:
        B = T.alloc_buffer((8, 8), scope=scope)
        for i in T.thread_binding(8, thread=tag):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vj, vi] = B[vj, vi] + T.float32(1)

    return func


@pytest.mark.parametrize(
    ("scope", "tag", "expected"),
    [
        ("shared", "threadIdx.x", True),
        ("shared", "threadIdx.y", True),
        ("shared", "vthread.x", True),
        ("shared.dyn", "threadIdx.z", True),
        ("shared", "blockIdx.x", False),
        ("warp", "threadIdx.x", True),
        ("warp", "threadIdx.y", False),
        ("local", "threadIdx.x", False),
        ("global", "threadIdx.x", False),
    ],
)
def test_threads_that_share_memory(scope, tag, expected):
    assert covered(through(scope, tag)) is expected


@pytest.mark.no_replay("bind is not checked: the serial loop reads what is not written yet")
def test_binding_a_loop_changes_the_cover():
    @T.prim_func
    def func(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")) -> None:
        B = T.alloc_buffer((8, 8), scope="shared")
        for i in range(8):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vj, vi] = B[vj, vi] + T.float32(1)

    sch = tir.Schedule(func, enable_check=False)
    sref = sch.get_sref(sch.get_block("C"))
    assert not region_cover.is_region_cover(sch.state, sref, tree.scope_of(sref))
    sch.bind(sch.get_loops("C")[0], "threadIdx.x")
    assert region_cover.is_region_cover(sch.state, sref, tree.scope_of(sref))


def parts(second, rows=8):
    """Rows 0 to 4 are written by one block, ``rows`` from ``second`` on by another."""

    @T.prim_func
    def func(C: T.Buffer((16, 4), "float32")) -> None:
        B = T.alloc_buffer((16, 4))
        for i, j in T.grid(rows, 4):
            with T.block("B1"):
                vi = T.axis.spatial(16, i + second)
                vj = T.axis.spatial(4, j)
                B[vi, vj] = T.float32(1)
        for i, j in T.grid(5, 4):
            with T.block("B0"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.float32(0)
        for i, j in T.grid(12, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]

    return func


@pytest.mark.parametrize(
    ("second", "rows", "expected"),
    [(5, 8, True), (4, 8, True), (5, 7, True), (6, 8, False), (5, 6, False), (2, 9, False)],
)
def test_producers_that_cover_together(second, rows, expected):
    assert covered(parts(second, rows)) is expected


def test_a_column_is_missing():
    @T.prim_func
    def func(C: T.Buffer((16, 4), "float32")) -> None:
        B = T.alloc_buffer((16, 4))
        for i, j in T.grid(8, 4):
            with T.block("B0"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.float32(0)
        for i, j in T.grid(8, 3):
            with T.block("B1"):
                vi = T.axis.spatial(16, i + 8)
                vj = T.axis.spatial(4, j)
                B[vi, vj] = T.float32(1)
        for i, j in T.grid(16, 4):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]

    assert not covered(func)


def test_a_block_without_blocks_is_a_stage_pipeline():
    sch = tir.Schedule(parts(5))
    assert sch.state._get_cached_flags(sch.get_sref(sch.get_block("C"))).stage_pipeline


@pytest.mark.no_replay
def test_debug_mask_finds_a_fact_that_is_out_of_date():
    sch = tir.Schedule(renew_defs(matmul))  # nodes of its own: other tests keep true facts
    root = sch.get(sch.get_block("root"))
    root._cache["schedule.pipeline"] = flags.Violation(2, "made up")
    for _ in range(2):  # the second time the copy's facts are known
        with pytest.raises(InternalError, match="block root has CachedFlags.*computed anew"):
            sch.state.verify_flags()


@pytest.mark.no_replay
def test_debug_mask_finds_a_fact_that_an_annotation_broke():
    sch = tir.Schedule(renew_defs(matmul))
    sch.state.verify_flags()
    sch.state.debug_mask = 0
    sch.annotate(sch.get_loops("C")[0], "told", 1)
    sch.get(sch.get_block("root"))._cache = {"schedule.pipeline": flags.Violation(2, "made up")}
    with pytest.raises(InternalError, match="block root has CachedFlags.*computed anew"):
        sch.state.verify_flags()


def reading_all(writes, shorter=0):
    """A producer over axes of symbolic extents, and a block that reads the whole buffer."""

    @T.prim_func
    def func(a: T.handle, c: T.handle, n: T.int64) -> None:
        A = T.match_buffer(a, (n, n))
        C = T.match_buffer(c, (n, n))
        B = T.alloc_buffer((n, n))
        for i, j in T.grid(n, n - shorter):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, writes(vi, vj)] = A[vi, vj]
        for i, j in T.grid(n, n):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vj, n - 1 - vi]

    return func


@pytest.mark.parametrize(
    ("func", "expected"),
    [
        (reading_all(lambda i, j: j), True),
        (reading_all(lambda i, j: i), False),
        (reading_all(lambda i, j: j, shorter=1), False),
    ],
    ids=["all", "diagonal", "shorter"],
)
def test_producers_of_symbolic_extents(func, expected):
    assert covered(func) is expected


def reading_by_number(missing):
    """A producer of groups of six tiles of an image; a block that reads the tile of each pixel."""

    @T.prim_func
    def func(c: T.handle) -> None:
        h, w = T.int64(is_size_var=True), T.int64(is_size_var=True)
        C = T.match_buffer(c, (h, w))
        B = T.alloc_buffer((((h + 3) // 4 * ((w + 3) // 4) + 5) // 6, 6, 1))
        for i, j in T.grid(((h + 3) // 4 * ((w + 3) // 4) + 5) // 6 - missing, 6):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj, 0] = T.float32(1)
        for i, j in T.grid(h, w):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[
                    (vi // 4 * ((w + 3) // 4) + vj // 4) // 6,
                    (vi // 4 * ((w + 3) // 4) + vj // 4) % 6,
                    0,
                ]

    return func


@pytest.mark.parametrize(("missing", "expected"), [(0, True), (1, False)])
def test_the_last_of_numbered_tiles_is_in_the_last_group(missing, expected):
    assert covered(reading_by_number(missing)) is expected


def test_a_producer_of_symbolic_extents_with_a_guard():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), c: T.handle, n: T.int64) -> None:
        C = T.match_buffer(c, (n,))
        B = T.alloc_buffer((n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                T.where(i < 8)
                B[vi] = A[vi]
        for i in range(n):
            with T.block("C"):
                vi = T.axis.spatial(n, i)
                C[vi] = B[vi]

    assert not covered(func)
