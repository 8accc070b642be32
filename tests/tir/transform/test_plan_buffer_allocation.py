"""PlanAndUpdateBufferAllocationLocation: before and after, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.script import from_source
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.stmt import Block, DeclBuffer
from weft.tir.transform import PlanAndUpdateBufferAllocationLocation


def test_memory_moves_into_the_loop_that_uses_it(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        t = T.alloc_buffer((4, 8), "int32")
        for i in range(4):
            for j in range(8):
                with T.block("t"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    t[vi, vj] = a[vi, vj] + 1
            for j in range(8):
                with T.block("c"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    c[vi, vj] = t[vi, vj] * 2

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        # with T.block("root"):
        for i in range(4):
            with T.block(""):
                T.reads()
                T.writes()
                t = T.alloc_buffer((4, 8), "int32")
                for j in range(8):
                    with T.block("t"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        T.reads(a[vi, vj])
                        T.writes(t[vi, vj])
                        t[vi, vj] = a[vi, vj] + 1
                for j in range(8):
                    with T.block("c"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        T.reads(t[vi, vj])
                        T.writes(c[vi, vj])
                        c[vi, vj] = t[vi, vj] * 2

    becomes(PlanAndUpdateBufferAllocationLocation(), before, expected)


def test_memory_read_before_it_is_written_stays(becomes):
    @T.prim_func
    def before(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        t = T.alloc_buffer((1,), "int32")
        t[0] = 0
        for i in range(4):
            with T.block("c"):
                vi = T.axis.spatial(4, i)
                c[vi] = t[0] + a[vi]
                t[0] = a[vi]

    becomes(PlanAndUpdateBufferAllocationLocation(), before, before)


def test_memory_with_a_view_stays(becomes):
    @T.prim_func
    def before(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        with T.block("root"):
            T.reads()
            T.writes()
            t = T.alloc_buffer((4,), "int32")
            for i in range(4):
                t[i] = a[i]
            view = T.decl_buffer((2, 2), "int32", data=t.data)
            for i in range(4):
                c[i] = view[i // 2, i % 2]

    becomes(PlanAndUpdateBufferAllocationLocation(), before, before)


def test_memory_that_init_writes_stays_outside_of_the_reduction(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        with T.block("root"):
            T.reads()
            T.writes()
            t = T.alloc_buffer((1,), "int32")
            for k in range(8):
                with T.block("sums"):
                    vk = T.axis.reduce(8, k)
                    T.reads(a[vk])
                    T.writes(t[0], c[vk])
                    with T.init():
                        t[0] = 0
                    t[0] = t[0] + a[vk]
                    c[vk] = t[0]

    becomes(PlanAndUpdateBufferAllocationLocation(), before, before)


def test_what_is_read_where_it_was_just_written_moves(becomes):
    @T.prim_func
    def before(a: T.Buffer((12,), "int32"), c: T.Buffer((3,), "int32")):
        t = T.alloc_buffer((3, 4), "int32")
        for i in range(3):
            for k in range(4):
                for _ in range(1):
                    with T.block("t"):
                        v, w = T.axis.remap("SS", [i, k])
                        t[v, w] = a[v * 4 + w] + 1
                for _ in range(1):
                    with T.block("largest"):
                        v, w = T.axis.remap("SR", [i, k])
                        with T.init():
                            c[v] = 0
                        c[v] = T.max(c[v], t[v, w])
            for k in range(4):
                with T.block("sum"):
                    v, w = T.axis.remap("SR", [i, k])
                    c[v] = c[v] + t[v, 3 - w]

    after = PlanAndUpdateBufferAllocationLocation()(weft.IRModule({"main": before}))["main"]
    assert _owner_loops(after) == {"t": ["i"]}


def test_what_is_read_before_all_of_it_is_written_stays(becomes):
    @T.prim_func
    def before(a: T.Buffer((12,), "int32"), c: T.Buffer((3,), "int32")):
        t = T.alloc_buffer((3, 4), "int32")
        for i in range(3):
            for k in range(4):
                with T.block("t"):
                    v, w = T.axis.remap("SS", [i, k])
                    t[v, w] = a[v * 4 + w] + 1
                for j in range(4):
                    with T.block("c"):
                        v, w = T.axis.remap("SR", [i, j])
                        T.reads(c[v], t[v, w])
                        c[v] = c[v] + t[v, w]

    becomes(PlanAndUpdateBufferAllocationLocation(), before, before)


def _owner_loops(func):
    """By buffer, the loops around the block that allocates it."""
    found = {}

    def walk(stmt, loops):
        if isinstance(stmt, tir.For):
            loops = [*loops, stmt.loop_var.name]
        if isinstance(stmt, tir.Block):
            found.update({buffer.name: loops for buffer in stmt.alloc_buffers})
        parts = [getattr(stmt, name, None) for name in ("body", "block")]
        for part in [*parts, *getattr(stmt, "seq", ())]:
            if part is not None:
                walk(part, loops)

    walk(func.body, [])
    return found


def test_a_tile_that_is_written_first_moves_to_its_tile(becomes):
    @T.prim_func
    def before(a: T.Buffer((12,), "int32"), c: T.Buffer((12,), "int32")):
        t = T.alloc_buffer((12,), "int32")
        for i in range(3):
            for x, y in T.grid(2, 2):
                with T.block("t"):
                    v = T.axis.spatial(12, i * 4 + x * 2 + y)
                    t[v] = a[v] + 1
            for j in range(3):
                with T.block("c"):
                    v = T.axis.spatial(12, i * 4 + j)
                    c[v] = t[v] * t[v + 1]

    @T.prim_func
    def expected(a: T.Buffer((12,), "int32"), c: T.Buffer((12,), "int32")):
        # with T.block("root"):
        for i in range(3):
            with T.block(""):
                T.reads()
                T.writes()
                t = T.alloc_buffer((12,), "int32")
                for x, y in T.grid(2, 2):
                    with T.block("t"):
                        v = T.axis.spatial(12, i * 4 + x * 2 + y)
                        T.reads(a[v])
                        T.writes(t[v])
                        t[v] = a[v] + 1
                for j in range(3):
                    with T.block("c"):
                        v = T.axis.spatial(12, i * 4 + j)
                        T.reads(t[v : v + 2])
                        T.writes(c[v])
                        c[v] = t[v] * t[v + 1]

    becomes(PlanAndUpdateBufferAllocationLocation(), before, expected)


def test_a_tile_with_gaps_stays(becomes):
    @T.prim_func
    def before(a: T.Buffer((12,), "int32"), c: T.Buffer((12,), "int32")):
        t = T.alloc_buffer((13,), "int32")
        t[0] = 7
        for i in range(3):
            for x in range(2):
                with T.block("t"):
                    v = T.axis.spatial(12, i * 4 + x * 2)
                    t[v] = a[v] + 1
            for j in range(4):
                with T.block("c"):
                    v = T.axis.spatial(12, i * 4 + j)
                    c[v] = a[v]
                    if v % 2 == 0:
                        c[v] = t[v]

    becomes(PlanAndUpdateBufferAllocationLocation(), before, before)


def test_a_tile_whose_neighbours_are_read_stays(becomes):
    @T.prim_func
    def before(a: T.Buffer((12,), "int32"), c: T.Buffer((12,), "int32")):
        t = T.alloc_buffer((12,), "int32")
        for i in range(3):
            for x in range(4):
                with T.block("t"):
                    v = T.axis.spatial(12, i * 4 + x)
                    t[v] = a[v] + 1
            for j in range(4):
                with T.block("c"):
                    v = T.axis.spatial(12, i * 4 + j)
                    c[v] = t[T.max(v - 1, 0)]

    becomes(PlanAndUpdateBufferAllocationLocation(), before, before)


def test_a_diagonal_stays(becomes):
    @T.prim_func
    def before(a: T.Buffer((4,), "int32"), c: T.Buffer((4,), "int32")):
        t = T.alloc_buffer((4, 4), "int32")
        for i, j in T.grid(4, 4):
            with T.block("zero"):
                vi, vj = T.axis.remap("SS", [i, j])
                t[vi, vj] = 0
        for i in range(2):
            for x in range(2):
                with T.block("t"):
                    v = T.axis.spatial(4, i * 2 + x)
                    t[v, v] = a[v] + 1
            for x, y in T.grid(2, 2):
                with T.block("c"):
                    v = T.axis.spatial(4, i * 2 + x)
                    w = T.axis.spatial(4, i * 2 + y)
                    c[v] = t[v, w]

    becomes(PlanAndUpdateBufferAllocationLocation(), before, before)


def _tail(bound):
    """Rows of 10 in tiles of 4; the cache of a tile is filled below ``bound`` only."""

    @T.prim_func
    def main(a: T.Buffer((10,), "int32"), c: T.Buffer((10,), "int32")):
        t = T.alloc_buffer((10,), "int32")
        for tile in range(3):
            for j in range(4):
                with T.block("t"):
                    v = T.axis.spatial(10, tile * 4 + j)
                    T.where(tile * 4 + j < bound)
                    t[v] = a[v] + 1
            for j in range(4):
                with T.block("c"):
                    v = T.axis.spatial(10, tile * 4 + j)
                    T.where(tile * 4 + j < bound)
                    c[v] = t[v] * 2

    return main


@pytest.mark.parametrize(("bound", "owner"), [(10, ""), (9, "root")])
def test_a_guard_that_only_keeps_a_tail_inside_the_buffer_is_none(bound, owner):
    before = _tail(bound)
    after = PlanAndUpdateBufferAllocationLocation()(weft.IRModule({"main": before}))["main"]
    owners = [block.name_hint for block in collect(after.body, Block) if block.alloc_buffers]
    assert owners == [owner]
    x = np.arange(10, dtype="int32")
    expected, found, native = np.zeros((3, 10), "int32")
    run(before, x, expected)
    run(after, x, found)
    np.testing.assert_array_equal(found, expected)
    result = weft.nd.array(native)
    weft.build(before)["main"](weft.nd.array(x), result)
    np.testing.assert_array_equal(result.numpy(), expected)


AT_MOST = """
@T.prim_func
def main(x: T.handle, n: T.int32, c: T.handle):
    source = T.match_buffer(x, (EXTENT,), "int32")
    result = T.match_buffer(c, (EXTENT,), "int32")
    t = T.alloc_buffer((EXTENT,), "int32")
    for tile in range((EXTENT + 3) // 4):
        for j in range(4):
            with T.block("t"):
                v = T.axis.spatial(EXTENT, tile * 4 + j)
                T.where(GUARD)
                t[v] = source[v] + 1
        for j in range(4):
            with T.block("c"):
                v = T.axis.spatial(EXTENT, tile * 4 + j)
                T.where(GUARD)
                result[v] = t[v] * 2
"""


@pytest.mark.parametrize(
    ("extent", "guard", "owner"),
    [
        ("(n - 1) // 2 + 1", "tile * 4 + j <= (n - 1) // 2", ""),
        ("(n - 1) // 2 + 1", "tile * 4 + j <= (n - 1) // 2 - 1", "root"),
        ("T.max(n // 2 - 3, 0)", "tile * 4 + j < n // 2 - 3", ""),
        ("T.max(n // 2 - 3, 0)", "tile * 4 + j + 3 < n // 2", ""),
        ("T.max(n // 2 - 3, 0)", "tile * 4 + j + 4 < n // 2", "root"),
        ("T.max(n // 2 - 3, 0)", "tile * 4 + j * 2 + 3 < n // 2", "root"),
        ("T.max(n // 2 - 3, 0)", "tile * 4 + j < n // 2 - 4", "root"),
    ],
)
def test_guards_of_computed_extents(extent, guard, owner):
    text = AT_MOST.replace("EXTENT", extent).replace("GUARD", guard)
    text = text.replace("    n = T.int64()\n", "").replace(
        "x: T.handle, c", "x: T.handle, n: T.int64, c"
    )
    main = from_source(text)
    after = PlanAndUpdateBufferAllocationLocation()(weft.IRModule({"main": main}))["main"]
    owners = [block.name_hint for block in collect(after.body, Block) if block.alloc_buffers]
    assert owners == [owner]
    for n in (0, 1, 8, 15, 22):
        size = (n - 1) // 2 + 1 if "+ 1" in extent else max(n // 2 - 3, 0)
        arrays = [np.zeros(size, "int32") for _ in range(2)]
        for func, result in zip((main, after), arrays, strict=True):
            run(func, np.arange(size, dtype="int32"), n, result)
        np.testing.assert_array_equal(*arrays)


@pytest.mark.parametrize(("most", "owner"), [(3, ""), (2, "root")])
def test_tiles_of_an_unknown_extent_cover_it_if_they_are_enough(most, owner):
    @T.prim_func
    def main(x: T.handle, c: T.handle):
        n = T.int32()
        source = T.match_buffer(x, (5, n), "int32")
        result = T.match_buffer(c, (5, n), "int32")
        t = T.alloc_buffer((5, n), "int32")
        for row in range(5):
            for tile, j in T.grid((n + most) // 4, 4):
                with T.block("t"):
                    u, v = T.axis.spatial(5, row), T.axis.spatial(n, tile * 4 + j)
                    T.where(tile * 4 + j < n)
                    t[u, v] = source[u, v] + 1
            for j in range(n):
                with T.block("c"):
                    u, v = T.axis.remap("SS", [row, j])
                    result[u, v] = t[u, v] * 2

    after = PlanAndUpdateBufferAllocationLocation()(weft.IRModule({"main": main}))["main"]
    assert [block.name_hint for block in collect(after.body, Block) if block.alloc_buffers] == [
        owner
    ]
    for size in (0, 4, 9) if owner == "" else (0, 4):
        x, c = np.arange(5 * size, dtype="int32").reshape(5, size), np.zeros((5, size), "int32")
        run(after, x, c)
        np.testing.assert_array_equal(c, (x + 1) * 2)


def test_the_tile_of_a_product_with_tails_stays_small():
    schedule = tir.Schedule(_product(17, 100, 40))
    block, result = schedule.get_block("C"), schedule.get_block("E")
    rows, columns = schedule.get_loops(result)
    row_tile, row = schedule.split(rows, [None, 6])
    column_tile, column = schedule.split(columns, [None, 32])
    schedule.reorder(column_tile, row_tile, row, column)
    schedule.compute_at(block, row_tile)
    lowered = lower_tir()(schedule.mod)["main"]
    shapes = {tuple(map(int, decl.buffer.shape)) for decl in collect(lowered.body, DeclBuffer)}
    assert shapes == {(6, 32)}


def _product(m, n, k):
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    axis = te.reduce_axis((0, k), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis), "C")
    return te.create_prim_func([a, b, te.compute((m, n), lambda i, j: c[i, j] + 1, "E")])


def test_a_store_to_a_whole_dimension_covers_what_guarded_accesses_read():
    @T.prim_func
    def main(y: T.Buffer((5, 7), "float32")):
        held = T.alloc_buffer((5, 10), "float32")
        for i in range(5):
            for j in range(10):
                with T.block("fill"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    held[vi, vj] = T.float32(3)
            for j, k in T.grid(2, 4):
                with T.block("read"):
                    vi = T.axis.spatial(5, i)
                    vj = T.axis.spatial(7, j * 4 + k)
                    T.where(j * 4 + k < 7)
                    y[vi, vj] = held[vi, vj + 3]

    made = PlanAndUpdateBufferAllocationLocation()(weft.IRModule({"main": main}))["main"]
    assert not made.body.block.alloc_buffers
    y = np.zeros((5, 7), "float32")
    run(lower_tir()(weft.IRModule({"main": made}))["main"], y)
    assert (y == 3).all()


def _lines(first=0, reach=4):
    """Blocks that store four elements at once, over a loop that was fused of two."""

    @T.prim_func
    def main(a: T.Buffer((2, 4, 6), "int32"), c: T.Buffer((2, 4, 6), "int32")):
        t = T.alloc_buffer((2, 5, 6), "int32")
        for i_j in range(4):
            for k0, k1 in T.grid(2, 3):
                with T.block("t"):
                    i, j = T.axis.spatial(2, i_j // 2), T.axis.spatial(2, i_j % 2)
                    k = T.axis.spatial(6, k0 * 3 + k1)
                    t[i, first, k] = a[i, j, k]
                    t[i, 1, k] = a[i, j, k] + 1
                    t[i, 2, k] = a[i, j, k] + 2
                    t[i, 3, k] = a[i, j, k] + 3
            for line, k0, k1 in T.grid(reach, 2, 4):
                with T.block("c"):
                    i, j = T.axis.spatial(2, (i_j * 3 + 2) // 6), T.axis.spatial(2, i_j % 2)
                    l, k = T.axis.scan(reach, line), T.axis.spatial(6, k0 * 4 + k1)
                    T.where(k0 * 4 + k1 < 6)
                    T.reads(c[i, j, k], t[i, l, k])
                    c[i, j, k] = c[i, j, k] * 2 + t[i, l, k]

    return main


@pytest.mark.parametrize(
    ("options", "owner"),
    [({}, ""), ({"first": 1}, "root"), ({"reach": 5}, "root")],
)
def test_stores_of_one_block_that_follow_each_other_are_one(options, owner):
    after = PlanAndUpdateBufferAllocationLocation()(weft.IRModule({"main": _lines(**options)}))[
        "main"
    ]
    owners = [block.name_hint for block in collect(after.body, Block) if block.alloc_buffers]
    assert owners == [owner]
    if not options:
        a = np.arange(48, dtype="int32").reshape(2, 4, 6)
        expected, found, native = np.zeros((3, 2, 4, 6), "int32")
        run(_lines(), a, expected)
        run(lower_tir()(weft.IRModule({"main": after}))["main"], a, found)
        np.testing.assert_array_equal(found, expected)
        result = weft.nd.array(native)
        weft.build(_lines())["main"](weft.nd.array(a), result)
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize(("reach", "owner"), [(4, ""), (5, "root")])
def test_a_matched_region_counts_as_all_its_elements(reach, owner):
    """What a tensor intrinsic reads: memory moves only if each iteration has written all of it."""

    @T.prim_func
    def main(c: T.Buffer((3, 8), "int32")):
        t = T.alloc_buffer((3, 8), "int32")
        for i in range(3):
            for j in range(4):
                with T.block("start"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    t[vi, vj] = vi + vj
            for k in range(1):
                with T.block("use"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    m = T.match_buffer(t[vi, 0:reach], (reach,), "int32", offset_factor=1)
                    c[vi, vk] = m[1] + m[3]

    after = PlanAndUpdateBufferAllocationLocation()(weft.IRModule({"main": main}))["main"]
    owners = [block.name_hint for block in collect(after.body, Block) if block.alloc_buffers]
    assert owners == [owner]
    found = np.zeros((3, 8), "int32")
    run(lower_tir()(weft.IRModule({"main": after}))["main"], found)
    np.testing.assert_array_equal(found[:, 0], [4, 6, 8])
