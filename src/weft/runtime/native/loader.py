"""Object code in memory, ready to be called: a loader of relocatable ELF objects.

A process that only runs models needs nothing of LLVM, which would be most of its memory. All parts
lie in one mapping, so that every distance between them fits into 32 bits: code, then constants and
the table of external functions, then variables. Places that name addresses are filled in as the
processor's binary interface says (``Architecture.loading``); code of a family that has no such row
is LLVM's to load. Tables for unwinding are left out: no exception passes through compiled code.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from weft.backends.cpu.isa import architecture_of
from weft.backends.cpu.isa.architecture import Loading
from weft.runtime.native.elf import (
    ABSOLUTE,
    NOBITS,
    RELA,
    RELOCATION,
    UNDEFINED,
    ObjectFile,
    Table,
    check_object,
)
from weft.support import slots
from weft.support.config import environment_flag
from weft.support.errors import CodegenError

_HERE: Final = architecture_of(platform.machine())
_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4
_EXCEPTION_FRAMES: Final = 0x70000001
_LIMIT: Final = 1 << 31

_LOADING: Final = _HERE.loading or Loading(0, 0, 0, (), b"", 0, b"")
_ADDRESS, _DISTANCE, _CALL, _ENTRY, _JUMP = _LOADING[:5]
_OWN_TABLE: Final = "_GLOBAL_OFFSET_TABLE_"
"""A name that assemblers mention; nothing refers to it."""
_JUMP_SIZE: Final = 8
_ENTRY_SIZE: Final = 8

_libc: Final = ctypes.CDLL(None, use_errno=True)
if hasattr(_libc, "mmap"):
    _libc.mmap.restype = ctypes.c_void_p
    _libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    _libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    _libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class LoadedObject:
    """Code that can be called as long as this object lives."""

    __slots__ = ("__weakref__", "_addresses")

    def __init__(self, start: int, size: int, addresses: Mapping[str, int]) -> None:
        self._addresses = dict(addresses)
        # not at the end of the process: threads that are still in the code end with it
        weakref.finalize(self, _libc.munmap, start, size).atexit = False

    def address(self, name: str) -> int:
        """The address of what the object defines under this name; 0 if it defines no such thing."""
        return self._addresses.get(name, 0)


def load_object(file: ObjectFile, externals: Mapping[str, int]) -> LoadedObject | None:
    """Load an object; None if it asks for what this loader does not know, so that LLVM has to.

    ``externals`` has the address of every name that the object does not define. Raises CodegenError
    where one is missing, where the file contradicts itself, or where there is no memory.
    """
    with _damage_told():
        check_object(file)
        if not _is_known(file):
            return None
        layout = _Layout(file)
    missing = file.symbol_names()[1] - externals.keys() - {_OWN_TABLE}
    if missing:
        raise CodegenError(f"no address is known of {', '.join(sorted(missing))}")
    start = _mapped(layout.size)
    try:
        with _damage_told():
            addresses = layout.fill(start, externals)
            layout.protect(start)
    except CodegenError:
        _libc.munmap(start, layout.size)
        raise
    own = np.flatnonzero(file.symbols["section"] != UNDEFINED)
    names = {file.names[number]: int(addresses[number]) for number in own if file.names[number]}
    loaded = LoadedObject(start, layout.size, names)
    if environment_flag("WEFT_PERF"):
        code = range(start, start + layout.code_end)
        take_back = slots.tell_tools.get()(file, addresses, code, _LOADING)
        weakref.finalize(loaded, take_back).atexit = False
    return loaded


@contextmanager
def _damage_told() -> Iterator[None]:
    try:
        yield
    except (ValueError, IndexError, OverflowError) as error:
        raise CodegenError(f"expected object code, got a damaged ELF file: {error}") from error


def _is_known(file: ObjectFile) -> bool:
    if _HERE.loading is None or file.machine != _HERE.elf_machine or sys.platform != "linux":
        return False
    for section in _relocated(file):
        relocations = file.table(section, RELOCATION)
        external = file.symbols["section"][relocations["symbol"]] == UNDEFINED
        known = np.isin(relocations["type"], (_CALL, *_ENTRY))
        if not (known | (np.isin(relocations["type"], (_ADDRESS, _DISTANCE)) & ~external)).all():
            return False
    return True


def _relocated(file: ObjectFile) -> list[np.void]:
    """The sections of relocations for what is loaded."""
    sections = file.sections
    return [
        section
        for section in sections[sections["type"] == RELA]
        if _is_loaded(sections[int(section["info"])])
    ]


def _is_loaded(section: np.void) -> bool:
    return bool(section["flags"] & _ALLOCATED) and section["type"] != _EXCEPTION_FRAMES


def _mapped(size: int) -> int:
    """The address of fresh memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start: int | None = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if start is None or start == ctypes.c_void_p(-1).value:
        reason = os.strerror(ctypes.get_errno())
        raise CodegenError(f"cannot load {size} bytes of compiled code: {reason}")
    return start


