"""A model's call on tensors of a framework as one native function (call.tensor_call_ir).

The way through Python (weft.runtime.call.native_entry) takes some microseconds, more than a small
model computes. Tensors of a class that offers DLPack's exchange functions in C, as PyTorch's, are
read and made without it, for functions whose shapes are numbers. Every call that is not as usual
answers ``NotImplemented``, and the caller goes the way through Python.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

import numpy as np

from weft.runtime.call.abi import DLPACK_BOOL, DLDataType, DLDevice, DLTensor
from weft.runtime.call.native_entry import constant_table
from weft.runtime.call.tensor_call_ir import (
    CALL_FIELDS,
    EXPECTED_FIELDS,
    MOST_ARGUMENTS,
    TENSOR_CALL,
    tensor_call_ir,
)
from weft.runtime.extent import Extent
from weft.runtime.faults import pop_fault
from weft.runtime.memory.allocation import ALIGNMENT, aligned_empty
from weft.runtime.memory.dlpack import capsule_pointer
from weft.runtime.native.foreign import CompiledFunction
from weft.runtime.native.parts import load_part
from weft.runtime.ndarray import NDArray, storage_dtype
from weft.runtime.threads.parallel import own_count_key
from weft.runtime.vm.bytecode import NativeEntry, Result
from weft.support.dtype import DataType

TensorCall = Callable[..., object]
"""Takes the inputs; gives the one output, a tuple of several, or ``NotImplemented``."""

_FASTCALL: Final = 0x80
_NAME: Final = b"dlpack_exchange_api"
_MAJOR: Final = 1
_TYPES: Final[dict[str, type]] = {
    "ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "i32": ctypes.c_int32,
}  # fmt: skip
_TYPE_OFFSET: Final = object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
"""Where an object's class stands in it: last in the header that all objects have."""
_KINDS: Final = frozenset({"bool", "int", "uint", "float", "bfloat"})
"""Kinds of numbers that DLPack and weft write alike; bool differs and is looked after."""

Item = tuple[str, tuple[int, ...], int]
"""A tensor as it is expected: data type, shape, alignment of its memory in bytes."""


class _Call(ctypes.Structure):
    _fields_ = [(name, _TYPES[kind]) for name, kind in CALL_FIELDS.items()]


class _Expected(ctypes.Structure):
    _fields_ = [(name, _TYPES[kind]) for name, kind in EXPECTED_FIELDS.items()]


class _Method(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]  # fmt: skip


