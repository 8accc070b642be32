"""Checking one argument of a compiled function: the slow, thorough half of the wrapper.

The generated wrapper (wrapper.py) takes compact NDArrays itself and calls ``TensorChecker`` and
``ScalarChecker`` for all else: numpy arrays, torch tensors, strided data, and every mistake. torch
is never imported: its tensors are known by their class, read by data_ptr, shape and stride.
"""

from __future__ import annotations

import ctypes
import operator
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.runtime.call.plan import CallPlan
from weft.runtime.call.spec import ParamSpec
from weft.runtime.extent import Extent, evaluate
from weft.runtime.faults import DivisionFault
from weft.runtime.memory.allocation import data_address
from weft.runtime.ndarray import NDArray, dtype_of, storage_dtype
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError

Taken = tuple[int, tuple[int, ...], tuple[int, ...]]
"""What is known of a tensor argument: address, shape, strides in elements (empty if compact)."""

_NUMPY: Final = 1
_TORCH: Final = 2
_OTHER: Final = 3
_LAZY: Final = "its memory holds the negated values; pass x.resolve_neg()"
_kinds: Final[dict[type, int]] = {np.ndarray: _NUMPY}
_torch_dtypes: Final[dict[object, DataType]] = {}


def _kind_of(cls: type) -> int:
    kind = _kinds.get(cls)
    if kind is None:
        torch = sys.modules.get("torch")
        if issubclass(cls, np.ndarray):
            kind = _NUMPY
        elif torch is not None and issubclass(cls, torch.Tensor):
            kind = _TORCH
        else:
            kind = _OTHER
        _kinds[cls] = kind
    return kind


def torch_dtype(dtype: object) -> DataType | None:
    """The data type of a ``torch.dtype``; None for one that weft has not."""
    known = _torch_dtypes.get(dtype)
    if known is None:
        name = str(dtype).rpartition(".")[2]
        try:
            known = _torch_dtypes[dtype] = DataType(name)
        except IRTypeError:
            return None
    return known


