"""The CPU as a device: memory of this process, whose code is loaded beside it."""

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
        """One: all cores are one device."""
        return 1

    def alloc(self, device_id: int, nbytes: int, alignment: int) -> Memory:
        """Memory that the array of bytes which owns it frees."""
        if ALIGNMENT % alignment:
            raise IRValueError(f"expected an alignment that divides {ALIGNMENT}, got {alignment}")
        block, address = aligned_empty((nbytes,), _BYTE, nbytes)
        return Memory(CPU_TYPE, device_id, address, nbytes, block)

    def copy(self, target: Memory, source: Memory, nbytes: int) -> None:
        """The bytes at once."""
        ctypes.memmove(target.address, source.address, nbytes)

    def load(self, code: bytes) -> NativeLibrary:
        """An object file in the memory of this process."""
        return NativeLibrary(code)

    def sync(self, device_id: int) -> None:
        """Nothing to wait for: calls have ended when they return."""


HOST: Final = HostDevice()
