"""TensorIR types as LLVM writes them: LLVM itself reads every type and constant back."""

from __future__ import annotations

import math
import struct

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

from weft.codegen.llvm import types
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError

SCALARS = {
    "bool": "i1", "handle": "ptr", "float16": "half", "bfloat16": "i16", "float32": "float",
    "float64": "double", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
}  # fmt: skip
NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 65504.0, -65504.0, 6e-8, 5.96e-8, 1e-7, 2.5, 1e-3,
    math.inf, -math.inf, math.nan, math.pi,
)  # fmt: skip


def constant_read_by_llvm(kind, text):
    """A global of that type and value, as LLVM prints it after it has read it."""
    module = llvm.parse_assembly(f"@g = global {kind} {text}")
    return str(module.get_global_variable("g")).split(" global ")[1].strip()


@pytest.mark.parametrize("dtype", sorted(SCALARS))
def test_types_of_scalars_and_vectors(dtype):
    kind = DataType(dtype)
    assert types.llvm_type(kind) == SCALARS[dtype]
    if dtype != "handle":
        assert types.llvm_type(kind.with_lanes(8)) == f"<8 x {SCALARS[dtype]}>"
    in_memory = "i8" if dtype == "bool" else SCALARS[dtype]
    assert types.memory_type(kind) == in_memory
    assert constant_read_by_llvm(types.memory_type(kind), "zeroinitializer").startswith(in_memory)


def test_a_vector_of_bool_is_one_of_bytes_in_memory():
    assert types.memory_type(DataType("bool").with_lanes(4)) == "<4 x i8>"
    assert types.llvm_type(DataType("bool").with_lanes(4)) == "<4 x i1>"
    assert types.memory_type(DataType("float32").with_lanes(4)) == "<4 x float>"


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("bool", 1), ("int8", 1), ("int4", 1), ("float16", 2), ("bfloat16", 2), ("int32", 4),
     ("float64", 8), ("handle", 8), ("uint64", 8)],
)  # fmt: skip
def test_bytes_of_an_element(dtype, size):
    assert types.element_bytes(DataType(dtype)) == size


def test_what_has_no_type():
    with pytest.raises(UnsupportedError, match="code generation for int4x8 is not available"):
        types.llvm_type(DataType("int4").with_lanes(8))
    with pytest.raises(UnsupportedError, match="at most 4096 lanes, got int8x4097; split the"):
        types.llvm_type(DataType("int8").with_lanes(4097))
    with pytest.raises(UnsupportedError, match="a vector of a fixed number of lanes, got"):
        types.llvm_type(DataType("float32").with_lanes(4, True))


@pytest.mark.parametrize("dtype", [name for name in SCALARS if "int" in name])
def test_integer_constants_are_what_llvm_reads(dtype):
    kind = DataType(dtype)
    limits = np.iinfo(dtype)
    for value in (limits.min, limits.max, 0, 1, limits.max // 2, limits.max // 2 + 1):
        text = types.int_constant(int(value), kind)
        signed = struct.unpack("<q", struct.pack("<q", int(text)))[0]
        assert signed % 2**kind.bits == int(value) % 2**kind.bits
        assert constant_read_by_llvm(SCALARS[dtype], text) == f"{SCALARS[dtype]} {text}"


def test_truths_are_words():
    boolean = DataType("bool")
    assert [types.int_constant(value, boolean) for value in (0, 1)] == ["false", "true"]


@pytest.mark.parametrize(("kind", "dtype"), [("half", "float16"), ("float", "float32"),
                                             ("double", "float64")])  # fmt: skip
def test_real_constants_are_exact(kind, dtype):
    """LLVM refuses a float constant that is not the double of a float, and prints it alike."""
    for value in (*NUMBERS, 1e30, -1e-30, 3.4e38) if kind != "half" else NUMBERS:
        text = types.float_constant(value, kind)
        read = constant_read_by_llvm(kind, text).split(" ")[1]
        digits = text.removeprefix("0x").removeprefix("H")
        code, size = ("<e", 2) if kind == "half" else ("<d", 8)
        stored = struct.unpack(code, int(digits, 16).to_bytes(size, "little"))[0]
        wanted = float(np.dtype(dtype).type(value))
        assert stored == wanted or (math.isnan(stored) and math.isnan(wanted))
        assert math.copysign(1, stored) == math.copysign(1, wanted)
        again = constant_read_by_llvm(kind, read).split(" ")[1]
        assert again == read


def test_what_is_too_large_for_float32_is_infinite():
    assert types.float_constant(1e39, "float") == types.float_constant(math.inf, "float")
    assert types.float_constant(-1e39, "float") == types.float_constant(-math.inf, "float")


def test_bfloat_constants_are_the_upper_half_of_a_float32():
    for value in NUMBERS:
        held = ml_dtypes.bfloat16(value)
        bits = np.array(held).view("int16")[()]
        text = types.bfloat_constant(float(held))
        if math.isnan(value):
            assert np.isnan(np.array(int(text), "int16").view(ml_dtypes.bfloat16))
        else:
            assert int(text) == bits


def test_equal_lanes():
    assert types.with_lanes("i32", 1) == "i32"
    assert types.with_lanes("i32", 4) == "<4 x i32>"
    assert types.splat("i32", "7", 1) == "7"
    assert types.splat("i32", "0", 4) == "zeroinitializer"
    text = types.splat("i32", "7", 4)
    read = constant_read_by_llvm("<4 x i32>", text)
    assert read in ("<4 x i32> splat (i32 7)", "<4 x i32> <i32 7, i32 7, i32 7, i32 7>")
