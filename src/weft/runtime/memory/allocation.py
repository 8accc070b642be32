"""Memory of arrays: data addresses read fast, and fresh memory on 64-byte boundaries.

Reading an address through ``ndarray.ctypes`` takes a microsecond, more than a whole native call;
the data pointer is the first field after the object header of a numpy array, so it is read there.
That layout is checked once at import, and the slow way is used where it does not hold.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.support.errors import IRValueError

ALIGNMENT: Final = 64
"""Fresh arrays start on a cache line, which is also the widest vector."""

OWN_PAGES: Final = 1 << 20
"""Bytes from which on a weight has pages of its own."""

_KEPT: Final = (32 << 20) - (8 << 10)
"""Bytes of the largest block whose size glibc learns from when it is freed."""

_BYTE: Final = np.dtype("uint8")
_HEADER: Final = object.__basicsize__
_word_at: Final = ctypes.c_size_t.from_address


def _fast_address(array: np.ndarray) -> int:
    return _word_at(id(array) + _HEADER).value


def _slow_address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _layout_holds() -> bool:
    base = np.zeros((8, 4), np.float32)
    return all(_fast_address(a) == _slow_address(a) for a in (base, base[3:, 1:], base[5, 2:3]))


data_address: Final[Callable[[np.ndarray], int]] = (
    _fast_address if _layout_holds() else _slow_address
)
"""``data_address(array)``: the address of its first element."""


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype, nbytes: int) -> tuple[np.ndarray, int]:
    """An array in fresh uninitialised memory that starts at a 64-byte boundary, and its address.

    IRValueError where there is not so much memory, or where no machine has so much, and where an
    extent is negative.
    """
    try:
        block = np.empty(nbytes + ALIGNMENT, _BYTE)
        start = data_address(block)
        offset = -start % ALIGNMENT
        return np.ndarray(shape, dtype, block, offset), start + offset
    except (MemoryError, ValueError, OverflowError) as error:
        raise _refused(shape, nbytes) from error


def _refused(shape: tuple[int, ...], nbytes: int) -> IRValueError:
    if min(shape, default=0) >= 0:
        return IRValueError(f"no memory for an array of shape {shape}, {nbytes} bytes")
    return IRValueError(
        f"an array would have the shape {shape}: expected extents of 0 or more; the inputs are "
        "too small for this program"
    )


def returned_empty(shape: tuple[int, ...], dtype: np.dtype, nbytes: int) -> tuple[np.ndarray, int]:
    """``aligned_empty`` in memory that goes back to the system with the array: that of weights.

    The allocator of C keeps what is freed for its next use where it once freed as much (its
    threshold for pages of their own rises up to 32 MiB), so a model that is loaded anew while the
    one before is in use would take the room of both from then on.
    """
    if nbytes < OWN_PAGES or not hasattr(mmap, "MAP_ANONYMOUS"):
        return aligned_empty(shape, dtype, nbytes)
    try:
        pages = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise IRValueError(f"no memory for an array of shape {shape}, {nbytes} bytes") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):  # as numpy asks for its own
        with contextlib.suppress(OSError):  # a kernel without them
            pages.madvise(mmap.MADV_HUGEPAGE)
    array: np.ndarray = np.ndarray(shape, dtype, pages)
    return array, data_address(array)


@functools.cache
def keep_freed_memory() -> None:
    """Let the allocator of C keep what kernels free at the end of a call for the next one.

    glibc returns free memory at the top of its heap to the system from 128 KiB on. The next call
    would get new pages, which the system clears first. The limit rises to twice the size of the
    largest block with pages of its own that was freed (``mallopt``, M_TRIM_THRESHOLD). So such a
    block, which nothing touches, is freed once.
    """
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
    libc.free(libc.malloc(_KEPT))


def reach(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, int]:
    """First byte and number of bytes that a strided tensor touches; strides in elements."""
    first = last = 0
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 0:
            return address, 0
        if stride < 0:
            first += (extent - 1) * stride
        else:
            last += (extent - 1) * stride
    return address + first * itemsize, (last - first + 1) * itemsize


def view_at(
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype,
    strides: tuple[int, ...] | None = None,
    owner: object = None,
) -> np.ndarray:
    """A numpy view of ``owner``'s memory at ``address``; ``strides`` in bytes, not negative.

    The view's ``base`` chain ends in a ctypes object, whose ``owner`` is the one given.
    """
    span = dtype.itemsize
    for position, extent in enumerate(shape):
        if strides is None:
            span *= extent
        elif extent:
            span += (extent - 1) * strides[position]
    if 0 in shape:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * span).from_address(address)
    memory.owner = owner
    return np.ndarray(shape, dtype, memory, 0, strides)
