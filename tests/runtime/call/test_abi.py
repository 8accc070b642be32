"""The binary interface: sizes and places of its records, and data types as three numbers."""

from __future__ import annotations

import ctypes

import pytest

from weft.runtime.call.abi import (
    DLPACK_BOOL,
    DLTensor,
    FaultKind,
    ValueKind,
    WeftValue,
    address_of,
    dtype_from_code,
    scalar_c_type,
)
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError

TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
         "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "handle"]  # fmt: skip


def places(record):
    return [(name, getattr(record, name).offset) for name, *_ in record._fields_]


def test_records_have_the_layout_that_native_code_reads():
    assert ctypes.sizeof(DLTensor) == 48
    assert places(DLTensor) == [
        ("data", 0), ("device", 8), ("ndim", 16), ("dtype", 20), ("shape", 24), ("strides", 32),
        ("byte_offset", 40),
    ]  # fmt: skip
    assert ctypes.sizeof(WeftValue) == 16
    assert (WeftValue.kind.offset, WeftValue.as_int.offset, WeftValue.as_float.offset) == (0, 8, 8)


def test_numbers_of_kinds_do_not_move():
    assert [(kind.name, kind.value) for kind in ValueKind] == [
        ("INT", 0), ("FLOAT", 1), ("TENSOR", 2), ("STRING", 3), ("NULL", 4), ("HANDLE", 5),
        ("BOOL", 6),
    ]  # fmt: skip
    assert [(kind.name, kind.value) for kind in FaultKind] == [
        ("ASSERTION", 0), ("INDEX", 1), ("ALLOCATION", 2), ("DIVISION", 3), ("EXCEPTION", 4)
    ]  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("lanes", [1, 4])
def test_types_survive_as_three_numbers(name, lanes):
    dtype = DataType(name) if lanes == 1 else DataType(f"{name}x{lanes}")
    assert dtype_from_code(int(dtype.type_code), dtype.bits, lanes) is dtype


def test_truths_have_a_code_of_their_own():
    assert dtype_from_code(DLPACK_BOOL, 8, 1) == "bool"
    with pytest.raises(IRTypeError, match="a DLPack type code that weft has, got 99 with 8 bits"):
        dtype_from_code(99, 8, 1)


@pytest.mark.parametrize("name", [*TYPES, "bool"])
def test_scalars_are_passed_in_their_own_bytes(name):
    size = ctypes.sizeof(scalar_c_type(name))
    assert size == (4 if name == "float16" else 8 if name == "handle" else DataType(name).itemsize)


@pytest.mark.parametrize("name", ["int32x4", "int4", "void"])
def test_types_that_no_scalar_has(name):
    with pytest.raises(IRTypeError, match=f"expected a scalar parameter of type .*, got {name}"):
        scalar_c_type(name)


def test_addresses_of_callbacks():
    callback = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: 7)
    again = ctypes.CFUNCTYPE(ctypes.c_int32)(address_of(callback))
    assert again() == 7
