"""Functions of the C library, which programs call by name (``call_extern``)."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from typing import Final

import numpy as np

from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.tir.interp.values import Value

_TYPES: Final = {
    "float32": ctypes.c_float, "float64": ctypes.c_double, "int8": ctypes.c_int8,
    "int16": ctypes.c_int16, "int32": ctypes.c_int32, "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64, "bool": ctypes.c_bool, "handle": ctypes.c_void_p,
}  # fmt: skip


def c_value(value: object) -> object:
    """A value of the interpreter, converted for ctypes."""
    return float(value) if isinstance(value, np.floating) else value


def c_function(name: str, result: DataType, arguments: list[DataType]) -> Callable[..., Value]:
    """A function of the C library by name, with the types of this call."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    try:
        function = getattr(library, name)
    except AttributeError:
        raise UnsupportedError(
            f"call_extern: the C function {name!r} is not in this process"
        ) from None
    function.restype = _TYPES.get(result)
    function.argtypes = [_TYPES[dtype] for dtype in arguments]
    called: Callable[..., Value] = function
    return called
