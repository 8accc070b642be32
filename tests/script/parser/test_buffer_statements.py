"""Buffers of TensorIR scripts: declarations with every argument, views, regions, loads, stores."""

from __future__ import annotations

import pytest

from tests.lib.round_trip import assert_round_trip
from tests.lib.script_errors import error_of
from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.ir.structural import assert_structural_equal, structural_equal
from weft.runtime.ndarray import array
from weft.script import from_source
from weft.script import tir as T
from weft.tir import stmt as S
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Broadcast, Cast, Ramp, Var

HEAD = "@T.prim_func(check_well_formed=False)\ndef f(a: T.handle, A: T.Buffer((64,), 'float32'), " \
       "n: T.int32):\n"  # fmt: skip


def parse(*lines):
    return from_source(HEAD + "".join(f"    {line}\n" for line in lines))


def declared(arguments):
    """The buffer of ``T.match_buffer(a, ...)``."""
    func = parse(f"B = T.match_buffer(a, {arguments})", "B[0] = B[1]")
    assert_round_trip(func)
    return func.buffer_map[func.params[0]]


# Arguments of a declaration, and what they say about the buffer.
ARGUMENTS = [
    ("(8,)", "dtype", "float32"),
    ("(8,), 'int8'", "dtype", "int8"),
    ("(8,), T.int8", "dtype", "int8"),
    ("(8,), dtype='float16x4'", "dtype", "float16x4"),
    ("(8,), 'bool'", "dtype", "bool"),
    ("8", "shape", [8]),
    ("[8]", "shape", [8]),
    ("(T.int64(8),)", "shape", [8]),
    ("(8,), scope='shared'", "scope", "shared"),
    ("(8,), align=128", "data_alignment", 128),
    ("(8,), align=-1", "data_alignment", 64),
    ("(8,), offset_factor=16", "offset_factor", 16),
    ("(8,), buffer_type='auto_broadcast'", "buffer_type", 2),
    ("(8,), strides=[2]", "strides", [2]),
    ("(8,), elem_offset=4", "elem_offset", 4),
    ("(4, 8), axis_separators=[1]", "axis_separators", [1]),
]


@pytest.mark.parametrize(("arguments", "field", "value"), ARGUMENTS, ids=[r[0] for r in ARGUMENTS])
def test_an_argument_of_a_declaration(arguments, field, value):
    if arguments.startswith("(4, 8)"):
        func = parse(f"B = T.match_buffer(a, {arguments})", "B[0, 0] = B[1, 0]")
        assert_round_trip(func)
        buffer = func.buffer_map[func.params[0]]
    else:
        buffer = declared(arguments)
    given = getattr(buffer, field)
    given = given() if callable(given) else given
    plain = [int(item) for item in given] if isinstance(value, list) else given
    assert plain == value or int(plain) == value


def test_extents_keep_the_type_that_they_are_written_with():
    assert declared("(T.int64(8),)").shape[0].dtype == "int64"
    assert declared("(8,)").shape[0].dtype == "int32"


def test_strides_and_offset_by_name_have_the_type_of_the_extents():
    buffer = declared("(T.int64(8),), strides=['s'], elem_offset='o'")
    assert (buffer.strides[0].name, buffer.strides[0].dtype) == ("s", "int64")
    assert (buffer.elem_offset.name, buffer.elem_offset.dtype) == ("o", "int64")


def test_an_offset_that_is_only_known_to_divide_is_a_variable():
    buffer = declared("(8,), offset_factor=4")
    assert isinstance(buffer.elem_offset, Var)
    assert buffer.elem_offset.name == "B_elem_offset"


def test_a_pointer_that_another_buffer_shares():
    func = parse("B = T.match_buffer(a, (8,))", "C = T.Buffer((2, 4), data=B.data)",
                 "C[0, 0] = B[0]")  # fmt: skip
    store = func.body
    assert store.buffer.data is func.buffer_map[func.params[0]].data
    assert_round_trip(func)


