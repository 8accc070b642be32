"""The binary interface between compiled code and the runtime: layouts, kinds, signatures.

Codegen and the Relax lowering emit LLVM IR against this page; the runtime implements it.

**Compiled functions** ::

    i32 f(parameters in declared order, implicit symbols, out)

A buffer parameter is one ``ptr`` to its first element (byte offsets already added). A scalar is
passed at its own type: intN, uintN as iN, bool as i1 (i8 reads the same), float32, float64; float16
as ``half`` (low 16 bits of a vector register); bfloat16 as the i16 and 8-bit floats as the i8 of
their bits; a handle as ``ptr``. ``FunctionSpec.implicit`` names follow as i64 each, in that order.
If the function returns a value, a ``ptr`` to storage for one such value (bool: one byte) is last.
The result is 0 for success. Any other value is a *fault code*: a caller frees what it holds and
returns the same code at once.

**Services** that compiled code may call (declare them as external functions) ::

    i32 weft_raise(i32 kind, ptr text, i64 a, i64 b)
    i32 weft_call_packed(ptr name, ptr args, i32 nargs, ptr result)
    i32 weft_parallel(ptr body, ptr context, i64 n, i32 threads)
    i32 weft_parallel_brief(ptr body, ptr context, i64 n, i32 threads)
    i32 weft_team(ptr body, ptr context, i64 1, i32 threads)

``weft_raise`` makes a fault and returns its fresh code, never 0. ``text`` is UTF-8 ending in NUL;
``{a}`` and ``{b}`` in it are replaced by the two numbers. ``kind`` is a ``FaultKind``.

``weft_call_packed`` calls the global function registered under ``name`` (UTF-8, NUL) at the time
of the call, with ``nargs`` values at ``args`` (an array of ``WeftValue``). ``result`` is NULL when
the result is not wanted, else a ``WeftValue`` that receives an INT, FLOAT or NULL. It returns 0, or
a fault code when the function is not registered or raised; the wrapper raises that same exception.

``weft_parallel`` cuts ``0 .. n`` in contiguous parts and runs ``i32 body(ptr context, i64 begin,
i64 end)`` once for each part, on at most ``threads`` threads (0: the configured number; -k: that
number, but at most k). It returns 0, or the first fault code that a part returned. A nested call
runs serially. ``weft_parallel_brief`` does the same, and takes only threads that are awake, but for
now and then: for loops that are shorter than waking one. ``weft_team`` runs ``body(context, 0, 1)``
and returns its code; the threads of all loops that it starts are taken once, for all of them.

**Layouts** (natural C alignment, little endian, 64-bit pointers) ::

    WeftValue, 16 bytes:  0 i32 kind (ValueKind) | 4 i32 zero | 8 i64, double or ptr payload
    DLTensor, 48 bytes:   0 ptr data | 8 i32 device_type (1: CPU) | 12 i32 device_id | 16 i32 ndim
                          20 i8 code, 21 i8 bits, 22 i16 lanes | 24 ptr shape (i64[ndim])
                          32 ptr strides (i64[ndim], in elements; NULL: compact)
                          40 i64 byte_offset

A TENSOR value points to a ``DLTensor`` (that of the DLPack standard); it and what it points to must
live until the call returns. Type codes are ``DataType.type_code``; bool is code 1 with 1 bit.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, Final

from weft.support.dtype import DataType, DataTypeCode, make_dtype
from weft.support.errors import IRTypeError

RAISE: Final = "weft_raise"
CALL_PACKED: Final = "weft_call_packed"
PARALLEL: Final = "weft_parallel"
PARALLEL_BRIEF: Final = "weft_parallel_brief"
TEAM: Final = "weft_team"
THREADED: Final = frozenset({PARALLEL, PARALLEL_BRIEF, TEAM})
"""The services that start threads."""


class FaultKind(IntEnum):
    """What ``weft_raise`` reports."""

    ASSERTION = 0
    INDEX = 1
    ALLOCATION = 2
    DIVISION = 3
    EXCEPTION = 4
    """A Python exception that a callback raised; never passed to ``weft_raise``."""


class ValueKind(IntEnum):
    """What a ``WeftValue`` holds."""

    INT = 0
    FLOAT = 1
    TENSOR = 2
    STRING = 3
    NULL = 4
    HANDLE = 5
    """An opaque pointer; Python sees its address."""
    BOOL = 6
    """An integer payload that Python sees as ``bool``."""


class DLDevice(ctypes.Structure):
    """Kind and number of a device, as DLPack has them."""

    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    """Type code, bits of a lane, and lanes."""

    _fields_ = [
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    ]  # fmt: skip


class DLTensor(ctypes.Structure):
    """A tensor in memory that somebody else owns (48 bytes)."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class Payload(ctypes.Union):
    """The eight bytes of a ``WeftValue`` that hold the value."""

    _fields_ = [
        ("as_int", ctypes.c_int64), ("as_float", ctypes.c_double), ("as_ptr", ctypes.c_void_p),
    ]  # fmt: skip


class WeftValue(ctypes.Structure):
    """One argument or result of a packed call (16 bytes)."""

    _anonymous_ = ("payload",)
    _fields_ = [
        ("kind", ctypes.c_int32), ("reserved", ctypes.c_int32), ("payload", Payload),
    ]  # fmt: skip


RaiseFunction = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
CallPackedFunction = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p
)
NoticeFunction = ctypes.CFUNCTYPE(ctypes.c_int32)

_KIND_OF_CODE: Final = {
    DataTypeCode.INT: "int", DataTypeCode.UINT: "uint", DataTypeCode.FLOAT: "float",
    DataTypeCode.HANDLE: "handle", DataTypeCode.BFLOAT: "bfloat",
    DataTypeCode.E4M3FN: "float8_e4m3fn", DataTypeCode.E5M2: "float8_e5m2",
}  # fmt: skip
DLPACK_BOOL: Final = 6
"""DLPack's own code for a byte that holds a truth value; TVM's is an unsigned integer of 1 bit."""
_C_TYPES: Final = {
    "bool": ctypes.c_bool, "handle": ctypes.c_void_p,
    "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32,
    "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float, "float64": ctypes.c_double,
    "float16": ctypes.c_float, "bfloat16": ctypes.c_uint16,
    "float8_e4m3fn": ctypes.c_uint8, "float8_e5m2": ctypes.c_uint8,
}  # fmt: skip


def dtype_from_code(code: int, bits: int, lanes: int) -> DataType:
    """The data type that DLPack writes as these three numbers."""
    if code == DLPACK_BOOL:
        return make_dtype("bool", 1, lanes)
    kind = _KIND_OF_CODE.get(code)
    if kind is None:
        raise IRTypeError(f"expected a DLPack type code that weft has, got {code} with {bits} bits")
    return make_dtype(kind, bits, lanes)


def scalar_c_type(dtype: str) -> type:
    """The ctypes type in which a scalar parameter of that data type is passed."""
    c_type = _C_TYPES.get(dtype)
    if c_type is None:
        known = ", ".join(_C_TYPES)
        raise IRTypeError(f"expected a scalar parameter of type {known}, got {dtype}")
    return c_type


def address_of(function: Any) -> int:
    """The native address of a ctypes function or callback."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
