"""ONNX's element types, and how tensors of them are held.

Types of fewer than 8 bits and 8-bit floats have no arithmetic of their own in generated code. Their
tensors are held in bytes: integers of 2 and 4 bits as int8 or uint8 of the same value, floats of 4
and 8 bits as uint8 of the same bits. Only conversions (Cast, QuantizeLinear, DequantizeLinear) look
inside; every other operator that takes them moves whole elements.
"""

from __future__ import annotations

from typing import Final

import ml_dtypes
import numpy as np

from weft.support.dtype import DataType

FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL = range(1, 10)
FLOAT16, DOUBLE, UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16 = range(10, 17)
FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, UINT4, INT4 = range(17, 23)
FLOAT4E2M1, FLOAT8E8M0, UINT2, INT2 = range(23, 27)

STORAGE: Final[dict[int, str]] = {
    FLOAT: "float32", UINT8: "uint8", INT8: "int8", UINT16: "uint16", INT16: "int16",
    INT32: "int32", INT64: "int64", BOOL: "bool", FLOAT16: "float16", DOUBLE: "float64",
    UINT32: "uint32", UINT64: "uint64", BFLOAT16: "bfloat16",
    FLOAT8E4M3FN: "uint8", FLOAT8E4M3FNUZ: "uint8", FLOAT8E5M2: "uint8", FLOAT8E5M2FNUZ: "uint8",
    FLOAT8E8M0: "uint8", FLOAT4E2M1: "uint8", UINT4: "uint8", INT4: "int8", UINT2: "uint8",
    INT2: "int8",
}  # fmt: skip
"""Element type -> data type of the tensor that holds it."""

NAMES: Final[dict[int, str]] = {STRING: "string", COMPLEX64: "complex64", COMPLEX128: "complex128"}
"""Element types that no tensor holds."""

SMALL: Final[dict[int, type[np.generic]]] = {
    FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn, FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    FLOAT8E5M2: ml_dtypes.float8_e5m2, FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    FLOAT8E8M0: ml_dtypes.float8_e8m0fnu, FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
    UINT4: ml_dtypes.uint4, INT4: ml_dtypes.int4, UINT2: ml_dtypes.uint2, INT2: ml_dtypes.int2,
}  # fmt: skip
"""Types held in bytes -> their numpy type."""

SMALL_INTEGERS: Final = frozenset({UINT4, INT4, UINT2, INT2})
SMALL_FLOATS: Final = frozenset(SMALL) - SMALL_INTEGERS
_OF_STORAGE: Final = {
    name: elem for elem, name in STORAGE.items() if elem not in SMALL
}  # fmt: skip
_BY_NAME: Final[dict[np.dtype, int]] = {np.dtype(kind): elem for elem, kind in SMALL.items()}


def element_of(dtype: str | DataType) -> int:
    """The element type that a data type holds by itself: "int64" -> INT64."""
    return _OF_STORAGE[str(dtype)]


def element_of_array(array: np.ndarray) -> int:
    """The element type of a numpy array (strings are objects or text)."""
    if array.dtype in _BY_NAME:
        return _BY_NAME[array.dtype]
    if array.dtype.kind in "OUST":
        return STRING
    if array.dtype.kind == "c":
        return COMPLEX64 if array.dtype.itemsize == 8 else COMPLEX128
    return element_of(array.dtype.name)


def to_storage(array: np.ndarray) -> np.ndarray:
    """The array as the tensor that holds it: 8-bit floats become their bits, and so on."""
    elem = _BY_NAME.get(array.dtype)
    if elem is None:
        return array
    if elem in SMALL_INTEGERS:
        return array.astype(STORAGE[elem])
    return np.ascontiguousarray(array).view(np.uint8).reshape(array.shape)


def from_storage(array: np.ndarray, elem: int) -> np.ndarray:
    """What ``to_storage`` was given."""
    kind = SMALL.get(elem)
    if kind is None:
        return array
    if elem in SMALL_INTEGERS:
        return array.astype(kind)
    return np.ascontiguousarray(array).view(kind).reshape(array.shape)


def type_name(elem: int) -> str:
    """The name of an element type in messages: ``float8e4m3fn``."""
    names = {value: key for key, value in globals().items() if isinstance(value, int)}
    return names.get(elem, f"element type {elem}").lower()