class _Layout:
    """Where each part of an object goes, from the start of its memory."""

    def __init__(self, file: ObjectFile) -> None:
        self.file = file
        self.places: dict[int, int] = {}
        self.relocations = [
            (int(section["info"]), file.table(section, RELOCATION)) for section in _relocated(file)
        ]
        tables = [np.zeros(0, RELOCATION), *[table for _, table in self.relocations]]
        everything = np.concatenate(tables)
        external = file.symbols["section"][everything["symbol"]] == UNDEFINED
        called = everything["symbol"][(everything["type"] == _CALL) & external]
        listed = everything["symbol"][np.isin(everything["type"], _ENTRY)]
        self.jumps = np.unique(called)
        self.entries = np.unique(np.concatenate([listed, called]))
        code = self._placed(0, _EXECUTABLE, _EXECUTABLE | _WRITABLE)
        self.jumps_at = _up(code, _JUMP_SIZE)
        self.code_end = _up(self.jumps_at + _JUMP_SIZE * len(self.jumps), mmap.PAGESIZE)
        constants = self._placed(self.code_end, 0, _EXECUTABLE | _WRITABLE)
        self.entries_at = _up(constants, _ENTRY_SIZE)
        self.constants_end = _up(self.entries_at + _ENTRY_SIZE * len(self.entries), mmap.PAGESIZE)
        variables = self._placed(self.constants_end, _WRITABLE, _EXECUTABLE | _WRITABLE)
        self.size = max(_up(variables, mmap.PAGESIZE), mmap.PAGESIZE)
        if self.size >= _LIMIT:
            raise OverflowError(f"{self.size} bytes of code")

    def _placed(self, at: int, flags: int, mask: int) -> int:
        """Place the sections with these flags from ``at`` on; where they end."""
        for number, section in enumerate(self.file.sections):
            if _is_loaded(section) and int(section["flags"]) & mask == flags:
                at = _up(at, max(int(section["align"]), 1))
                self.places[number] = at
                at += int(section["size"])
        return at

    def fill(self, start: int, externals: Mapping[str, int]) -> Table:
        """Write everything into memory at ``start``; the addresses of the symbols."""
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(start))
        for number, at in self.places.items():
            section = self.file.sections[number]
            if section["type"] != NOBITS:
                memory[at : at + int(section["size"])] = self.file.table(section, np.dtype("u1"))
        addresses = self._addresses(start, externals)
        self._fill_table(memory, addresses)
        for number, relocations in self.relocations:
            self._relocate(memory, start, self.places[number], relocations, addresses)
        return addresses

    def _addresses(self, start: int, externals: Mapping[str, int]) -> Table:
        """The address of each symbol."""
        addresses = np.zeros(len(self.file.symbols), np.int64)
        for number, symbol in enumerate(self.file.symbols):
            place, value = int(symbol["section"]), int(symbol["value"])
            if place == UNDEFINED:
                addresses[number] = externals.get(self.file.names[number], 0)
            elif place == ABSOLUTE:
                addresses[number] = value
            elif place in self.places:
                addresses[number] = start + self.places[place] + value
        return addresses

    def _fill_table(self, memory: Table, addresses: Table) -> None:
        """The table of addresses, and a jump through it for each function that is called."""
        table = memory[self.entries_at :][: _ENTRY_SIZE * len(self.entries)]
        table[:] = addresses[self.entries].view(np.uint8)
        for number, symbol in enumerate(self.jumps):
            at = self.jumps_at + _JUMP_SIZE * number
            distance = self._entry(symbol) - (at + len(_JUMP) + 4)
            jump = _JUMP + int(distance).to_bytes(4, "little", signed=True)
            memory[at : at + len(jump)] = np.frombuffer(jump, np.uint8)

    def _entry(self, symbols: Any) -> Any:
        """Where the entries of symbols are."""
        return self.entries_at + _ENTRY_SIZE * np.searchsorted(self.entries, symbols)

    def _relocate(
        self, memory: Table, start: int, at: int, relocations: Table, addresses: Table
    ) -> None:
        """Fill in addresses and distances in the section at ``at``."""
        places = relocations["offset"].astype(np.int64) + at
        symbols, addends = relocations["symbol"], relocations["addend"]
        targets = addresses[symbols] - start
        external = self.file.symbols["section"][symbols] == UNDEFINED
        called = (relocations["type"] == _CALL) & external
        jumps = self.jumps_at + _JUMP_SIZE * np.searchsorted(self.jumps, symbols)
        targets = np.where(called, jumps, targets)
        targets = np.where(np.isin(relocations["type"], _ENTRY), self._entry(symbols), targets)
        whole = relocations["type"] == _ADDRESS
        _write(memory, places[whole], (targets + start + addends)[whole])
        distances = (targets + addends - places)[~whole]
        if distances.size and np.abs(distances).max() >= _LIMIT:
            raise OverflowError("a distance between parts of the code")
        _write(memory, places[~whole], distances.astype(np.int32))

    def protect(self, start: int) -> None:
        """Code may be run and not written, constants may not be written."""
        parts = (
            (0, self.code_end, mmap.PROT_READ | mmap.PROT_EXEC),
            (self.code_end, self.constants_end, mmap.PROT_READ),
        )
        for begin, end, rights in parts:
            if end > begin and _libc.mprotect(start + begin, end - begin, rights):
                raise ValueError(f"cannot make code executable: {os.strerror(ctypes.get_errno())}")


def _write(memory: Table, places: Table, values: Table) -> None:
    """Write the bytes of values at places."""
    if len(places) and (places.min() < 0 or places.max() + values.itemsize > len(memory)):
        raise IndexError("a place outside of the code")
    memory[places[:, None] + np.arange(values.itemsize)] = np.ascontiguousarray(values)[
        :, None
    ].view(np.uint8)


def _up(size: int, unit: int) -> int:
    """The next multiple of a unit."""
    return -(-size // unit) * unit
