"""DLPack both ways, zero copy, on top of numpy's own export and import (design.md 3.10).

numpy knows no bfloat16 and no 8-bit floats. Such an array goes out as the integer array of the same
bits, and the type code in the capsule is then corrected in place; it comes in the other way round.
So the memory, its owner and the deleter are always numpy's or the producer's, never ours.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from weft.runtime.call.abi import DLDataType, DLTensor, dtype_from_code
from weft.support.dtype import DataType, DataTypeCode, to_numpy_dtype
from weft.support.errors import IRTypeError, TVMError, UnsupportedError, wrong_type

_UNVERSIONED: Final = b"dltensor"
_VERSIONED: Final = b"dltensor_versioned"
_VERSIONED_OFFSET: Final = 32
"""version (2 × u32), manager_ctx, deleter and flags stand before a versioned capsule's tensor."""
_REFUSALS: Final = (BufferError, TypeError, ValueError, RuntimeError, AttributeError)
"""What producers raise for arrays that they cannot share (sparse, on another device ...)."""
_CODES: Final = (DataTypeCode.BFLOAT, DataTypeCode.E4M3FN, DataTypeCode.E5M2)

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid.restype = ctypes.c_int
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_pointer.restype = ctypes.c_void_p


def capsule_pointer(value: object, name: bytes) -> int | None:
    """What a capsule of that name points to; None for anything else."""
    return _get_pointer(value, name) if _is_valid(value, name) else None


def _header(capsule: object) -> DLTensor:
    unversioned = capsule_pointer(capsule, _UNVERSIONED)
    if unversioned is not None:
        return DLTensor.from_address(unversioned)
    versioned = capsule_pointer(capsule, _VERSIONED)
    if versioned is not None:
        return DLTensor.from_address(versioned + _VERSIONED_OFFSET)
    raise IRTypeError("expected a fresh DLPack capsule, got one that was consumed, or none at all")


def export_capsule(array: np.ndarray, dtype: DataType, **kwargs: Any) -> object:
    """The DLPack capsule of a numpy array whose element type is ``dtype``."""
    if dtype.type_code not in _CODES:
        return array.__dlpack__(**kwargs)
    bits = array.view(f"uint{dtype.bits}")
    capsule = bits.__dlpack__(**kwargs)
    _header(capsule).dtype = DLDataType(dtype.type_code, dtype.bits, 1)
    return capsule


class _Producer:
    """A capsule in the form that ``numpy.from_dlpack`` wants."""

    __slots__ = ("_capsule",)

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **kwargs: object) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _Writable:
    """The memory of an array that numpy took as read-only for lack of a flag in old capsules."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, array: np.ndarray) -> None:
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
        self._owner = array


def import_array(source: object) -> np.ndarray:
    """A numpy array on the memory of ``source``: an object with ``__dlpack__``, or a capsule."""
    capsule = source
    if hasattr(source, "__dlpack__"):
        try:
            capsule = _exported(source)
        except _REFUSALS as error:
            if isinstance(error, TVMError):
                raise
            raise IRTypeError(
                "expected an array on the CPU whose memory can be shared through DLPack, got "
                f"{type(source).__name__}: {str(error).partition(chr(10))[0]}"
            ) from error
    elif type(source).__name__ != "PyCapsule":
        raise wrong_type("expected an object with __dlpack__ or a DLPack capsule", source)
    is_versioned = bool(_is_valid(capsule, _VERSIONED))
    header = _header(capsule)
    code, bits, lanes = header.dtype.code, header.dtype.bits, header.dtype.lanes
    target = None
    if code in _CODES:
        target = to_numpy_dtype(dtype_from_code(code, bits, lanes))
        header.dtype = DLDataType(DataTypeCode.UINT, bits, 1)
    if not header.data and all((ctypes.c_int64 * header.ndim).from_address(header.shape or 0)):
        raise IRTypeError(f"expected an array with data, got {type(source).__name__} without")
    array = np.from_dlpack(_Producer(capsule))
    if not is_versioned and not array.flags.writeable:
        array = np.asarray(_Writable(array))
    return array if target is None else array.view(target)


def _exported(source: Any) -> object:
    device_type, device_id = (int(part) for part in source.__dlpack_device__())
    if device_type != 1:
        raise UnsupportedError(
            f"expected data on the CPU, got DLPack device ({device_type}, {device_id}); "
            "copy it to the CPU first"
        )
    return _capsule_of(source)


def _capsule_of(source: Any) -> object:
    if getattr(source, "requires_grad", False):
        source = source.detach()
    if hasattr(source, "resolve_neg"):  # a lazily negated torch tensor: its memory has other values
        source = source.resolve_neg()
    try:
        return source.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        return source.__dlpack__()
