"""Buffers, regions, axes and memory in texts: what must be said, and no more than that."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lib.round_trip import assert_round_trip
from weft.ir.expr import FloatImm, IntImm, Range, StringImm
from weft.ir.type import PointerType, PrimType
from weft.runtime.ndarray import array
from weft.tir import stmt as S
from weft.tir.buffer import BufferRegion, decl_buffer
from weft.tir.expr import Add, IterVar, Ramp, SizeVar, Var
from weft.tir.function import PrimFunc
from weft.tir.index_map import IndexMap

ZERO = S.Evaluate(0)
TRUE = IntImm("bool", 1)
N = Var("n", "int32")
POINTER = Var("p", PointerType(PrimType("float32"), "global"))


def line_of(func, part):
    """The line of the text of a function that holds ``part``, which comes back."""
    assert_round_trip(func)
    (line,) = [line.strip() for line in func.script().split("\n") if part in line]
    return line


def parameter(**fields):
    """The line or annotation that declares a buffer of a parameter."""
    shape = fields.pop("shape", (8, 4))
    buffer = decl_buffer(shape, fields.pop("dtype", "float32"), "A", **fields)
    handle = Var("a", "handle")
    func = PrimFunc([handle, N], ZERO, None, {handle: buffer})
    return line_of(func, "(8, 4)" if shape == (8, 4) else "A")


PARAMETERS = [
    ({}, 'def main(A: T.Buffer((8, 4), "float32"), n: T.int32):'),
    ({"dtype": "int8"}, 'def main(A: T.Buffer((8, 4), "int8"), n: T.int32):'),
    ({"scope": "shared"}, 'A = T.match_buffer(a, (8, 4), scope="shared")'),
    ({"data_alignment": 128}, "A = T.match_buffer(a, (8, 4), align=128)"),
    ({"offset_factor": 16}, "A = T.match_buffer(a, (8, 4), offset_factor=16)"),
    ({"buffer_type": "auto_broadcast"},
     'A = T.match_buffer(a, (8, 4), buffer_type="auto_broadcast")'),
    ({"axis_separators": [1]}, "A = T.match_buffer(a, (8, 4), axis_separators=[1])"),
    ({"strides": [4, 1]}, "A = T.match_buffer(a, (8, 4), strides=(4, 1))"),
    ({"strides": [N, 1]}, "A = T.match_buffer(a, (8, 4), strides=(n, 1))"),
    ({"elem_offset": 4}, "A = T.match_buffer(a, (8, 4), elem_offset=4)"),
    ({"elem_offset": N + 1}, "A = T.match_buffer(a, (8, 4), elem_offset=n + 1)"),
    ({"dtype": "int8", "scope": "local", "strides": [8, 1], "elem_offset": 2},
     'A = T.match_buffer(a, (8, 4), "int8", strides=(8, 1), elem_offset=2, scope="local")'),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "wanted"), PARAMETERS, ids=[str(r[1])[:70] for r in PARAMETERS])
def test_a_buffer_of_a_parameter_says_what_is_no_default(fields, wanted):
    assert parameter(**fields) == wanted


def test_extents_of_64_bits_say_their_type():
    assert "T.int64(8)" in parameter(shape=(IntImm("int64", 8),))


def test_one_stride_in_two_places_is_declared_in_a_line():
    stride = Var("s", "int32")
    handle = Var("a", "handle")
    buffer = decl_buffer((8, 4), "float32", "A", strides=[stride, stride])
    func = PrimFunc([handle], ZERO, None, {handle: buffer})
    assert line_of(func, "match_buffer") == "A = T.match_buffer(a, (8, 4), strides=(s, s))"
    assert "s = T.int32()" in func.script()


def test_strides_that_are_sizes_are_declared():
    stride = SizeVar("s", "int32")
    handle = Var("a", "handle")
    buffer = decl_buffer((8, 4), "float32", "A", strides=[stride, 1])
    func = PrimFunc([handle], ZERO, None, {handle: buffer})
    assert "s = T.int32(is_size_var=True)" in func.script()
    assert_round_trip(func)


def test_two_parameters_of_one_memory():
    first, second = Var("a", "handle"), Var("b", "handle")
    A = decl_buffer((8, 4), "float32", "A")
    B = decl_buffer((4, 8), "float32", "B", data=A.data)
    func = PrimFunc([first, second], ZERO, None, {first: A, second: B})
    assert line_of(func, "B = ") == "B = T.match_buffer(b, (4, 8), data=A.data)"


# ---- regions

A = decl_buffer((16, 16), "float32", "A")
REGIONS = [
    ([(0, 16), (0, 16)], "A[0:16, 0:16]"),
    ([(3, 1), (N, 1)], "A[3, n]"),
    ([(N, 4), (0, N)], "A[n:n + 4, 0:n]"),
    ([(N * 4, 4), (N + 1, 1)], "A[n * 4:n * 4 + 4, n + 1]"),
    ([(2, IntImm("int64", 1)), (0, 16)], "A[2:"),
]


@pytest.mark.parametrize(("bounds", "text"), REGIONS, ids=[text for _, text in REGIONS])
def test_a_region_is_written_in_slices(bounds, text):
    region = BufferRegion(A, [Range.from_min_extent(*pair) for pair in bounds])
    block = S.Block([], [region], [], "root", ZERO, annotations={"k": 1})
    func = PrimFunc([N, handle := Var("a", "handle")], S.BlockRealize([], TRUE, block), None,
                    {handle: A})  # fmt: skip
    if text.endswith(":"):
        assert_round_trip(func)
    else:
        assert line_of(func, "T.reads") == f"T.reads({text})"


def test_a_region_that_no_slice_says_spells_its_ranges():
    odd = Range.from_min_extent(N, Add(IntImm("int32", 2), IntImm("int32", 2)))
    end = Range.from_min_extent(IntImm("int32", 2**31 - 1), IntImm("int32", 2))
    for item in (odd, end):
        region = BufferRegion(A, [item, Range(0, 16)])
        block = S.Block([], [region], [], "root", ZERO, annotations={"k": 1})
        handle = Var("a", "handle")
        assert_round_trip(PrimFunc([N, handle], S.BlockRealize([], TRUE, block), None, {handle: A}))


# ---- axes


def axis_line(dom, dtype="int32", kind=IterVar.DataPar, value=0):
    axis = IterVar(dom, Var("v", dtype), kind)
    block = S.Block([axis], [], [], "b", ZERO)
    return line_of(PrimFunc([N], S.BlockRealize([value], TRUE, block)), "v = ")


AXES = [
    ((Range(0, 8),), "v = T.axis.spatial(8, 0)"),
    ((Range(2, 8),), "v = T.axis.spatial((2, 8), 0)"),
    ((Range(0, N),), "v = T.axis.spatial(n, 0)"),
    ((Range.from_min_extent(N, 4),), "v = T.axis.spatial((n, n + 4), 0)"),
    ((Range(0, 8), "int64"), 'v = T.axis.spatial(8, 0, dtype="int64")'),
    ((Range(IntImm("int64", 0), IntImm("int64", 8)), "int64"), "v = T.axis.spatial(T.int64(8), 0)"),
    ((Range(0, 8), "int32", IterVar.CommReduce), "v = T.axis.reduce(8, 0)"),
    ((Range(0, 8), "int32", IterVar.Ordered), "v = T.axis.scan(8, 0)"),
    ((Range(0, 8), "int32", IterVar.Opaque), "v = T.axis.opaque(8, 0)"),
    ((Range(0, 8), "int32", IterVar.DataPar, N * 2), "v = T.axis.spatial(8, n * 2)"),
]


@pytest.mark.parametrize(("arguments", "wanted"), AXES, ids=[wanted for _, wanted in AXES])
def test_an_axis(arguments, wanted):
    assert axis_line(*arguments) == wanted


def block_of(loops, values, doms, sugar=True):
    """The lines of the axes of a block below loops; ``values`` are indices of loops."""
    axes = [IterVar(dom, Var(f"v{i}", "int32"), kind) for i, (dom, kind) in enumerate(doms)]
    block = S.Block(axes, [], [], "b", ZERO)
    bound = [loops[value][0] if isinstance(value, int) else value for value in values]
    body = S.BlockRealize(bound, TRUE, block)
    for var, first, extent, kind in reversed(loops):
        body = S.For(var, first, extent, kind, body)
    func = PrimFunc([N], body)
    assert_round_trip(func)
    lines = func.script(syntax_sugar=sugar).split("\n")
    return [line.strip() for line in lines if "T.axis" in line]


SPATIAL, REDUCE = IterVar.DataPar, IterVar.CommReduce


def loops(*extents, kind=S.ForKind.SERIAL, first=0):
    return [(Var(f"i{k}", "int32"), first, extent, kind) for k, extent in enumerate(extents)]


def test_axes_of_loops_are_one_line():
    nest = loops(4, 8)
    lines = block_of(nest, [0, 1], [(Range(0, 4), SPATIAL), (Range(0, 8), REDUCE)])
    assert lines == ['v0, v1 = T.axis.remap("SR", [i0, i1])']


def test_the_order_of_axes_is_their_own():
    lines = block_of(loops(4, 8), [1, 0], [(Range(0, 8), SPATIAL), (Range(0, 4), SPATIAL)])
    assert lines == ['v0, v1 = T.axis.remap("SS", [i1, i0])']


def test_one_axis_of_a_loop_stands_alone():
    assert block_of(loops(4), [0], [(Range(0, 4), SPATIAL)]) == ["v0 = T.axis.spatial(4, i0)"]


def test_an_axis_of_another_range_than_its_loop_stands_alone():
    lines = block_of(loops(4, 8), [0, 1], [(Range(0, 4), SPATIAL), (Range(0, 9), SPATIAL)])
    assert lines == ["v0 = T.axis.spatial(4, i0)", "v1 = T.axis.spatial(9, i1)"]


def test_an_axis_of_an_expression_parts_the_others():
    nest = loops(4, 8, 2)
    doms = [(Range(0, 4), SPATIAL), (Range(0, 8), SPATIAL), (Range(0, 3), SPATIAL),
            (Range(0, 2), REDUCE), (Range(0, 4), SPATIAL)]  # fmt: skip
    lines = block_of(nest, [0, 1, nest[2][0] + 1, 2, 0], doms)
    assert lines == [
        'v0, v1 = T.axis.remap("SS", [i0, i1])', "v2 = T.axis.spatial(3, i2 + 1)",
        'v3, v4 = T.axis.remap("RS", [i2, i0])',
    ]  # fmt: skip


def test_loops_that_begin_elsewhere_are_remapped_too():
    nest = loops(4, 8, first=2)
    doms = [(Range.from_min_extent(2, 4), SPATIAL), (Range.from_min_extent(2, 8), SPATIAL)]
    assert block_of(nest, [0, 1], doms) == ['v0, v1 = T.axis.remap("SS", [i0, i1])']


def test_a_scan_and_an_opaque_axis_are_never_remapped():
    doms = [(Range(0, 4), IterVar.Ordered), (Range(0, 8), IterVar.Opaque)]
    lines = block_of(loops(4, 8), [0, 1], doms)
    assert lines == ["v0 = T.axis.scan(4, i0)", "v1 = T.axis.opaque(8, i1)"]


def test_without_sugar_each_axis_has_a_line():
    doms = [(Range(0, 4), SPATIAL), (Range(0, 8), REDUCE)]
    lines = block_of(loops(4, 8), [0, 1], doms, sugar=False)
    assert lines == ["v0 = T.axis.spatial(4, i0)", "v1 = T.axis.reduce(8, i1)"]


def test_parallel_loops_are_no_grid_but_their_axes_are_remapped():
    doms = [(Range(0, 4), SPATIAL), (Range(0, 8), SPATIAL)]
    lines = block_of(loops(4, 8, kind=S.ForKind.PARALLEL), [0, 1], doms)
    assert lines == ['v0, v1 = T.axis.remap("SS", [i0, i1])']


# ---- memory and attributes


def statement_line(stmt, part):
    return line_of(PrimFunc([N], stmt), part)


def allocate(extents=(8,), condition=TRUE, annotations=None, body=ZERO, dtype="float32"):
    return S.Allocate(POINTER, dtype, list(extents), condition, body, annotations)


MEMORY = [
    (allocate(), 'p = T.allocate([8], "float32", "global")'),
    (allocate(condition=N < 3), 'p = T.allocate([8], "float32", "global", n < 3)'),
    (
        allocate(annotations={"k": [1]}),
        'p = T.allocate([8], "float32", "global", annotations={"k": [1]})',
    ),
    (allocate(extents=(N, N * 2)), 'p = T.allocate([n, n * 2], "float32", "global")'),
    (allocate(dtype="int8"), 'p = T.allocate([8], "int8", "global")'),
]


@pytest.mark.parametrize(("stmt", "wanted"), MEMORY, ids=[wanted for _, wanted in MEMORY])
def test_memory(stmt, wanted):
    if stmt.dtype == "int8":
        assert wanted in PrimFunc([N], stmt).script()
    else:
        assert statement_line(stmt, "T.allocate") == wanted


CONSTANTS = [
    (np.array([1, 2], "int32"), "[1, 2]"), (np.array([True, False]), "[True, False]"),
    (np.array([0.5, -0.0], "float32"), "[0.5, -0.0]"),
    (np.array([np.inf, 1], "float32"), 'metadata["runtime.NDArray"][0]'),
    (np.arange(100, dtype="int32"), 'metadata["runtime.NDArray"][0]'),
    (np.zeros((2, 2), "int32"), 'metadata["runtime.NDArray"][0]'),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CONSTANTS)))
def test_constant_memory(number):
    data, text = CONSTANTS[number]
    dtype = str(data.dtype)
    storage = PrimType("int8" if dtype == "bool" else dtype)
    var = Var("c", PointerType(storage, "global"))
    stmt = S.AllocateConst(var, dtype, list(data.shape), array(data), ZERO, {"k": 1})
    line = statement_line(stmt, "T.allocate_const")
    assert line.startswith(f"c = T.allocate_const({text}, ")
    assert line.endswith('annotations={"k": 1})')


def test_memory_that_a_buffer_declares_is_one_line_only_if_it_is_the_same():
    B = decl_buffer((8,), "float32", "B", data=POINTER)
    whole = PrimFunc([], allocate(body=S.DeclBuffer(B, ZERO)))
    assert line_of(whole, "decl_buffer") == "B = T.decl_buffer((8,))"
    for other in (
        allocate(extents=(16,), body=S.DeclBuffer(B, ZERO)),
        allocate(extents=(8, 1), body=S.DeclBuffer(B, ZERO)),
        allocate(condition=N < 3, body=S.DeclBuffer(B, ZERO)),
        allocate(annotations={"k": 1}, body=S.DeclBuffer(B, ZERO)),
    ):
        line = line_of(PrimFunc([N], other), "decl_buffer")
        assert line == "B = T.decl_buffer((8,), data=p)"


def test_without_sugar_memory_and_buffer_are_two_lines():
    B = decl_buffer((8,), "float32", "B", data=POINTER)
    text = PrimFunc([], allocate(body=S.DeclBuffer(B, ZERO))).script(syntax_sugar=False)
    assert 'p = T.allocate([8], "float32", "global")' in text
    assert "B = T.decl_buffer((8,), data=p)" in text


ATTRIBUTES = [
    (1, "1"), (True, "T.bool(True)"), (None, "None"), ("x", '"x"'), (1.5, "1.5"),
    ([1, [2]], "[1, [2]]"), ({"b": 1, "a": 2}, '{"a": 2, "b": 1}'), ({2: 1}, "{2: 1}"),
    (IntImm("int64", 3), "T.int64(3)"), (FloatImm("float32", 0.5), "T.float32(0.5)"),
    (TRUE, "T.bool(True)"), (StringImm("x"), '"x"'),
    (float("nan"), 'metadata["float"][0]'), (N, "n"), (N + 1, "n + 1"),
    (IndexMap.from_func(lambda i: (i // 4, i % 4)),
     "T.index_map(lambda i: (i // T.int64(4), i % T.int64(4)))"),
    (IndexMap.from_func(lambda i: (i,), index_dtype="int32"),
     'T.index_map(lambda i: (i,), index_dtype="int32")'),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ATTRIBUTES)), ids=[text for _, text in ATTRIBUTES])
def test_an_attribute_of_a_block(number):
    value, text = ATTRIBUTES[number]
    block = S.Block([], [], [], "root", ZERO, annotations={"key": value})
    func = PrimFunc([N], S.BlockRealize([], TRUE, block))
    (line,) = [item.strip() for item in func.script().split("\n") if "T.block_attr" in item]
    assert line == f'T.block_attr({{"key": {text}}})'
    if text != 'metadata["float"][0]':  # not a number equals nothing, itself included
        assert_round_trip(func)


# ---- vectors in indices

INDICES = [
    (Ramp(IntImm("int32", 0), IntImm("int32", 1), 4), "0:4"),
    (Ramp(IntImm("int32", 2), IntImm("int32", 3), 4), "2:14:3"),
    (Ramp(N, IntImm("int32", 1), 4), "n:n + 4"),
    (Ramp(N * 4, IntImm("int32", 2), 2), "n * 4:n * 4 + 4:2"),
    (Ramp(IntImm("int32", 8), IntImm("int32", -1), 4), "T.Ramp(8, -1, 4)"),
    (Ramp(IntImm("int32", 8), IntImm("int32", 0), 4), "T.Ramp(8, 0, 4)"),
    (Ramp(N, N, 4), "T.Ramp(n, n, 4)"),
    (Ramp(IntImm("int64", 0), IntImm("int64", 1), 4), "T.int64(0):T.int64(4)"),
]


@pytest.mark.parametrize(("index", "text"), INDICES, ids=[text for _, text in INDICES])
def test_an_index_of_several_elements(index, text):
    B, handle = decl_buffer((16,), "float32", "B"), Var("b", "handle")
    store = S.BufferStore(B, B[index], [index])
    func = PrimFunc([N, handle], store, None, {handle: B})
    assert line_of(func, "] = B") == f"B[{text}] = B[{text}]"