class _Exchange(ctypes.Structure):
    """DLPack's ``DLPackExchangeAPI``: what a class of tensors offers in C."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("earlier", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("share", ctypes.c_void_p), ("wrap", ctypes.c_void_p),
        ("read", ctypes.c_void_p), ("stream", ctypes.c_void_p),
    ]  # fmt: skip


def make_tensor_call(
    entry: NativeEntry,
    host: CompiledFunction,
    constants: Sequence[NDArray],
    tensor_class: type,
    threads: int | None,
) -> TensorCall | None:
    """The native call of ``entry`` on tensors of ``tensor_class``; None where there can be none.

    Args:
        threads: of parallel loops in these calls; None: as the process has it.
    """
    exchange = _exchange_of(tensor_class)
    if exchange is None or own_count_key() < 0 or not _is_direct(entry):
        return None
    used = [constants[index] for index in entry.constants]
    table = constant_table(used)
    arena, arena_address = aligned_empty((entry.arena,), np.dtype("uint8"), entry.arena)
    inputs, outputs = _items(entry)
    expected = (_Expected * (len(inputs) + len(outputs)))()
    prototypes = (DLTensor * len(outputs))()
    axes = [_fill(expected[i], item) for i, item in enumerate([*inputs, *outputs])]
    for prototype, wanted in zip(prototypes, expected[len(inputs) :], strict=True):
        _fill_prototype(prototype, wanted)
    negated = "is_neg" if hasattr(tensor_class, "is_neg") else None
    fail = functools.partial(_fail, entry.spec.name)
    call = _Call(
        function=host.address, inputs=len(inputs), outputs=len(outputs), handles=_handles(entry),
        expected=ctypes.addressof(expected), prototypes=ctypes.addressof(prototypes),
        arena=arena_address if entry.arena else None, has_arena=entry.arena != 0,
        constants=ctypes.addressof(table), threads=threads or 0, count_key=own_count_key(),
        type_offset=_TYPE_OFFSET, tensor_class=id(tensor_class),
        negated=None if negated is None else id(negated), read=exchange.read,
        allocate=exchange.allocate, wrap=exchange.wrap, refused=id(NotImplemented),
        false=id(False), fail=id(fail), bare=len(outputs) == 1,
    )  # fmt: skip
    keep = (call, host, used, table, arena, expected, prototypes, axes, tensor_class, negated, fail)
    method, state = ctypes.addressof(_method()), ctypes.addressof(call)
    function: TensorCall | None = _make_function(method, (state, keep), None)
    return function


def _is_direct(entry: NativeEntry) -> bool:
    """Whether a call takes tensors of fixed shapes and gives fresh ones, in their order."""
    spec = entry.spec
    special = (
        entry.planned or entry.checks or entry.limits or entry.layout or entry.recursive
        or spec.calls_packed or spec.implicit or len(spec.params) > MOST_ARGUMENTS
    )  # fmt: skip
    if special or not _gives_all(entry.result, len(entry.outputs)):
        return False
    tensors = spec.params[: len(spec.params) - _handles(entry)]
    return all(
        param.kind == "buffer"
        and param.strides is None
        and DataType(param.dtype).kind in _KINDS
        and DataType(param.dtype).lanes == 1
        and all(isinstance(extent, int) and extent > 0 for extent in param.shape)
        for param in tensors
    )


def _gives_all(result: Result, outputs: int) -> bool:
    """Whether a result is the one output, or a tuple of all in their order."""
    if result[0] == "tuple":
        return list(result[1]) == [("output", index) for index in range(outputs)]
    return outputs == 1 and result == ("output", 0)


def _handles(entry: NativeEntry) -> int:
    return (entry.arena != 0) + bool(entry.constants)


def _items(entry: NativeEntry) -> tuple[list[Item], list[Item]]:
    """Inputs, on boundaries of their elements, and outputs, on those of fresh arrays."""
    count = len(entry.spec.params) - _handles(entry) - len(entry.outputs)
    inputs = [
        (param.dtype, _extents(param.shape), storage_dtype(param.dtype).itemsize)
        for param in entry.spec.params[:count]
    ]
    return inputs, [(dtype, _extents(shape), ALIGNMENT) for dtype, shape in entry.outputs]


def _extents(shape: Sequence[Extent]) -> tuple[int, ...]:
    return tuple([int(extent) for extent in shape])


def _fill(expected: _Expected, item: Item) -> object:
    """Write what is expected; the memory of shape and strides, which must live as long."""
    name, shape, alignment = item
    dtype, rank = DataType(name), len(shape)
    code, bits = (DLPACK_BOOL, 8) if dtype.is_bool else (int(dtype.type_code), dtype.bits)
    strides = [1] * rank
    for axis in range(rank - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    axes = (ctypes.c_int64 * (2 * rank))(*shape, *strides)
    expected.ndim = rank
    expected.dtype = int.from_bytes(bytes(DLDataType(code, bits, 1)), sys.byteorder)
    expected.shape = ctypes.addressof(axes)
    expected.strides = ctypes.addressof(axes) + rank * ctypes.sizeof(ctypes.c_int64)
    expected.mask = alignment - 1
    return axes


def _fill_prototype(prototype: DLTensor, expected: _Expected) -> None:
    prototype.device, prototype.ndim = DLDevice(1, 0), expected.ndim
    prototype.dtype = DLDataType.from_buffer_copy(ctypes.c_int32(expected.dtype))
    prototype.shape, prototype.strides = expected.shape, expected.strides


def _fail(name: str, code: int) -> NoReturn:
    raise pop_fault(code, name)


@functools.cache
def _exchange_of(tensor_class: type) -> _Exchange | None:
    """The exchange functions of a class, of the version that is known here."""
    if sys.implementation.name != "cpython":
        return None
    address = capsule_pointer(getattr(tensor_class, "__dlpack_c_exchange_api__", None), _NAME)
    while address:
        exchange = _Exchange.from_address(address)
        if exchange.major == _MAJOR:
            return exchange if exchange.allocate and exchange.wrap and exchange.read else None
        address = exchange.earlier
    return None


@functools.cache
def _method() -> _Method:
    """The native code as CPython wants it told; neither is ever given back."""
    loaded = load_part(tensor_call_ir())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded))
    return _Method(b"call", loaded.address(TENSOR_CALL), _FASTCALL, None)


_make_function = ctypes.pythonapi.PyCFunction_NewEx
_make_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
_make_function.restype = ctypes.py_object
