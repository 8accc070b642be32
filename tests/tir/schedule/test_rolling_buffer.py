"""rolling_buffer: rings, predicates, meaning of cascades, refusals."""

import pytest

from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.cache import rolling_buffer


@T.prim_func
def two_pools(A: T.Buffer((12, 11, 4), "int32"), C: T.Buffer((8, 7, 4), "int32")):
    B = T.alloc_buffer((10, 9, 4), "int32")
    for h, w, c, r, s in T.grid(10, 9, 4, 3, 3):
        with T.block("B"):
            vh, vw, vc, vr, vs = T.axis.remap("SSSRR", [h, w, c, r, s])
            with T.init():
                B[vh, vw, vc] = -99
            B[vh, vw, vc] = T.max(B[vh, vw, vc], A[vh + vr, vw + vs, vc])
    for h, w, c, r, s in T.grid(8, 7, 4, 3, 3):
        with T.block("C"):
            vh, vw, vc, vr, vs = T.axis.remap("SSSRR", [h, w, c, r, s])
            with T.init():
                C[vh, vw, vc] = -99
            C[vh, vw, vc] = T.max(C[vh, vw, vc], B[vh + vr, vw + vs, vc])


@T.prim_func
def line(A: T.Buffer((2, 12), "int32"), C: T.Buffer((2, 8), "int32")):
    B = T.alloc_buffer((2, 10), "int32")
    for c in range(2):
        for i in range(10):
            with T.block("B"):
                vc, vi = T.axis.remap("SS", [c, i])
                B[vc, vi] = A[vc, vi] + A[vc, vi + 2]
        for i in range(8):
            with T.block("C"):
                vc, vi = T.axis.remap("SS", [c, i])
                C[vc, vi] = B[vc, vi] * B[vc, vi + 2]


def tiled(func, sizes, at=-1, **options):
    """A schedule with C tiled and B computed at an outer loop."""
    sch = tir.Schedule(func, **options)
    loops = sch.get_loops("C")
    parts = [sch.split(loop, [None, size]) for loop, size in zip(loops, sizes, strict=False)]
    sch.reorder(*[part[0] for part in parts], *[part[1] for part in parts])
    sch.compute_at("B", parts[at][0])
    return sch


def test_a_line():
    @T.prim_func
    def expected(A: T.Buffer((2, 12), "int32"), C: T.Buffer((2, 8), "int32")):
        B = T.alloc_buffer((2, 6), "int32")
        for c, i_0 in T.grid(2, 2):
            for ax0 in range(6):
                with T.block("B"):
                    vc = T.axis.spatial(2, c)
                    vi = T.axis.opaque(10, i_0 * 4 + ax0)
                    T.where(i_0 < 1 or 2 <= ax0)
                    T.reads(A[vc, vi : vi + 3])
                    B[vc, vi % 6] = A[vc, vi] + A[vc, vi + 2]
            for i_1 in range(4):
                with T.block("C"):
                    vc = T.axis.spatial(2, c)
                    vi = T.axis.opaque(8, i_0 * 4 + i_1)
                    C[vc, vi] = B[vc, vi % 6] * B[vc, (vi + 2) % 6]

    sch = tir.Schedule(line)
    outer, _ = sch.split(sch.get_loops("C")[1], [None, 4])
    sch.compute_at("B", outer)
    block = sch.get_block("B")
    sch.rolling_buffer(block, 0)
    assert_structural_equal(sch.mod["main"].with_attr("global_symbol", "expected"), expected)
    assert sch.get(block).name_hint == "B"
    assert_same_meaning(line, sch.mod)


@pytest.mark.parametrize(
    ("sizes", "at"),
    [
        ([8, 3], -1),
        ([4, 7], 0),
        ([4, 7], 1),
        ([2, 2], -1),
        ([3, 4], -1),
        ([4, 2, 2], -1),
        ([1, 1, 1], -1),
        ([5, 7, 3], -1),
    ],
)
def test_tiles_of_a_cascade(sizes, at):
    sch = tiled(two_pools, sizes, at)
    sch.rolling_buffer("B", 0)
    script = sch.mod.script()
    assert " % " in script
    assert_same_meaning(two_pools, sch.mod)


