from __future__ import annotations

from weft.ir.expr import IntImm
from weft.ir.structural import structural_equal
from weft.tir import op
from weft.tir.analysis.block_access_region import (
    get_block_access_region,
    get_block_read_write_region,
)
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Call, Var
from weft.tir.stmt import Block, BlockRealize, BufferStore, Evaluate, seq


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
