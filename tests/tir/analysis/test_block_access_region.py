from __future__ import annotations

import itertools

import pytest

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm
from weft.ir.functor import collect, substitute
from weft.ir.structural import structural_equal
from weft.script import tir as T
from weft.tir import op
from weft.tir.analysis.block_access_region import (
    get_block_access_region,
    get_block_read_write_region,
)
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import Call, Var
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    seq,
)


def regions(found):
    return {r.buffer.name: [(rng.min, rng.extent) for rng in r.region] for r in found}


def assert_region(found, name, expected):
    ranges = regions(found)[name]
    assert len(ranges) == len(expected)
    for (low, extent), (want_low, want_extent) in zip(ranges, expected, strict=True):
        assert structural_equal(low, op.convert(want_low)), (low, want_low)
        assert structural_equal(extent, op.convert(want_extent))


def test_reduction_block_does_not_read_what_it_initialises(programs):
    block, buffers = programs.matmul_block()
    reads, writes, opaque = get_block_access_region(block, {b.data: b for b in buffers})
    assert [r.buffer.name for r in reads] == ["A", "B"]
    vi, vj, vk = (axis.var for axis in block.iter_vars)
    assert_region(reads, "A", [(vi, 1), (vk, 1)])
    assert_region(writes, "C", [(vi, 1), (vj, 1)])
    assert not opaque


def test_inner_loops_are_relaxed_and_axes_stay(programs):
    a, c = decl_buffer((64, 64), "float32", "A"), decl_buffer((64, 64), "float32", "C")
    axis, j = programs.axis("vi", 16), Var("j", "int32")
    store = BufferStore(c, a[axis.var * 4 + j, j - 1] + a[axis.var * 4 + j, j + 1], [axis.var, j])
    block = Block([axis], [], [], "b", programs.loop(j, 4, store))
    reads, writes = get_block_read_write_region(block, {b.data: b for b in (a, c)})
    assert_region(reads, "A", [(axis.var * 4, 4), (-1, 6)])
    assert_region(writes, "C", [(axis.var, 1), (0, 4)])


def test_symbolic_loop_gives_symbolic_region(programs):
    n, j = Var("n", "int32"), Var("j", "int32")
    a, c = decl_buffer((n,), "float32", "A"), decl_buffer((n,), "float32", "C")
    block = Block([], [], [], "b", programs.loop(j, n, BufferStore(c, a[j], [j])))
    reads, _ = get_block_read_write_region(block, {b.data: b for b in (a, c)})
    assert_region(reads, "A", [(0, n)])


def test_buffers_allocated_inside_do_not_count(programs):
    a, local = decl_buffer((8,), "float32", "A"), decl_buffer((8,), "float32", "L")
    i = Var("i", "int32")
    body = seq(
        programs.loop(i, 8, BufferStore(local, a[i], [i])),
    )
    block = Block([], [], [], "b", body, alloc_buffers=[local])
    reads, writes = get_block_read_write_region(block, {a.data: a})
    assert list(regions(reads)) == ["A"]
    assert not writes


def test_inner_block_counts_with_its_own_regions(programs):
    inner, buffers = programs.matmul_block()
    by_data = {b.data: b for b in buffers}
    reads, writes, _ = get_block_access_region(inner, by_data)
    inner = inner.with_(reads=reads, writes=writes)
    outer_axis, j, k = programs.axis("vo", 4), Var("j", "int32"), Var("k", "int32")
    realize = BlockRealize([outer_axis.var * 4, j, k], IntImm("bool", 1), inner)
    outer = Block([outer_axis], [], [], "o", programs.loop(j, 16, programs.loop(k, 16, realize)))
    reads, writes, _ = get_block_access_region(outer, by_data)
    assert_region(reads, "A", [(outer_axis.var * 4, 1), (0, 16)])
    assert_region(reads, "B", [(0, 16), (0, 16)])
    assert_region(writes, "C", [(outer_axis.var * 4, 1), (0, 16)])


def test_data_used_by_itself_is_opaque(programs):
    a = decl_buffer((8, 4), "float32", "A")
    block = Block([], [], [], "b", Evaluate(Call("int32", "call_extern", ["f", a.data])))
    reads, writes, opaque = get_block_access_region(block, {a.data: a})
    assert not reads
    assert not writes
    assert_region(opaque, "A", [(0, 8), (0, 4)])
    reads, writes = get_block_read_write_region(block, {a.data: a})
    assert list(regions(reads)) == list(regions(writes)) == ["A"]


