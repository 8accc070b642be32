"""The C library's heap, replaced for compiled code by guarded memory.

Code that is loaded after ``watch_heap`` allocates from slots of ``GuardedMemory``: what runs past
an allocation meets a page without access. What is larger than a slot comes from the real heap.
"""

from __future__ import annotations

import ctypes
from typing import Final

from tests.lib.guarded_memory import ROOM, GuardedMemory
from weft.runtime.call.abi import address_of
from weft.runtime.native.externals import add_symbol

_ALLOCATE: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_FREE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_LARGEST: Final = 1 << 26
"""Larger requests fail, as they may on any machine."""


class GuardedHeap:
    """``aligned_alloc`` and ``free`` over slots; allocations end where a slot's room ends."""

    def __init__(self, slots: int) -> None:
        self._memory = GuardedMemory(slots)
        self._open = list(range(slots))
        self._given: dict[int, int] = {}
        library = ctypes.CDLL(None)
        self._allocate, self._free = library.aligned_alloc, library.free
        self._allocate.restype = ctypes.c_void_p
        self._allocate.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        self._free.argtypes = [ctypes.c_void_p]
        self.callbacks = (_ALLOCATE(self.allocate), _FREE(self.free))

    def allocate(self, alignment: int, nbytes: int) -> int | None:
        """An address, or None where there is none."""
        if nbytes > _LARGEST:
            return None
        if nbytes > ROOM or not self._open:
            address: int | None = self._allocate(alignment, nbytes)
            return address
        slot = self._open.pop()
        placed = self._memory.place(slot, nbytes, True)
        given = self._memory.place_address(placed)
        self._given[given] = slot
        return given

    def free(self, address: int | None) -> None:
        """Take an allocation back."""
        slot = self._given.pop(address or 0, None)
        if slot is None:
            self._free(address)
        else:
            self._open.append(slot)


def watch_heap(slots: int = 64) -> GuardedHeap:
    """Let all code that is loaded from now on allocate from a guarded heap; keep the result."""
    heap = GuardedHeap(slots)
    for name, callback in zip(("aligned_alloc", "free"), heap.callbacks, strict=True):
        add_symbol(name, address_of(callback))
    return heap