class TensorChecker:
    """Takes one tensor argument: ``check(value) -> (address, shape, strides)`` or an error."""

    __slots__ = ("_torch_dtype", "compact", "dtype", "itemsize", "prefix", "storage", "writes")

    def __init__(self, place: str, param: ParamSpec) -> None:
        self.prefix = place
        self.dtype = DataType(param.dtype)
        storage = storage_dtype(self.dtype)
        self.storage = storage if self.dtype.lanes == 1 else None
        self.itemsize = storage.itemsize * self.dtype.lanes
        self.compact = param.strides is None
        self._torch_dtype: object = None
        self.writes = param.is_output is not False

    def __call__(self, value: Any) -> Taken:
        kind = _kinds.get(type(value))
        if self.compact:
            # the two common cases, without a further call
            if kind == _NUMPY and value.dtype is self.storage and value.flags.carray:
                return data_address(value), value.shape, ()
            if kind == _TORCH and value.dtype is self._torch_dtype and value.is_cpu:
                return self._torch(value)
        return self._any(value)

    def _any(self, value: Any) -> Taken:
        if type(value) is NDArray:
            if value.dtype is not self.dtype:
                raise self._dtype_error(value.dtype)
            return self._numpy(value._array, value.shape, value.strides)
        kind = _kind_of(type(value))
        if kind == _TORCH:
            return self._torch(value)
        if kind == _NUMPY:
            return self._from_numpy(value)
        if isinstance(value, NDArray):
            return self._from_numpy(value._array)
        raise IRTypeError(
            f"{self.prefix}: expected a tensor (NDArray, numpy array or torch tensor), "
            f"got {type(value).__name__}; make one with weft.nd.array"
        )

    def _from_numpy(self, array: np.ndarray) -> Taken:
        try:
            dtype = dtype_of(array.dtype)
        except IRTypeError as error:
            raise IRTypeError(f"{self.prefix}: {error}") from error
        if dtype is not self.dtype:
            raise self._dtype_error(dtype)
        if array.flags.carray and self.compact:
            return data_address(array), array.shape, ()
        steps = tuple([stride // self.itemsize for stride in array.strides])
        return self._numpy(array, array.shape, steps)

    def _numpy(self, array: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> Taken:
        flags = array.flags
        address = data_address(array)
        if self.writes and not flags.writeable:
            raise IRValueError(
                f"{self.prefix}: expected writable memory, since the function writes it, "
                "got a read-only numpy array; pass a copy"
            )
        steps = array.strides[: len(shape)]
        if not flags.aligned or any(step % self.itemsize for step in steps):
            raise IRValueError(
                f"{self.prefix}: expected memory aligned to {self.itemsize} bytes, the size of "
                f"{self.dtype}, got address {address:#x} with byte strides {steps}; "
                "pass a copy"
            )
        if self.compact and not flags.c_contiguous:
            raise self._stride_error(shape, strides)
        return address, shape, strides

    def _torch(self, value: Any) -> Taken:
        if value.dtype is not self._torch_dtype:
            if torch_dtype(value.dtype) is not self.dtype:
                raise self._dtype_error(value.dtype)
            self._torch_dtype = value.dtype
        if not value.is_cpu:
            raise IRValueError(
                f"{self.prefix}: expected a tensor on the CPU, got one on {value.device}; "
                "pass x.cpu()"
            )
        try:
            address: int = value.data_ptr()
            contiguous, shape = value.is_contiguous(), value.shape
            if value.is_neg() or (not address and value.numel()):
                raise RuntimeError(_LAZY if address else "it has no memory")
        except RuntimeError as error:
            raise IRTypeError(
                f"{self.prefix}: expected a tensor with data, got {type(value).__name__}: "
                f"{str(error).partition(chr(10))[0]}"
            ) from error
        if address % self.itemsize:
            raise IRValueError(
                f"{self.prefix}: expected memory aligned to {self.itemsize} bytes, the size of "
                f"{self.dtype}, got address {address:#x}; pass a copy"
            )
        if not self.compact:
            return address, shape, value.stride()
        if not contiguous:
            raise self._stride_error(tuple(shape), value.stride())
        return address, shape, ()

    def _dtype_error(self, actual: object) -> IRTypeError:
        return IRTypeError(
            f"{self.prefix}: expected dtype {self.dtype}, got {actual}; "
            f"convert it, as x.astype({str(self.dtype)!r}) does in numpy"
        )

    def _stride_error(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> IRValueError:
        return IRValueError(
            f"{self.prefix}: expected contiguous row-major data, got shape {shape} with strides "
            f"{strides} (in elements); pass a contiguous copy"
        )


class ScalarChecker:
    """Takes one scalar argument: the number to pass, or an error."""

    __slots__ = ("dtype", "high", "low", "prefix")

    def __init__(self, place: str, param: ParamSpec) -> None:
        self.prefix = place
        self.dtype = DataType(param.dtype)
        self.low, self.high = integer_range(self.dtype)

    def __call__(self, value: Any) -> Any:
        dtype = self.dtype
        if dtype.is_handle:
            return self._handle(value)
        if isinstance(value, NDArray | np.ndarray) and value.size == 1:
            value = value.item()
        if dtype.is_float:
            if isinstance(value, int | float | np.number) and not isinstance(value, complex):
                return encode_float(self._float(value), dtype)
            raise self._error("a number", value)
        if isinstance(value, np.bool_):
            value = bool(value)
        try:
            number = operator.index(value)
        except TypeError as error:
            raise self._error("an integer", value) from error
        if not self.low <= number <= self.high:
            raise IRValueError(
                f"{self.prefix}: expected an integer from {self.low} to {self.high} ({dtype}), "
                f"got {number}"
            )
        return number

    def _float(self, value: Any) -> float:
        try:
            return float(value)
        except OverflowError as error:
            raise IRValueError(
                f"{self.prefix}: expected a number that {self.dtype} can hold, got an integer of "
                f"{value.bit_length()} bits"
            ) from error

    def _handle(self, value: Any) -> int | None:
        if value is None or isinstance(value, int):
            return value
        if isinstance(value, NDArray):
            return value._address
        if isinstance(value, np.ndarray):
            return data_address(value)
        if isinstance(value, ctypes.c_void_p):
            return value.value
        if _kind_of(type(value)) == _TORCH:
            address: int = value.data_ptr()
            return address
        raise self._error("an address, a tensor or None", value)

    def _error(self, wanted: str, value: object) -> IRTypeError:
        shown = repr(value) if isinstance(value, int | float | str) else ""
        return IRTypeError(
            f"{self.prefix}: expected {wanted} ({self.dtype}), got {type(value).__name__}"
            f"{' ' + shown[:40] if shown else ''}"
        )


def integer_range(dtype: DataType) -> tuple[int, int]:
    """The least and the greatest value of an integer type; (0, 0) for other types."""
    if dtype.is_bool:
        return 0, 1
    if dtype.is_int:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return (0, (1 << dtype.bits) - 1) if dtype.is_uint else (0, 0)


def encode_float(value: float, dtype: DataType) -> float | int:
    """``value`` as it is passed in a register: see abi.py for the types of 8 and 16 bits."""
    if dtype.bits >= 32:
        return value
    with np.errstate(over="ignore"):  # too great a number becomes infinite, as in every cast
        raw = np.array(value).astype(storage_dtype(dtype)).view(f"uint{dtype.bits}").item()
    if dtype.bits == 8 or dtype.kind == "bfloat":  # bits in an integer register
        return int(raw)
    result: float = struct.unpack("<f", struct.pack("<HH", raw, 0))[0]
    return result


def shape_error(
    plan: CallPlan, argument: int, actual: tuple[int, ...], names: dict[str, int]
) -> Exception:
    """The error for a shape that does not fit; ``names`` are the symbols bound so far."""
    shape = plan.takes[argument].param.shape
    return IRValueError(
        f"{plan.place(argument)}: expected shape {_expected(shape, names)}, got {tuple(actual)}"
    )


def division_error(plan: CallPlan, argument: int) -> Exception:
    """The error for an extent that divides by a symbol or a scalar that is 0."""
    param = plan.takes[argument].param
    texts = [str(entry) for entry in (*param.shape, *(param.strides or ()))]
    return IRValueError(
        f"{plan.place(argument)}: its shape {_tuple_text(tuple(texts))} divides by 0 for these "
        "arguments"
    )


def division_fault(
    name: str, extents: Sequence[Extent], symbols: Mapping[str, int]
) -> DivisionFault:
    """The error of the one among some extents of a function that divides by 0."""
    try:
        for extent in extents:
            evaluate(extent, symbols)
    except DivisionFault as error:
        return DivisionFault(f"{name}: {error}")
    raise AssertionError(f"none of {extents} divides by 0 where {symbols}")


def stride_mismatch(
    plan: CallPlan, argument: int, actual: tuple[int, ...], names: dict[str, int]
) -> Exception:
    """The error for strides that do not fit."""
    strides = plan.takes[argument].param.strides or ()
    return IRValueError(
        f"{plan.place(argument)}: expected strides {_expected(strides, names)} (in elements), "
        f"got {actual}"
    )


def _expected(entries: tuple[int | str, ...], names: dict[str, int]) -> str:
    plain = tuple([str(entry) for entry in entries])
    text = _tuple_text(plain)
    values = []
    for entry in plain:
        try:
            values.append(str(evaluate(entry, names)))
        except (IRValueError, ZeroDivisionError):
            return text
    return text if tuple(values) == plain else f"{_tuple_text(tuple(values))}, that is {text}"


def _tuple_text(items: tuple[str, ...]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def count_error(plan: CallPlan, count: int) -> Exception:
    """The error for a wrong number of arguments."""
    names = [take.param.name for take in plan.takes]
    plural = "" if len(names) == 1 else "s"
    return IRTypeError(
        f"{plan.name}: expected {len(names)} argument{plural} ({', '.join(names)}), got {count}"
    )


def overlap_error(
    plan: CallPlan, output: int, other: int, spans: tuple[int, int, int, int]
) -> Exception | None:
    """The error for an output that overlaps another argument; None if either is empty."""
    begin, size, other_begin, other_size = spans
    if size == 0 or other_size == 0:
        return None
    take = plan.takes[other]
    return IRValueError(
        f"{plan.place(output)}: expected an output that shares no memory with the other "
        f"arguments, got one that overlaps {take.place} ({take.param.name}): "
        f"[{begin:#x}, {begin + size:#x}) and "
        f"[{other_begin:#x}, {other_begin + other_size:#x}); pass a copy"
    )