def test_access_ptr_mask_tells_reads_from_writes(programs):
    a, b = decl_buffer((8,), "float32", "A"), decl_buffer((8,), "float32", "B")
    call = Call("int32", "call_extern", ["f", a.access_ptr("r"), b.access_ptr("w")])
    reads, writes, opaque = get_block_access_region(
        Block([], [], [], "b", Evaluate(call)), {x.data: x for x in (a, b)}
    )
    assert list(regions(reads)) == ["A"]
    assert list(regions(writes)) == ["B"]
    assert not opaque


def test_data_dependent_index_covers_the_dimension(programs):
    a, index = decl_buffer((8, 4), "float32", "A"), decl_buffer((16,), "int32", "I")
    c, j = decl_buffer((16,), "float32", "C"), Var("j", "int32")
    block = Block([], [], [], "b", programs.loop(j, 16, BufferStore(c, a[index[j], 0], [j])))
    reads, _ = get_block_read_write_region(block, {b.data: b for b in (a, index, c)})
    assert_region(reads, "A", [(0, 8), (0, 1)])
    assert_region(reads, "I", [(0, 16)])


def detected(func, name, which=get_block_access_region):
    """The printed regions of the block ``name``, known buffers being all declared outside it."""
    blocks = {block.name_hint: block for block in collect(func.body, Block)}
    block = blocks[name]
    inside = {*block.alloc_buffers, *[match.buffer for match in block.match_buffers]}
    outside = [buffer for buffer in collect(func, Buffer) if buffer not in inside]
    found = which(block, {buffer.data: buffer for buffer in outside})
    return [[region_text(region) for region in part] for part in found]


def region_text(region):
    return str(region).splitlines()[-1]