WRONG = [
    ("B = T.match_buffer(a)", "T.match_buffer: expected a shape for a handle"),
    ("B = T.match_buffer(n, (8,))", "T.match_buffer: n is int32, expected a T.handle"),
    ("B = T.match_buffer(a, (8,), data=n)", "a buffer's data is a pointer, n is int32"),
    ("B = T.match_buffer(a, (True,))", "a buffer's shape holds integers and expressions, got True"),
    ("B = T.match_buffer(a, ('n',))", "a buffer's shape holds integers and expressions, got 'n'"),
    ("B = T.alloc_buffer((T.int64(-2),))", "a buffer's extent must not be negative, got"),
    ("B = T.alloc_buffer((8,), buffer_type='other')",
     "a buffer's type is 'default' or 'auto_broadcast', got 'other'"),
    ("B = T.alloc_buffer((8,), axis_separators=[5])",
     "a buffer of 1 dimensions has no axis separator 5"),
    ("B = T.allocate((8,), 'float32', annotations=3)", "'int' object is not iterable"),
    ("B = T.allocate_const([1.5, 2], 'int32', [2])",
     "T.allocate_const: int32 does not hold the values [1.5, 2]"),
    ("B = T.allocate_const([1, 2], 'int32', [2.5])",
     "'float' object cannot be interpreted as an integer"),
    ("A[8:0:-1] = A[0:8]", "a slice in a load or store goes up, got the step -1; write T.Ramp("),
    ("x = A[0:8:0]", "a slice in a load or store goes up, got the step 0; write T.Ramp("),
    ("x = A[4::2]", "a slice in a load or store needs an end, such as A[0:4]"),
    ("T.launch_thread('threadIdx.x', A[0])", "T.launch_thread: expected an integer extent, got"),
    ("T.launch_thread(n, 4)", "T.launch_thread: expected a tag or a variable of T.env_thread"),
    ("T.attr(A, 3, 1)", "T.attr: expected the name of an attribute, got 3"),
    ("A[0] = T.call_extern('float32', 3)", "StringImm: expected a text, got 3"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), WRONG, ids=[line for line, _ in WRONG])
def test_a_wrong_declaration_is_said_at_its_line(line, message):
    found, place = error_of(f"{HEAD}    {line}\n")
    assert found.startswith(message)
    assert place in line


def test_a_handle_has_one_buffer():
    found, place = error_of(
        HEAD + "    B = T.match_buffer(a, (8,))\n    C = T.match_buffer(a, (8,))\n"
    )
    assert found == "T.match_buffer: a has a buffer already"
    assert place == "T.match_buffer(a, (8,))"


def test_memory_inside_of_a_block_belongs_to_the_block():
    func = parse(
        "for i in range(8):", "    with T.block('b'):", "        vi = T.axis.spatial(8, i)",
        "        B = T.alloc_buffer((4,))", "        B[0] = A[vi]", "        A[vi] = B[0]",
    )  # fmt: skip
    root, inner = func.body.block, func.body.block.body.body.block
    assert not root.alloc_buffers
    assert [buffer.name for buffer in inner.alloc_buffers] == ["B"]
    assert [region.buffer.name for region in inner.reads] == ["A"]
    assert_round_trip(func)


def test_memory_outside_of_blocks_belongs_to_the_root():
    func = parse("B = T.alloc_buffer((4,))", "C = T.sblock_alloc_buffer((4,))", "B[0] = A[0]",
                 "C[0] = B[0]")  # fmt: skip
    assert [buffer.name for buffer in func.body.block.alloc_buffers] == ["B", "C"]
    assert_round_trip(func)


def test_a_region_of_a_block_takes_its_shape_and_type():
    func = parse(
        "with T.block('b'):", "    T.reads(A[4:12])", "    T.writes()",
        "    B = T.match_buffer(A[4:12])", "    T.evaluate(B[0])",
    )  # fmt: skip
    (match,) = func.body.block.match_buffers
    assert [int(size) for size in match.buffer.shape] == [8]
    assert match.buffer.dtype == "float32"
    assert int(match.source.region[0].min) == 4


