"""Typed values of TensorIR scripts: constants at the edges of each type, variables, pointers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.lib.round_trip import assert_round_trip
from weft.ir.expr import FloatImm, IntImm, integer_range
from weft.ir.structural import structural_equal
from weft.ir.type import PointerType
from weft.script import from_source
from weft.script import tir as T
from weft.script.ir_builder import tir_value
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op
from weft.tir.expr import Broadcast, Call, Cast, IterVar, SizeVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Evaluate

INTEGERS = ["int4", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


def evaluated(value):
    """The value that comes back of the text of a function that evaluates one."""
    func = PrimFunc([], Evaluate(value))
    assert_round_trip(func)
    return from_source(func.script()).body.value


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_ends_of_an_integer_type_come_back(dtype):
    low, high = integer_range(DataType(dtype))
    for number in (low, high):
        value = getattr(T, dtype)(number)
        assert (value.dtype, value.value) == (dtype, number)
        assert structural_equal(evaluated(value), value)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_what_an_integer_type_does_not_hold_is_refused(dtype):
    low, high = integer_range(DataType(dtype))
    for number in (low - 1, high + 1):
        with pytest.raises(IRValueError, match=f"{number} does not fit {dtype}"):
            getattr(T, dtype)(number)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "0.1", "-0.0", "1e-7", 3, 1.5, -2])
def test_a_number_of_a_float_type_comes_back(dtype, number):
    value = getattr(T, dtype)(number)
    back = evaluated(value)
    assert isinstance(value, FloatImm)
    assert (back.dtype, repr(back.value)) == (value.dtype, repr(value.value))


def test_a_float_is_rounded_to_its_type():
    assert T.float16(0.1).value == float(np.float16(0.1))
    assert T.float32(0.1).value == float(np.float32(0.1))
    assert math.copysign(1, T.float32("-0.0").value) == -1


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_narrow_floats_have_a_constructor(dtype):
    value = getattr(T, dtype)(1.5)
    assert value.dtype == dtype
    assert structural_equal(evaluated(value), value)


VECTORS = ["float32x4", "int8x16", "boolx8", "uint16x2"]


@pytest.mark.parametrize("dtype", VECTORS)
def test_a_vector_of_one_number(dtype):
    value = getattr(T, dtype)(1)
    assert isinstance(value, Broadcast)
    assert value.dtype == dtype
    assert value.value.dtype == DataType(dtype).element
    assert evaluated(value).dtype == dtype


def test_an_expression_is_converted():
    x = Var("x", "int32")
    assert isinstance(T.int64(x), Cast)
    assert T.int32(x) is x
    assert T.bool(True).dtype == "bool"
    assert T.boolean(False).value == 0
    assert T.int32(2.75).value == 2
    assert T.float32x4(x).value.dtype == "float32"
    assert T.float64(IntImm("int32", 3)).value == 3.0


@pytest.mark.parametrize("text", ["x", "", "1,5", "infinite"])
def test_a_text_that_is_no_number(text):
    with pytest.raises(IRValueError, match="T.float32: expected a number, 'inf', '-inf' or 'nan'"):
        T.float32(text)


def test_variables_of_every_kind():
    assert type(T.int32()) is Var
    assert isinstance(T.int64(is_size_var=True), SizeVar)
    assert T.handle().dtype == "handle"
    assert isinstance(T.handle(is_size_var=True), SizeVar)
    assert tir_value.var("int8", "n").name == "n"
    assert T.int32().name == ""


POINTERS = [
    (lambda: T.handle("float32"), "float32", "global"),
    (lambda: T.handle("float32", "shared"), "float32", "shared"),
    (lambda: T.handle(T.int8, "local"), "int8", "local"),
    (lambda: T.Ptr("int32"), "int32", "global"),
    (lambda: T.Ptr(T.int32, "shared"), "int32", "shared"),
    (lambda: T.Ptr[T.float16], "float16", "global"),
    (lambda: T.Ptr[T.float16, "local"], "float16", "local"),
    (lambda: T.ptr("float32x4"), "float32x4", "global"),
    (lambda: T.buffer_var("float32", "shared"), "float32", "shared"),
]


@pytest.mark.parametrize("number", range(len(POINTERS)))
def test_pointers_by_each_of_their_names(number):
    make, dtype, scope = POINTERS[number]
    pointer = make()
    annotation = pointer.type_annotation
    assert isinstance(annotation, PointerType)
    assert (annotation.element_type.dtype, annotation.storage_scope) == (dtype, scope)
    pointer.name = "p"
    func = PrimFunc([pointer], Evaluate(pointer))
    assert_round_trip(func)


def test_an_expression_becomes_a_handle():
    cast = T.handle(T.uint64(0))
    assert isinstance(cast, Cast)
    assert cast.dtype == "handle"


def test_limits_of_a_type():
    assert T.min_value("int8").value == -128
    assert T.max_value("uint16").value == 65535
    assert T.max_value(T.int32).value == 2**31 - 1
    assert T.infinity("float32").value == math.inf
    assert evaluated(T.infinity(T.float64)).value == math.inf


def test_casts_by_both_names_and_orders():
    x = Var("x", "int32")
    assert T.cast(x, "int64").dtype == T.Cast("int64", x).dtype == T.cast(x, T.int64).dtype
    assert T.Cast(T.float32, x).dtype == "float32"
    assert T.cast(3, "float32").value == 3.0


def test_an_iteration_variable_takes_a_range_in_each_form():
    v = Var("v", "int32")
    pairs = [T.iter_var(v, (0, 8), "DataPar", ""), T.iter_var(v, [0, 8], "DataPar", ""),
             T.iter_var(v, T.Range(0, 8), IterVar.DataPar, "")]  # fmt: skip
    assert {int(item.dom.extent) for item in pairs} == {8}
    assert T.iter_var(v, None, "ThreadIndex", "threadIdx.x").dom is None
    with pytest.raises(KeyError):
        T.iter_var(v, None, "NoSuchKind", "")


def test_ranges():
    assert int(T.Range(2, 8).extent) == 6
    assert int(T.Range.from_min_extent(2, 8).extent) == 8


REDUCERS = [
    (lambda x, y: x + y, [T.float32(0)], 1),
    (lambda a, b, c, d: (a + c, T.max(b, d)), [T.float32(0), T.float32("-inf")], 2),
]


@pytest.mark.parametrize(("combiner", "identity", "count"), REDUCERS, ids=["one", "two"])
def test_a_reducer_has_a_left_and_a_right_for_each_value(combiner, identity, count):
    reducer = T.comm_reducer(combiner, identity)
    assert len(reducer.lhs) == len(reducer.rhs) == len(reducer.result) == count
    assert {var.dtype for var in (*reducer.lhs, *reducer.rhs)} == {"float32"}


def test_a_reducer_needs_a_function_of_twice_its_identities():
    with pytest.raises(IRValueError, match="1 identities need a function of 2 values, got one of"):
        T.comm_reducer(lambda x, y, z: x, [T.float32(0)])


def test_a_let_binds_one_variable():
    x, y = Var("x", "int32"), Var("y", "int32")
    assert T.Let(x + 1, where={x: 2}).var is x
    with pytest.raises(IRValueError, match="T.Let: expected one variable in where=, got 2"):
        T.Let(x + y, where={x: 1, y: 2})


def test_values_kept_for_python_unpack():
    first, second = T.meta_var((1, [2]))
    assert (first.value, second.value) == (1, [2])


CALLS = [
    (lambda: T.type_annotation("float32"), "tir.type_annotation", "float32"),
    (lambda: T.type_annotation(T.int8), "tir.type_annotation", "int8"),
    (lambda: T.TVMBackendAllocWorkspace(1, 0, T.uint64(8), 2, 32), "tir.TVMBackendAllocWorkspace",
     "handle"),
    (lambda: T.TVMBackendFreeWorkspace(1, 0, 2), "tir.TVMBackendFreeWorkspace", "int32"),
    (lambda: T.call_extern("int32", "f", 1), "tir.call_extern", "int32"),
    (lambda: T.call_extern("f", 1, dtype="int32"), "tir.call_extern", "int32"),
    (lambda: T.reinterpret(T.int32(1), dtype="float32"), "tir.reinterpret", "float32"),
    (lambda: T.exp(T.float32(1), dtype="float32"), "tir.exp", "float32"),
    (lambda: T.tvm_storage_sync("shared", dtype="int32"), "tir.tvm_storage_sync", "int32"),
    (lambda: T.tvm_warp_shuffle(1, T.float16(2), 3, 4, 5), "tir.tvm_warp_shuffle", "float16"),
    (lambda: T.tvm_warp_shuffle_up(1, T.float16(2), 3, 4, 5, dtype=T.int8),
     "tir.tvm_warp_shuffle_up", "int8"),
    (lambda: T.tvm_warp_activemask(), "tir.tvm_warp_activemask", "uint32"),
    (lambda: T.get_active_lane_mask(T.boolx4, 0, 3), "tir.get_active_lane_mask", "boolx4"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[f"{r[1]}-{r[2]}" for r in CALLS])
def test_the_type_of_an_intrinsic(number):
    make, name, dtype = CALLS[number]
    call = make()
    assert isinstance(call, Call)
    assert (call.op.name, call.dtype) == (name, dtype)


def test_a_name_that_T_does_not_have_suggests_one():
    for name, near in (("exq", "T.exp"), ("prim_fun", "T.prim_func"), ("floot32", "T.float32")):
        with pytest.raises(AttributeError, match=f"T.{name} is not part of TVMScript.*{near}"):
            getattr(T, name)
    with pytest.raises(AttributeError):
        T.__nothing__


def test_a_type_is_printed_as_it_is_written():
    assert repr(T.float32) == "T.float32"
    assert repr(T.int8x16) == "T.int8x16"
    assert repr(T.Buffer) == "T.Buffer"


def test_a_target_of_text_and_of_attributes():
    assert T.target("llvm").kind.name == "llvm"
    assert T.Target({"kind": "llvm", "num-cores": 4}).attrs["num-cores"] == 4


def test_buffers_in_brackets():
    assert [int(size) for size in T.Buffer[8].shape] == [8]
    assert [int(size) for size in T.Buffer[(8, 4), "int8"].shape] == [8, 4]
    assert [int(size) for size in T.Buffer[8, 4].shape] == [8, 4]
    assert T.Buffer[(8,), T.int8].dtype == "int8"


def test_what_a_shape_may_not_hold():
    for size in (True, 2.5, "n", None):
        with pytest.raises(IRTypeError, match="a buffer's shape holds integers and expressions"):
            T.Buffer((size,), "float32")


def test_maps_of_indices():
    index_map = T.index_map(lambda i, j: (j, i // 4, i % 4), index_dtype="int32")
    assert {var.dtype for var in index_map.initial_indices} == {"int32"}
    assert len(index_map.final_indices) == 3
    assert T.index_map(lambda i: i).initial_indices[0].dtype == "int64"


def test_a_power_by_its_short_name():
    x = Var("x", "float32")
    assert structural_equal(T.pow(x, T.float32(2)), op.power(x, T.float32(2)))