def test_condition_narrows_an_inner_loop():
    @T.prim_func
    def func(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(8):
            with T.block("b"):
                vi = T.axis.spatial(8, i)
                for j in range(20):
                    if j < 7:
                        B[vi * 7 + j] = A[vi * 7 + j]
                    else:
                        B[j] = T.if_then_else(j < 10, A[j], T.float32(0))

    reads, writes, opaque = detected(func, "b")
    assert len(reads) == len(writes) == 1
    low, extent = regions(_regions_of(func, "b")[1])["B"][0]
    vi = next(block for block in collect(func.body, Block) if block.name_hint == "b").iter_vars[0]
    for value in range(8):
        first = simplified(low, {vi.var: value})
        last = first + simplified(extent, {vi.var: value}) - 1
        assert (first, last) == (min(value * 7, 7), max(value * 7 + 6, 19))
    assert not opaque


def _regions_of(func, name):
    block = next(block for block in collect(func.body, Block) if block.name_hint == name)
    return get_block_access_region(block, {b.data: b for b in func.buffer_map.values()})


def simplified(expr, values):
    mapping = {var: IntImm(var.dtype, value) for var, value in values.items()}
    return Analyzer().simplify(substitute(expr, mapping)).value


def test_condition_on_an_axis_leaves_the_point():
    @T.prim_func
    def func(A: T.Buffer((28,), "float32"), P: T.Buffer((32,), "float32")):
        for i in range(32):
            with T.block("b"):
                vi = T.axis.spatial(32, i)
                P[vi] = T.if_then_else(2 <= vi and vi < 30, A[vi - 2], T.float32(0))

    assert detected(func, "b") == [["A[vi - 2]"], ["P[vi]"], []]


def test_predicate_of_an_inner_block_narrows_its_loops():
    @T.prim_func
    def func(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
        with T.block("o"):
            for i in range(128):
                with T.block("b"):
                    vi = T.axis.spatial(100, i)
                    T.where(i < 100)
                    B[vi] = A[vi]

    assert detected(func, "o") == [["A[0:100]"], ["B[0:100]"], []]


def test_let_values_are_looked_through_and_loops_may_share_a_variable():
    i, x = Var("i", "int32"), Var("x", "int32")
    a, b = decl_buffer((64,), "float32", "A"), decl_buffer((64,), "float32", "B")
    first = For(i, 0, 4, ForKind.SERIAL, LetStmt(x, i * 2, BufferStore(a, b[x + 1], [x])))
    second = For(i, 10, 8, ForKind.SERIAL, BufferStore(a, b[i], [i]))
    block = Block([], [], [], "b", seq(first, second))
    reads, writes, _ = get_block_access_region(block, {a.data: a, b.data: b})
    assert_region(reads, "B", [(1, 17)])
    assert_region(writes, "A", [(0, 18)])


def test_views_of_views_count_at_their_source():
    @T.prim_func
    def func(A: T.Buffer((64, 64), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                T.reads()
                T.writes(A[vi * 16 : vi * 16 + 16, 0:8])
                V = T.match_buffer(A[vi * 16 : vi * 16 + 16, 0:8], (16, 8))
                for j in range(16):
                    V[j, 3] = T.float32(1)

    assert detected(func, "b") == [[], ["A[vi * 16:vi * 16 + 16, 3]"], []]


def test_index_computed_in_floats_covers_what_its_clamps_leave():
    @T.prim_func
    def func(A: T.Buffer((128,), "float32"), B: T.Buffer((50,), "float32")):
        for i in range(50):
            with T.block("b"):
                vi = T.axis.spatial(50, i)
                nearest = T.Cast("int32", T.round(T.Cast("float32", vi) * 2.5))
                B[vi] = A[T.max(T.min(nearest, 99), 3)]

    assert detected(func, "b") == [["A[3:100]"], ["B[vi]"], []]


def test_pointer_for_both_uses_is_opaque_and_comes_last():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        with T.block("b"):
            T.reads()
            T.writes()
            T.evaluate(A.access_ptr("rw"))
            B[0] = A[1]

    assert detected(func, "b") == [["A[1]"], ["B[0]"], ["A[0:8]"]]
    both = detected(func, "b", get_block_read_write_region)
    assert both == [["A[0:8]"], ["B[0]", "A[0:8]"]]


def test_an_index_from_memory_of_the_block_itself_may_be_any():
    """A region says where a block reads in words of what is around the block."""

    @T.prim_func
    def main(x: T.Buffer((8,), "float32"), y: T.Buffer((4,), "float32")):
        with T.block("picked"):
            T.reads(x[0:8])
            T.writes(y[0:4])
            order = T.decl_buffer((4,), "int32")
            for i in range(4):
                order[i] = 3 - i
            for i in range(4):
                y[i] = x[order[i]]

    block = main.body.block
    buffers = {buffer.data: buffer for buffer in main.buffer_map.values()}
    [read] = get_block_read_write_region(block, buffers)[0]
    assert [(int(dom.min), int(dom.extent)) for dom in read.region] == [(0, 8)]


def test_another_buffer_on_the_same_memory_touches_all_of_it():
    @T.prim_func
    def func(A: T.Buffer((8, 4), "float32")):
        with T.block("b"):
            T.reads()
            T.writes()
            flat = T.decl_buffer((32,), "float32", data=A.data)
            flat[5] = flat[6] + A[0, 0]

    reads, writes, _ = _regions_of(func, "b")
    assert_region(reads, "A", [(0, 8), (0, 4)])
    assert_region(writes, "A", [(0, 8), (0, 4)])


LOOPS = [  # indices of A inside two loops i in [0, 6), j in [0, 5), under a condition
    ("i * 5 + j", "True"),
    ("i + j + a", "i + j < 7"),
    ("i * 2 - j + 9", "i > j"),
    ("a * 3 + i // 2", "i + a < 8 and j < 2"),
    ("(i + j) % 4 + a", "j * 2 > i"),
    ("j - i + 20", "a <= i and i <= a + 1"),
]


@pytest.mark.parametrize(("index", "condition"), LOOPS)
def test_region_holds_every_element_touched(index, condition, programs):
    axis, i, j = programs.axis("a", 8), Var("i", "int32"), Var("j", "int32")
    names = {"a": axis.var, "i": i, "j": j}
    buffer = decl_buffer((64,), "float32", "A")
    tests = [eval(part, dict(names)) for part in condition.split(" and ")]
    store = BufferStore(buffer, 1.0, [eval(index, dict(names))])
    for test in reversed(tests):
        store = store if test is True else IfThenElse(test, store)
    block = Block([axis], [], [], "b", programs.loop(i, 6, programs.loop(j, 5, store)))
    _, writes, _ = get_block_access_region(block, {buffer.data: buffer})
    ((low, extent),) = regions(writes)["A"]
    for a_value in range(8):
        first = simplified(low, {axis.var: a_value})
        last = first + simplified(extent, {axis.var: a_value}) - 1
        for i_value, j_value in itertools.product(range(6), range(5)):
            values = {"a": a_value, "i": i_value, "j": j_value}
            if eval(condition, dict(values)):
                assert first <= eval(index, dict(values)) <= last


def test_many_accesses_at_constant_offsets_are_one_region(programs):
    axis = programs.axis("a", 4)
    a = decl_buffer((4096,), "float32", "A")
    stores = [BufferStore(a, a[axis.var * 512 + n + 1], [axis.var * 512 + n]) for n in range(500)]
    block = Block([axis], [], [], "b", seq(*stores))
    reads, writes, _ = get_block_access_region(block, {a.data: a})
    assert_region(reads, "A", [(axis.var * 512 + 1, 500)])
    assert_region(writes, "A", [(axis.var * 512, 500)])
