"""transform_layout and set_axis_separator: scripts, padding, meaning, refusals."""

import numpy as np
import pytest

import weft
from tests.lib.dangerous_programs.domains import under_let
from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.ir.structural import assert_structural_equal
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.index_map import IndexMap
from weft.tir.interp import run
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.buffer import buffer_definition
from weft.tir.schedule.primitive.layout import transform_layout as layout


@T.prim_func
def chain(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi] * 2
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi] + 1


@T.prim_func
def row_sums(A: T.Buffer((14, 6), "float32"), C: T.Buffer((14,), "float32")):
    B = T.alloc_buffer((14,), "float32")
    for i, k in T.grid(14, 6):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi]


def tiled(i):
    return [i // 4, i % 4]


def same(sch, expected):
    assert_structural_equal(sch.mod["main"].with_attr("global_symbol", "expected"), expected)


def test_an_intermediate_buffer_changes_where_it_is_written_and_read():
    @T.prim_func
    def expected(A: T.Buffer((16, 12), "float32"), D: T.Buffer((16, 12), "float32")):
        B = T.alloc_buffer((4, 3, 4, 4))
        C = T.alloc_buffer((16, 12))
        for i, j in T.grid(16, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi // 4, vj // 4, vi % 4, vj % 4] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(16, 12):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi // 4, vj // 4, vi % 4, vj % 4] + T.float32(1)
        for i, j in T.grid(16, 12):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.max(C[vi, vj], T.float32(0))

    for place in (("write", 0), "B"):
        sch = tir.Schedule(elementwise_chain)
        block = sch.get_block("B")
        sch.transform_layout(block, place, lambda i, j: (i // 4, j // 4, i % 4, j % 4))
        assert sch.get(block).name_hint == "B"
        assert_same_meaning(elementwise_chain, sch.mod)
        blocks = {b.name_hint: b for b in _blocks(sch)}
        wanted = {b.name_hint: b for b in _blocks(tir.Schedule(expected))}
        assert str(blocks["B"].writes) == str(wanted["B"].writes)
        assert str(blocks["C"].reads) == str(wanted["C"].reads)


def _blocks(sch):
    return [sch.get(block) for block in sch.get_child_blocks(sch.get_block("root"))]


def test_indices_are_simplified_for_the_domains_of_the_axes():
    @T.prim_func
    def before(A: T.Buffer((4, 16), "int32"), C: T.Buffer((64,), "int32")):
        B = T.alloc_buffer((64,), "int32")
        for i, j in T.grid(4, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi * 16 + vj] = A[vi, vj]
        for i in range(64):
            with T.block("C"):
                vi = T.axis.spatial(64, i)
                C[vi] = B[vi]

    @T.prim_func
    def expected(A: T.Buffer((4, 16), "int32"), C: T.Buffer((64,), "int32")):
        B = T.alloc_buffer((4, 16), "int32")
        for i, j in T.grid(4, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for i in range(64):
            with T.block("C"):
                vi = T.axis.spatial(64, i)
                C[vi] = B[vi // 16, vi % 16]

    sch = tir.Schedule(before)
    sch.transform_layout("B", "B", lambda i: (i // 16, i % 16))
    same(sch, expected)
    assert_same_meaning(before, sch.mod)


def test_parameters_change_their_shape():
    @T.prim_func
    def expected(A: T.Buffer((2, 7), "int32"), C: T.Buffer((7, 2), "int32")):
        B = T.alloc_buffer((14,), "int32")
        for i in range(14):
            with T.block("B"):
                vi = T.axis.spatial(14, i)
                B[vi] = A[vi // 7, vi % 7] * 2
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi % 7, vi // 7] = B[vi] + 1

    sch = tir.Schedule(chain)
    sch.transform_layout("B", ("read", 0), lambda i: (i // 7, i % 7))
    sch.transform_layout("C", ("write", 0), lambda i: (i % 7, i // 7))
    same(sch, expected)
    a, c = np.arange(14, dtype="int32"), np.zeros((7, 2), "int32")
    run(sch.mod["main"], a.reshape(2, 7), c)
    np.testing.assert_array_equal(c.T.ravel(), a * 2 + 1)


def test_padding_is_written_by_an_elementwise_producer():
    @T.prim_func
    def expected(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
        B = T.alloc_buffer((4, 4), "int32")
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.if_then_else(vi == 3 and 2 <= vj, 7, A[vi * 4 + vj] * 2)
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi // 4, vi % 4] + 1

    sch = tir.Schedule(chain)
    block = sch.get_block("B")
    sch.transform_layout(block, "B", tiled, pad_value=7)
    same(sch, expected)
    assert sch.get(block).name_hint == "B"
    assert_same_meaning(chain, sch.mod)


def test_padding_is_written_by_a_reduction():
    @T.prim_func
    def expected(A: T.Buffer((14, 6), "float32"), C: T.Buffer((14,), "float32")):
        B = T.alloc_buffer((4, 4))
        for i, j, k in T.grid(4, 4, 6):
            with T.block("B"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    B[vi, vj] = T.if_then_else(vi == 3 and 2 <= vj, T.float32(0), T.float32(0))
                B[vi, vj] = T.if_then_else(
                    vi == 3 and 2 <= vj, T.float32(0), B[vi, vj] + A[vi * 4 + vj, vk]
                )
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi // 4, vi % 4]

    sch = tir.Schedule(row_sums)
    sch.transform_layout("B", "B", tiled, pad_value=0.0)
    same(sch, expected)
    assert_same_meaning(row_sums, sch.mod)


def test_padding_of_an_input_is_assumed():
    @T.prim_func
    def expected(A: T.Buffer((4, 4), "int32"), C: T.Buffer((14,), "int32")):
        B = T.alloc_buffer((14,), "int32")
        for i, j in T.grid(4, 4):
            with T.block("buffer_A_assumptions"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.evaluate(T.assume(not (vi == 3 and 2 <= vj) or A[vi, vj] == vi + vj))
        for i in range(14):
            with T.block("B"):
                vi = T.axis.spatial(14, i)
                B[vi] = A[vi // 4, vi % 4] * 2
        for i in range(14):
            with T.block("C"):
                vi = T.axis.spatial(14, i)
                C[vi] = B[vi] + 1

    sch = tir.Schedule(chain)
    sch.transform_layout("B", "A", tiled, pad_value=lambda i, j: i + j)
    same(sch, expected)
    a, c = np.arange(16, dtype="int32").reshape(4, 4), np.zeros(14, "int32")
    with pytest.raises(weft.TVMError, match="assume"):
        run(sch.mod["main"], a, c)
    a[3, 2:] = [5, 6]
    run(sch.mod["main"], a, c)
    np.testing.assert_array_equal(c, np.arange(14) * 2 + 1)


@T.prim_func
def two_results(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            B[vi] = A[vi]
            C[vi] = A[vi] + 1


@T.prim_func
def guarded(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for i in range(14):
        with T.block("B"):
            vi = T.axis.spatial(14, i)
            T.where(i < 9)
            B[vi] = A[vi]
    for i in range(9):
        with T.block("C"):
            vi = T.axis.spatial(9, i)
            C[vi] = B[vi]


@T.prim_func
def scan(A: T.Buffer((14,), "int32"), C: T.Buffer((14,), "int32")):
    B = T.alloc_buffer((14,), "int32")
    for i in range(14):
        with T.block("B"):
            vi = T.axis.opaque(14, i)
            B[vi] = A[vi] + T.if_then_else(vi > 0, B[vi - 1], 0)
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi] = B[vi]


@T.prim_func
def two_in_a_loop(A: T.Buffer((14, 3), "int32"), C: T.Buffer((14, 3), "int32")):
    B = T.alloc_buffer((14, 3), "int32")
    for i in range(14):
        with T.block("C0"):
            vi = T.axis.spatial(14, i)
            C[vi, 0] = A[vi, 1]
        for j in range(3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
    for i in range(14):
        with T.block("C"):
            vi = T.axis.spatial(14, i)
            C[vi, 1] = B[vi, 2]


@pytest.mark.parametrize(
    ("func", "layout_map"),
    [
        (two_results, lambda i: [i // 4, i % 4]),
        (guarded, lambda i: [i // 4, i % 4]),
        (scan, lambda i: [i % 4, i // 4]),
        (two_in_a_loop, lambda i, j: [i // 4, j, i % 4]),
    ],
)
def test_padding_is_written_after_other_producers(func, layout_map):
    sch = tir.Schedule(func)
    sch.transform_layout("B", "B", layout_map, pad_value=3)
    assert "buffer_B_padding" in sch.mod.script()
    assert_same_meaning(func, sch.mod)


def test_padding_that_nobody_looks_at_is_left_alone():
    for options in ({"pad_value": T.undef()}, {"assume_injective_transform": True}):
        sch = tir.Schedule(chain)
        sch.transform_layout("B", "B", tiled, **options)
        assert "if_then_else" not in sch.mod.script()
        assert "(4, 4)" in sch.mod.script()
        assert_same_meaning(chain, sch.mod)


def test_axis_separators_of_a_map_are_a_call_of_their_own():
    sch = tir.Schedule(chain)
    sch.transform_layout("B", "B", lambda i: [i // 7, IndexMap.AXIS_SEPARATOR, i % 7])
    buffer = sch.get(sch.get_block("B")).writes[0].buffer
    assert [item.value for item in buffer.axis_separators] == [1]
    assert sch.get(sch.get_block("C")).reads[0].buffer is buffer
    names = [inst.kind.name for inst in sch.trace.insts if inst.kind.name != "GetBlock"]
    assert names == [
        "TransformLayout", "SetAxisSeparator",
    ]  # fmt: skip
    sch.set_axis_separator("B", ("write", 0), [])
    assert_same_meaning(chain, sch.mod)


def test_axis_separators_reach_views():
    @T.prim_func
    def views(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        B = T.alloc_buffer((8, 8))
        for i in range(2):
            with T.block("B"):
                vi = T.axis.spatial(2, i)
                T.reads(A[vi * 4 : vi * 4 + 4, 0:8])
                T.writes(B[vi * 4 : vi * 4 + 4, 0:8])
                V = T.match_buffer(B[vi * 4 : vi * 4 + 4, 0:8], (4, 8), offset_factor=1)
                for j, k in T.grid(4, 8):
                    V[j, k] = A[vi * 4 + j, k]
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]

    sch = tir.Schedule(views)
    sch.set_axis_separator("C", "B", [1])
    match = sch.get(sch.get_block("B")).match_buffers[0]
    assert [item.value for item in match.buffer.axis_separators] == [1]
    assert match.source.buffer is sch.get(sch.get_block("C")).reads[0].buffer
    with pytest.raises(buffer_definition.LayoutAccessError, match="B has a view, V, made by"):
        sch.transform_layout("C", "B", lambda i, j: [j, i])


def test_nested_blocks_and_symbolic_shapes():
    @T.prim_func
    def nested(a: T.handle, c: T.handle, n: T.int32):
        A = T.match_buffer(a, (n, 8))
        C = T.match_buffer(c, (n, 8))
        B = T.alloc_buffer((n, 8))
        for i in range(n):
            with T.block("outer"):
                vi = T.axis.spatial(n, i)
                for j in range(8):
                    with T.block("B"):
                        vj = T.axis.spatial(8, j)
                        B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(n, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj]

    sch = tir.Schedule(nested)
    sch.transform_layout("B", "B", lambda i, j: [j, i])
    sch.transform_layout("C", "B", lambda j, i: [j // 4, i, j % 4])
    assert sch.mod.script().count("[vj // 4, vi, vj % 4]") >= 4
    for n in (1, 5):
        assert_same_meaning(nested, sch.mod, {"n": n})


def test_sampled_numbers_in_maps():
    sch = tir.Schedule(matmul)
    factor = sch.sample_categorical([4, 8], [0.5, 0.5], decision=1)
    sch.transform_layout("C", ("read", 0), lambda i, j: [i // factor, j, i % factor])
    assert "(4, 20, 8)" in sch.mod.script()


def test_int64_shapes_take_maps_of_int32():
    @T.prim_func
    def wide(A: T.Buffer((T.int64(16),), "int8"), C: T.Buffer((T.int64(16),), "int8")):
        B = T.alloc_buffer((T.int64(16),), "int8")
        for i in range(T.int64(16)):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(16), i)
                B[vi] = A[vi]
        for i in range(T.int64(16)):
            with T.block("C"):
                vi = T.axis.spatial(T.int64(16), i)
                C[vi] = B[vi]

    for dtype in ("int32", "int64"):
        sch = tir.Schedule(wide)
        index_map = IndexMap.from_func(lambda i: [0, (i + 1) // 8, (i + 1) % 8], index_dtype=dtype)
        sch.transform_layout("B", "B", index_map, pad_value=1)
        assert {str(e.dtype) for e in sch.get(sch.get_block("B")).writes[0].buffer.shape} == {
            "int64"
        }
        assert_same_meaning(wide, sch.mod)


def test_after_the_layout_other_primitives_go_on():
    sch = tir.Schedule(elementwise_chain)
    sch.transform_layout("B", "B", lambda i, j: (j // 5, i, j % 5), pad_value=0.0)
    loops = sch.get_loops("B")
    assert [sch.get(loop).extent.value for loop in loops] == [3, 16, 5]
    sch.parallel(sch.fuse(*loops[:2]))
    sch.vectorize(sch.get_loops("B")[-1])
    assert_same_meaning(elementwise_chain, sch.mod)


@T.prim_func
def pointer(A: T.Buffer((16,), "float32")):
    with T.block("root"):
        B = T.alloc_buffer((16,))
        with T.block("B"):
            T.reads()
            T.writes(B[0:16])
            T.evaluate(T.call_extern("int32", "fill", B.data))
        for i in range(16):
            with T.block("A"):
                vi = T.axis.spatial(16, i)
                A[vi] = B[vi]


@T.prim_func
def symbolic(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, 8))
    B = T.match_buffer(b, (m,))
    for i in range(m):
        with T.block("B"):
            vi = T.axis.spatial(m, i)
            T.reads(A[0:n, 0])
            T.writes(B[vi])
            B[vi] = A[n - 1, 0]


MAP, PAD, PLACE = layout.LayoutMapError, layout.PadValueError, errors.BufferIndexError


@pytest.mark.parametrize(
    ("func", "args", "options", "error", "message"),
    [
        (chain, ("B", "B", tiled), {}, layout.IntroducesPaddingError, "padding where axis0 == 3"),
        (chain, ("B", "B", lambda i: [i // 4]), {}, MAP, "two elements may get one place"),
        (chain, ("B", "B", lambda i: [i // 4, i % 2]), {}, MAP, "two elements may get"),
        (chain, ("B", "B", lambda i: [i * i]), {}, MAP, "two elements may get one place"),
        (chain, ("B", "B", lambda i, j: [i]), {}, weft.TVMError, "takes 2 indices"),
        (chain, ("B", "B", IndexMap.from_func(lambda i, j: [i])), {}, MAP, "has 1 axes, the map"),
        (chain, ("B", ("write", 1), tiled), {}, PLACE, "writes 1 buffers .B., got index 1"),
        (chain, ("B", ("both", 0), tiled), {}, weft.TVMError, "'read', i"),
        (chain, ("B", "C", tiled), {}, weft.TVMError, "no buffer C; its buffers are A, B"),
        (chain, ("B", 3, tiled), {}, weft.TVMError, "a name, a Buffer or a pair"),
        (chain, ("B", "B", tiled), {"pad_value": 1.0}, PAD, "1.* is a float32, B holds int32"),
        (row_sums, ("B", "B", tiled), {"pad_value": 0}, PAD, "is a int32, B holds float32"),
        (chain, ("B", "B", tiled), {"pad_value": lambda i, j: [i, j]}, PAD, "2 values, expected 1"),
        (
            chain, ("B", "B", tiled), {"pad_value": IndexMap.from_func(lambda i: [i])}, PAD,
            "takes 1 indices, the new layout has 2",
        ),
        (
            chain, ("B", "B", tiled),
            {"pad_value": lambda i, j: tir.decl_buffer((1,), "int32", "other")[0]}, PAD,
            "reads other; it may read B alone",
        ),
        (
            pointer, ("A", "B", tiled), {}, buffer_definition.LayoutAccessError,
            "pointers into B",
        ),
        (
            symbolic, ("B", "A", lambda i, j: [i * 8 + j]), {}, buffer_definition.LostSymbolError,
            "n is known from the shape of A only",
        ),
    ],
)  # fmt: skip
def test_refused_layouts(func, args, options, error, message):
    sch = tir.Schedule(func)
    before = sch.mod
    with pytest.raises(error, match=message) as caught:
        sch.transform_layout(*args, **options)
    assert len(str(caught.value).split("\n")) <= 10
    assert sch.mod is before or sch.mod.script() == before.script()


@pytest.mark.parametrize("separators", [[2], [-1], [1, 0], [1, 1]])
def test_refused_axis_separators(separators):
    sch = tir.Schedule(chain)
    with pytest.raises(layout.AxisSeparatorError, match="between 0 and 1"):
        sch.set_axis_separator("B", "B", separators)


def test_padding_does_not_evaluate_a_let_outside_of_its_range():
    sch = tir.Schedule(under_let)
    sch.cache_write("C", 0, "global")
    sch.transform_layout("C", ("write", 0), lambda i: (i // 3, i % 3), pad_value=0)
    assert_same_meaning(under_let, sch.mod)
