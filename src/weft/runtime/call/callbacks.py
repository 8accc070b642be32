"""weft_call_packed: compiled code calls a registered Python function (layouts: abi.py).

A tensor argument arrives as an NDArray view on the caller's memory, without a copy, where somebody
keeps that memory: inside ``holding(owner, ranges)``, which the checked wrapper and the virtual
machine open around native code that calls back. The view then holds the owner, so the function may
keep it. A kernel's temporary memory has no owner: it arrives as a copy, and changes are written
back when the function returns, so no Python object ever points to dead memory.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.runtime.call.abi import (
    CallPackedFunction,
    DLTensor,
    ValueKind,
    WeftValue,
    address_of,
    dtype_from_code,
)
from weft.runtime.call.interrupts import begins_with_signals, deferring, handle_waiting
from weft.runtime.faults import store_fault
from weft.runtime.memory.allocation import view_at
from weft.runtime.ndarray import NDArray, storage_dtype
from weft.runtime.registry import get_global_func
from weft.support.errors import IRTypeError


class _Frame(threading.local):
    """Who keeps the memory that native code of this thread hands out."""

    owner: object = None
    ranges: Sequence[tuple[int, int]] | None = ()


_frame: Final = _Frame()
_VALUE_SIZE: Final = ctypes.sizeof(WeftValue)
_EMPTY: Final = ctypes.create_string_buffer(b"")
_NO_NAME: Final = ctypes.addressof(_EMPTY)


class holding:  # noqa: N801 - a context manager, named as it reads
    """While open, tensors that this thread's native code passes to callbacks keep ``owner`` alive.

    Callbacks also handle signals while it is open (weft.runtime.call.interrupts).
    ``ranges`` are the (begin, end) addresses that ``owner`` keeps; None means all that the native
    code passes.
    """

    __slots__ = ("_before", "_now", "_signals")

    def __init__(self, owner: object, ranges: Sequence[tuple[int, int]] | None = None) -> None:
        self._now = (owner, ranges)
        self._signals = deferring()

    def __enter__(self) -> None:
        self._before = (_frame.owner, _frame.ranges)
        _frame.owner, _frame.ranges = self._now
        self._signals.__enter__()

    def __exit__(self, *exception: object) -> None:
        _frame.owner, _frame.ranges = self._before
        self._signals.__exit__(*exception)


def _owner_of(address: int) -> object:
    ranges = _frame.ranges
    if ranges is None or any(lo <= address < hi for lo, hi in ranges):
        return _frame.owner
    return None


def tensor_view(address: int) -> NDArray:
    """An NDArray on the memory that the ``DLTensor`` at ``address`` describes."""
    header = DLTensor.from_address(address)
    dtype = dtype_from_code(header.dtype.code, header.dtype.bits, header.dtype.lanes)
    ndim = header.ndim
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] | None = None
    if ndim:
        shape = tuple((ctypes.c_int64 * ndim).from_address(header.shape))
        if header.strides:
            steps = (ctypes.c_int64 * ndim).from_address(header.strides)
            strides = tuple([step * dtype.itemsize for step in steps])
    storage = storage_dtype(dtype)
    if dtype.lanes != 1:
        shape = (*shape, dtype.lanes)
        strides = None if strides is None else (*strides, storage.itemsize)
    data = (header.data or 0) + header.byte_offset
    return NDArray(view_at(data, shape, storage, strides, _owner_of(data)), dtype)


class _Borrowed:
    """Memory of a running kernel that nobody keeps: the function gets a copy of it.

    A copy that the function changed is written back; it stays valid when the function keeps it.
    """

    __slots__ = ("_pairs",)

    def __init__(self) -> None:
        self._pairs: list[tuple[NDArray, NDArray]] = []

    def lend(self, view: NDArray) -> NDArray:
        copy = NDArray(view._array.copy(), view.dtype)
        self._pairs.append((view, copy))
        return copy

    def give_back(self) -> None:
        for view, copy in self._pairs:
            if _bytes_of(view) != _bytes_of(copy):  # memory may be read-only: write only changes
                view._array[...] = copy._array

    def forget(self) -> None:
        self._pairs.clear()


def _bytes_of(array: NDArray) -> bytes:
    return array._array.tobytes()


def _argument(value: WeftValue, borrowed: _Borrowed) -> object:
    kind = value.kind
    if kind == ValueKind.TENSOR:
        view = tensor_view(value.as_ptr)
        return view if _owner_of(view._address) is not None else borrowed.lend(view)
    if kind == ValueKind.INT:
        return value.as_int
    if kind == ValueKind.FLOAT:
        return value.as_float
    if kind == ValueKind.BOOL:
        return bool(value.as_int)
    if kind == ValueKind.STRING:
        return ctypes.string_at(value.as_ptr).decode("utf-8")
    return None if kind == ValueKind.NULL else value.as_ptr


def _store_result(name: str, result: object, address: int) -> None:
    slot = WeftValue.from_address(address)
    slot.reserved = 0
    if result is None:
        slot.kind, slot.as_int = ValueKind.NULL, 0
    elif isinstance(result, bool | int | np.bool_ | np.integer):
        slot.kind, slot.as_int = ValueKind.INT, int(result)
    elif isinstance(result, float | np.floating):
        slot.kind, slot.as_float = ValueKind.FLOAT, float(result)
    else:
        raise IRTypeError(
            f"{name}: expected the function to return None, an int or a float to compiled code, "
            f"got {type(result).__name__}"
        )


@begins_with_signals
def _call_packed(name: int | None, args: int | None, nargs: int, result: int | None) -> int:
    borrowed = _Borrowed()
    try:
        handle_waiting()
        text = ctypes.string_at(name or _NO_NAME).decode("utf-8")
        function = get_global_func(text)
        returned = function(
            *[
                _argument(WeftValue.from_address((args or 0) + i * _VALUE_SIZE), borrowed)
                for i in range(nargs)
            ]
        )
        borrowed.give_back()
        if result:
            _store_result(text, returned, result)
    except BaseException as error:  # noqa: BLE001 - it is re-raised by the wrapper
        return store_fault(error)
    finally:
        borrowed.forget()  # the frames of a traceback hold no view of dead memory
    return 0


_callback: Final = CallPackedFunction(_call_packed)
CALL_PACKED_ADDRESS: Final = address_of(_callback)
"""The native address of ``weft_call_packed``."""
