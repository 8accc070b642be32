"""Memory whose ends are watched: an access outside of it is a fault, or leaves a trace.

Each slot is a room of two pages between reserved ranges without access. What is placed there ends
where the room ends, or begins where it begins; the rest of the room is filled with a pattern, which
``damage`` compares.
"""

from __future__ import annotations

import ctypes
import mmap
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.support.errors import InternalError

_PAGE: Final = mmap.PAGESIZE
ROOM: Final = 2 * _PAGE
"""Bytes that a slot can hold."""
_GUARD: Final = 256 * _PAGE
_PATTERN: Final = 0xC5
_NO_ACCESS: Final = 0


@dataclass(frozen=True)
class Placed:
    """Bytes ``first`` to ``last`` of a slot's room."""

    slot: int
    first: int
    last: int


class GuardedMemory:
    """Slots for arrays; see the module's text."""

    def __init__(self, slots: int) -> None:
        self._step = ROOM + _GUARD
        self._map = mmap.mmap(-1, slots * self._step + _GUARD)
        bytes_ = np.frombuffer(self._map, np.uint8)
        self.address: int = bytes_.ctypes.data
        self.slots = slots
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for slot in range(slots + 1):
            if protect(self.address + slot * self._step, _GUARD, _NO_ACCESS):
                raise InternalError(f"mprotect: {ctypes.get_errno()}")
        self._rooms = [
            bytes_[self._start(slot) : self._start(slot) + ROOM] for slot in range(slots)
        ]

    def _start(self, slot: int) -> int:
        return _GUARD + slot * self._step

    def place(self, slot: int, nbytes: int, at_end: bool) -> Placed:
        """Fresh memory of so many bytes, at one end of a slot's room; the pattern is everywhere."""
        self._rooms[slot][:] = _PATTERN
        first = ROOM - nbytes if at_end else 0
        return Placed(slot, first, first + nbytes)

    def array(
        self,
        placed: Placed,
        shape: tuple[int, ...],
        dtype: Any,
        steps: tuple[int, ...],
        start: int = 0,
    ) -> np.ndarray[Any, Any]:
        """An array in placed memory: bytes from one element to the next, and where it starts."""
        offset = self._start(placed.slot) + placed.first + start
        return np.ndarray(shape, dtype, self._map, offset, steps)

    def bytes(self, placed: Placed) -> np.ndarray[Any, Any]:
        """The placed memory as bytes."""
        return self._rooms[placed.slot][placed.first : placed.last]

    def damage(self, placed: Placed) -> list[int]:
        """Bytes around placed memory that changed, counted from its first byte."""
        room = self._rooms[placed.slot]
        changed = room != _PATTERN
        changed[placed.first : placed.last] = False
        return [int(place) - placed.first for place in np.flatnonzero(changed)]

    def place_address(self, placed: Placed) -> int:
        """The address of the first byte of placed memory."""
        return self.address + self._start(placed.slot) + placed.first
