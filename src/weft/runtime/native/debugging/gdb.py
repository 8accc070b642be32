"""Tells gdb which functions and lines the loaded code has, by gdb's interface for compilers.

gdb stops at a function of a certain name, in any library, and then reads a list of ELF files that
are in the process's memory. Libraries with that function belong to compilers, of which a process
that runs models has none: so weft writes one that has nothing else.

Source: GDB manual, "JIT Compilation Interface".
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from weft.runtime.native.debugging.elf_writer import (
    PROGBITS,
    STRTAB,
    Section,
    Segment,
    elf_file,
)
from weft.runtime.native.debugging.functions import LoadedFunction
from weft.runtime.native.elf import FUNCTION, NOBITS, SYMBOL, SYMTAB

_REGISTER: Final = "__jit_debug_register_code"
_DESCRIPTOR: Final = "__jit_debug_descriptor"
_ADDED, _REMOVED = 1, 2
_EXECUTABLE_FILE, _LIBRARY = 2, 3
_WRITABLE, _ALLOCATED, _CODE = 1, 2, 4
_GLOBAL, _OBJECT = 16, 1
_DYNSYM, _HASH, _DYNAMIC = 11, 5, 6
_LOAD, _DYNAMIC_SEGMENT, _STACK = 1, 2, 0x6474E551
_DATA_AT: Final = 0x1000


class _Entry(ctypes.Structure):
    """A file in the list."""

    _fields_ = (
        ("next", ctypes.c_void_p),
        ("previous", ctypes.c_void_p),
        ("content", ctypes.c_char_p),
        ("size", ctypes.c_uint64),
    )


class _Descriptor(ctypes.Structure):
    """The list, and what happened to it last."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("action", ctypes.c_uint32),
        ("relevant", ctypes.c_void_p),
        ("first", ctypes.c_void_p),
    )


def symbol_file(
    machine: int, code: range, functions: Iterable[LoadedFunction], tables: Mapping[str, bytes]
) -> bytes:
    """An ELF file that names what lies in memory.

    Args:
        machine: the processor's number in ELF files.
        code: the addresses of the code.
        functions: its functions.
        tables: the sections for debuggers, which name addresses in memory.
    """
    symbols, names = [np.zeros(1, SYMBOL)], bytearray(b"\0")
    for item in functions:
        place = len(names), _GLOBAL + FUNCTION, 0, 1, item.address, item.size
        symbols.append(np.array([place], SYMBOL))
        names += item.name.encode() + b"\0"
    listed = np.concatenate(symbols).tobytes()
    sections = [
        Section(".text", NOBITS, b"", _ALLOCATED | _CODE, code.start, size=len(code)),
        Section(".symtab", SYMTAB, listed, link=3, info=1, entry=SYMBOL.itemsize),
        Section(".strtab", STRTAB, bytes(names)),
        *[Section(name, PROGBITS, content) for name, content in tables.items()],
    ]
    return elf_file(_EXECUTABLE_FILE, machine, sections)


def library(machine: int, ret: bytes) -> bytes:
    """A shared library with the function that gdb looks for, and the list's descriptor.

    Args:
        machine: the processor's number in ELF files.
        ret: the code of a function that returns at once.
    """
    names = f"\0{_REGISTER}\0{_DESCRIPTOR}\0".encode()
    at = [_DATA_AT // 2]  # behind the header and the segments
    for size in (3 * SYMBOL.itemsize, len(names), 7 * 4, len(ret)):
        at.append(at[-1] + size + -size % 8)
    symtab, strtab, table, text, _ = at
    dynamic = [(4, table), (5, strtab), (6, symtab), (10, len(names)), (11, SYMBOL.itemsize)]
    described = np.array([*dynamic, (0, 0)], "<u8").tobytes()
    data = _DATA_AT + len(described)
    symbols = np.zeros(3, SYMBOL)
    symbols[1] = 1, _GLOBAL + FUNCTION, 0, 4, text, len(ret)
    symbols[2] = 2 + len(_REGISTER), _GLOBAL + _OBJECT, 0, 6, data, ctypes.sizeof(_Descriptor)
    chains = np.array([1, 3, 1, 0, 2, 0, 0], "<u4")  # one bucket, which has all symbols
    content = bytes(_Descriptor(version=1))
    sections = [
        Section(".dynsym", _DYNSYM, symbols.tobytes(), 2, symtab, 2, 1, SYMBOL.itemsize),
        Section(".dynstr", STRTAB, names, _ALLOCATED, strtab),
        Section(".hash", _HASH, chains.tobytes(), _ALLOCATED, table, 1, entry=4),
        Section(".text", PROGBITS, ret, _ALLOCATED | _CODE, text),
        Section(".dynamic", _DYNAMIC, described, _ALLOCATED | _WRITABLE, _DATA_AT, 2, entry=16),
        Section(".data", PROGBITS, content, _ALLOCATED | _WRITABLE, data),
    ]
    writable = len(described) + len(content)
    segments = [
        Segment(_LOAD, 5, 0, text + len(ret), _DATA_AT),
        Segment(_LOAD, 6, _DATA_AT, writable, _DATA_AT),
        Segment(_DYNAMIC_SEGMENT, 6, _DATA_AT, len(described)),
        Segment(_STACK, 6, 0, 0),
    ]
    return elf_file(_LIBRARY, machine, sections, segments)


class Debugger:
    """The list of files that gdb reads, in a library that ``path`` becomes."""

    def __init__(self, path: Path, machine: int, ret: bytes) -> None:
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(library(machine, ret))
        loaded = ctypes.CDLL(str(path))
        self._tell = getattr(loaded, _REGISTER)
        self._list = _Descriptor.in_dll(loaded, _DESCRIPTOR)
        self._entries: dict[int, _Entry] = {}
        self._lock = threading.Lock()
        self._gone: deque[int] = deque()
        """Entries to take out: code is unloaded at any moment, also while the list is changed."""

    def add(self, content: bytes) -> Callable[[], None]:
        """Tell of a file; what is returned takes it back."""
        entry = _Entry(content=content, size=len(content))
        address = ctypes.addressof(entry)
        with self._lock:
            first = self._list.first
            if first:
                _Entry.from_address(first).previous, entry.next = address, first
            self._list.first = address
            self._entries[address] = entry
            self._happened(_ADDED, address)
            self._take_out()
        return functools.partial(self._remove, address)

    def _remove(self, address: int) -> None:
        self._gone.append(address)
        if self._lock.acquire(blocking=False):  # else whoever changes the list does it
            try:
                self._take_out()
            finally:
                self._lock.release()

    def _take_out(self) -> None:
        while self._gone:
            address = self._gone.popleft()
            entry = self._entries[address]
            if entry.next:
                _Entry.from_address(entry.next).previous = entry.previous
            if entry.previous:
                _Entry.from_address(entry.previous).next = entry.next
            else:
                self._list.first = entry.next
            self._happened(_REMOVED, address)
            del self._entries[address]

    def _happened(self, action: int, address: int) -> None:
        self._list.action, self._list.relevant = action, address
        self._tell()
        self._list.action = 0


@functools.lru_cache(maxsize=1)
def debugger(folder: Path, process: int, machine: int, ret: bytes) -> Debugger:
    """That of a process; its library is a file in ``folder`` as long as the process lives."""
    path = folder / f"jit-{process}.so"
    told = Debugger(path, machine, ret)
    atexit.register(_delete, path, process)
    return told


def _delete(path: Path, process: int) -> None:
    if os.getpid() == process:  # not a process that was forked of it
        path.unlink(missing_ok=True)