# A region as it is written, and the pairs of first element and number of elements.
REGIONS = [
    ("A[3]", [(3, 1)]),
    ("A[2:5]", [(2, 3)]),
    ("A[0:64]", [(0, 64)]),
    ("A", [(0, 64)]),
    ("A[T.Ramp(2, 3, 4)]", [(2, 12)]),
    ("[A[0], A[1]]", [(0, 1), (1, 1)]),
    ("(A[0:2], A[4:6])", [(0, 2), (4, 2)]),
]


@pytest.mark.parametrize(("region", "wanted"), REGIONS, ids=[row[0] for row in REGIONS])
def test_what_a_block_says_that_it_reads(region, wanted):
    func = parse("with T.block('b'):", f"    T.reads({region})", "    T.writes()",
                 "    T.evaluate(0)")  # fmt: skip
    regions = [item.region[0] for item in func.body.block.reads]
    assert [(int(item.min), int(item.extent)) for item in regions] == wanted


def test_a_region_that_starts_at_a_variable_keeps_its_extent():
    func = parse(
        "with T.block('b'):", "    T.reads(A[n:n + 4], A[n * 2:n * 2 + 1])", "    T.writes()",
        "    T.evaluate(0)",
    )  # fmt: skip
    extents = [region.region[0].extent for region in func.body.block.reads]
    assert [int(extent) for extent in extents] == [4, 1]
    assert_round_trip(func)


# An index of a load, and the index of the load that is built.
INDICES = [
    ("0:4", Ramp(IntImm("int32", 0), IntImm("int32", 1), IntImm("int32", 4))),
    ("2:10:2", Ramp(IntImm("int32", 2), IntImm("int32", 2), IntImm("int32", 4))),
    (":4", Ramp(IntImm("int32", 0), IntImm("int32", 1), IntImm("int32", 4))),
    ("0:5:2", Ramp(IntImm("int32", 0), IntImm("int32", 2), IntImm("int32", 3))),
    ("3:4", IntImm("int32", 3)),
    ("T.Ramp(0, 2, 4)", Ramp(IntImm("int32", 0), IntImm("int32", 2), IntImm("int32", 4))),
    ("T.Broadcast(3, 4)", Broadcast(IntImm("int32", 3), IntImm("int32", 4))),
]


@pytest.mark.parametrize(("index", "wanted"), INDICES, ids=[row[0] for row in INDICES])
def test_an_index_of_several_elements(index, wanted):
    lanes = wanted.dtype.lanes
    value = f"T.Broadcast(T.float32(0), {lanes})" if lanes > 1 else "T.float32(0)"
    for line in (f"A[{index}] = {value}", f"x: T.let = A[{index}]"):
        func = parse(line, "T.evaluate(0)")
        (place,) = [
            node.indices[0] for node in collect(func.body, (S.BufferStore, BufferLoad))
        ]  # fmt: skip
        assert structural_equal(place, wanted)
        assert_round_trip(func)


# Stored value, and its type in the program.
STORED = [
    ("1", "A[0]", "float32"), ("1.5", "A[0]", "float32"), ("True", "A[0]", "float32"),
    ("n", "A[0]", "float32"), ("T.float16(1)", "A[0]", "float32"),
    ("T.Broadcast(n, 4)", "A[0:4]", "float32x4"), ("A[4:8]", "A[0:4]", "float32x4"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "place", "dtype"), STORED, ids=[row[0] for row in STORED])
def test_a_stored_value_has_the_type_of_the_buffer(value, place, dtype):
    store = parse(f"{place} = {value}").body
    assert store.value.dtype == dtype


def test_a_number_is_stored_as_a_constant_and_a_variable_as_a_conversion():
    number, variable = parse("A[0] = 1", "A[1] = n").body.seq
    assert number.value.value == 1.0
    assert isinstance(variable.value, Cast)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/"])