def test_a_ring_feeds_a_ring():
    @T.prim_func
    def three(A: T.Buffer((14,), "int32"), D: T.Buffer((8,), "int32")):
        B = T.alloc_buffer((12,), "int32")
        C = T.alloc_buffer((10,), "int32")
        for i in range(12):
            with T.block("B"):
                vi = T.axis.spatial(12, i)
                B[vi] = A[vi] + A[vi + 2]
        for i in range(10):
            with T.block("C"):
                vi = T.axis.spatial(10, i)
                C[vi] = B[vi] - B[vi + 2]
        for i in range(8):
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                D[vi] = C[vi] * C[vi + 2]

    sch = tir.Schedule(three)
    outer, _ = sch.split(sch.get_loops("D")[0], [None, 2])
    sch.compute_at("C", outer)
    sch.compute_at("B", outer)
    sch.rolling_buffer("B", 0)
    sch.rolling_buffer("C", 0)
    assert [int(b.shape[0]) for b in sch.mod["main"].body.block.alloc_buffers] == [6, 4]
    assert_same_meaning(three, sch.mod)


@T.prim_func
def strided(A: T.Buffer((20,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((17,), "int32")
    for i in range(17):
        with T.block("B"):
            vi = T.axis.spatial(17, i)
            B[vi] = A[vi] + A[vi + 3]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi * 2] + B[vi * 2 + 1] + B[vi * 2 + 2]


def test_strides():
    sch = tiled(strided, [2])
    sch.rolling_buffer("B", 0)
    assert_same_meaning(strided, sch.mod)


@T.prim_func
def apart(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def swapped(A: T.Buffer((9, 10), "int32"), C: T.Buffer((8, 9), "int32")):
    B = T.alloc_buffer((9, 10), "int32")
    for i, j in T.grid(10, 9):
        with T.block("B"):
            vj, vi = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(8, 9):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 1, vj + 1]


@T.prim_func
def two_writers(A: T.Buffer((12,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((10,), "int32")
    for t in range(2):
        for i in range(6):
            with T.block("B"):
                vi = T.axis.spatial(10, t * 4 + i)
                B[vi] = A[vi]
        for i in range(6):
            with T.block("B2"):
                vi = T.axis.spatial(10, t * 4 + i)
                B[vi] = A[vi + 2]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(8, t * 4 + i)
                C[vi] = B[vi] + B[vi + 2]


def parallel(sch):
    sch.parallel(sch.get_loops("C")[0])


DEPENDENCY, MATCH, PLACE = (
    rolling_buffer.RollingDependencyError,
    rolling_buffer.RollingMatchError,
    rolling_buffer.RollingPlaceError,
)


@pytest.mark.parametrize(
    ("func", "sizes", "prepare", "block", "index", "error", "message"),
    [
        (line, None, None, "B", 0, MATCH, "overlap along no loop"),
        (apart, None, None, "B", 0, PLACE, "share no loop"),
        (apart, [4], None, "B", 0, MATCH, "overlap along no loop"),
        (strided, [2], None, "C", 0, errors.OutputBlockError, "is an output block"),
        (strided, [2], None, "B", 1, errors.BufferIndexError, "got index 1"),
        (strided, [2], None, "root", 0, errors.ScheduleFailure, "root"),
        (strided, [2], parallel, "B", 0, PLACE, "is parallel"),
        (swapped, [2, 3], None, "B", 0, MATCH, "is not axis 0 of block B"),
        (two_writers, None, None, "B", 0, DEPENDENCY, "B2 writes again what B wrote"),
    ],
)
def test_refused(func, sizes, prepare, block, index, error, message):
    sch = tir.Schedule(func) if sizes is None else tiled(func, sizes)
    if prepare is not None:
        prepare(sch)
    before = sch.mod.script()
    with pytest.raises(error, match=message) as caught:
        sch.rolling_buffer(block, index)
    assert len(str(caught.value).split("\n")) <= 10
    assert sch.mod.script() == before


def test_a_ring_stays_in_order():
    sch = tiled(strided, [2])
    sch.rolling_buffer("B", 0)
    with pytest.raises(errors.ScheduleFailure):
        sch.parallel(sch.get_loops("C")[0])
