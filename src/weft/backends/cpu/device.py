"""The CPU as a device: its memory is that of this process, and its code is loaded into it."""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np

from weft.runtime.device_api import CPU_TYPE, Memory
from weft.runtime.memory.allocation import ALIGNMENT, aligned_empty
from weft.runtime.native.native_library import NativeLibrary
from weft.support.errors import IRValueError

_BYTE: Final = np.dtype("uint8")


class HostDevice:
    """A ``weft.runtime.device_api.DeviceAPI`` for the CPU that this process runs on."""

    def count(self) -> int:
        """How many devices there are: one, since all cores are one device."""
        return 1

    def alloc(self, device_id: int, nbytes: int, alignment: int) -> Memory:
        """Allocate ``nbytes``, which are freed with the last reference to the result."""
        if ALIGNMENT % alignment:
            raise IRValueError(f"expected an alignment that divides {ALIGNMENT}, got {alignment}")
        block, address = aligned_empty((nbytes,), _BYTE, nbytes)
        return Memory(CPU_TYPE, device_id, address, nbytes, block)

    def copy(self, target: Memory, source: Memory, nbytes: int) -> None:
        """Copy ``nbytes`` from ``source`` to ``target``."""
        ctypes.memmove(target.address, source.address, nbytes)

    def load(self, code: bytes) -> NativeLibrary:
        """Load an object file into the memory of this process."""
        return NativeLibrary(code)

    def sync(self, device_id: int) -> None:
        """Return at once: a call on the CPU has ended when it returns."""


HOST: Final = HostDevice()