def test_an_augmented_store_reads_and_writes_the_same_place(operator):
    short, full = parse(f"A[n + 1] {operator}= 2.0"), parse(f"A[n + 1] = A[n + 1] {operator} 2.0")
    assert_structural_equal(short, full)


def test_a_vector_is_updated_in_place():
    short = parse("A[0:4] += A[4:8]")
    assert_structural_equal(short, parse("A[0:4] = A[0:4] + A[4:8]"))


def test_predicates_of_loads_and_stores():
    func = parse(
        "mask: T.let = T.get_active_lane_mask('uint1x4', n, 8)",
        "A.vstore([T.Ramp(0, 1, 4)], A.vload([T.Ramp(4, 1, 4)], predicate=mask), predicate=mask)",
    )
    store = func.body.body
    assert store.predicate is store.value.predicate
    assert_round_trip(func)


def test_constant_memory_of_lists_arrays_and_nested_lists():
    func = parse(
        "k = T.allocate_const([1, 2, 3, 4], 'int32', [2, 2])",
        "j = T.allocate_const([[1, 2], [3, 4]], 'float16', [2, 2], annotations={'note': 1})",
        "T.evaluate(k)",
    )
    first, second = func.body, func.body.body
    assert first.data.numpy().tolist() == second.data.numpy().tolist() == [[1, 2], [3, 4]]
    assert (str(first.data.dtype), str(second.data.dtype)) == ("int32", "float16")
    assert second.annotations["note"] == 1
    assert_round_trip(func)


def test_constant_memory_of_an_array_of_the_caller():
    values = array([1.5, 2.5])

    @T.prim_func
    def func(A: T.Buffer((2,), "float64")):
        k = T.allocate_const(values, "float64", [2])
        K = T.Buffer((2,), "float64", data=k)
        A[0] = K[1]

    assert func.body.data is values


def test_allocated_memory_with_a_condition_and_annotations():
    func = parse(
        "p = T.allocate([n, 4], 'int8', 'local', n > 2, annotations={'key': 'value'})",
        "T.evaluate(p)",
    )
    allocate = func.body
    assert (allocate.dtype, allocate.buffer_var.type_annotation.storage_scope) == ("int8", "local")
    assert allocate.extents[0] is func.params[2]
    assert allocate.annotations["key"] == "value"
    assert not isinstance(allocate.condition, IntImm)
    assert_round_trip(func)


def test_a_declaration_without_memory_allocates_it():
    func = parse("B = T.decl_buffer((8, 4), 'int32', scope='local')", "B[0, 0] = n")
    allocate, declaration = func.body, func.body.body
    assert allocate.buffer_var is declaration.buffer.data
    assert [int(extent) for extent in allocate.extents] == [8, 4]
    assert allocate.buffer_var.type_annotation.storage_scope == "local"


@pytest.mark.parametrize("spelling", ["T.buffer_decl", "T.buffer", "T.Buffer"])
def test_a_view_by_each_of_its_names(spelling):
    func = parse(f"B = {spelling}((8, 8), 'float32', data=A.data)", "B[1, 1] = A[0]")
    assert func.body.buffer.data is func.buffer_map[func.params[1]].data
    assert func.body.buffer.name == "B"


def test_realized_regions_have_scope_and_condition():
    func = parse("with T.realize(A[0:8], 'shared', n > 1):", "    A[0] = 1.0")
    attr = func.body
    assert (attr.attr_key, attr.value.value) == ("realize_scope", "shared")
    assert not isinstance(attr.body.condition, IntImm)
    assert_round_trip(func)


ATTRIBUTES = ["offset_of([3])", "scope()", "get_flattened_buffer()", "vload([0])", "ndim"]


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_what_a_text_may_ask_of_a_buffer(attribute):
    value = from_source(
        f"x = B.{attribute}\n@T.prim_func\ndef f():\n    T.func_attr({{'x': str(x)}})\n"
        "    T.evaluate(0)\n", {"B": T.Buffer((8,), "float32")},
    ).attrs["x"]  # fmt: skip
    assert value
