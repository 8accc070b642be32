"""Tells Linux's ``perf`` which function lies where in memory (``WEFT_PERF=1``).

Two files in ``/tmp``, where perf looks for them:

- ``perf-PID.map``: address, size and name of each function, which ``perf report`` reads by itself;
- ``jit-PID.dump``: the code, too, for ``perf annotate``: after ``perf record -k mono``, ``perf
  inject --jit`` makes object files of it.

Sources: Linux, tools/perf/Documentation: jit-interface.txt, jitdump-specification.txt.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from weft.runtime.native.elf import ABSOLUTE, FUNCTION, UNDEFINED, ObjectFile, Table
from weft.support.config import environment_flag

FOLDER: Final = Path("/tmp")  # noqa: S108 - perf reads no other
_HEADER: Final = struct.Struct("<IIIIIIQQ")
_RECORD: Final = struct.Struct("<IIQIIQQQQ")
_MAGIC: Final = 0x4A695444
_VERSION: Final = 1
_CODE_LOAD: Final = 0


class LoadedFunction(NamedTuple):
    """A function in this process's memory."""

    name: str
    address: int
    size: int


def functions_in(file: ObjectFile, addresses: Table) -> Iterator[LoadedFunction]:
    """The functions of a loaded object; ``addresses`` are those of its symbols."""
    for symbol, name, address in zip(file.symbols, file.names, addresses, strict=True):
        is_here = int(symbol["section"]) not in (UNDEFINED, ABSOLUTE)
        if is_here and symbol["info"] & 15 == FUNCTION and name:
            yield LoadedFunction(name, int(address), int(symbol["size"]))


def tell_perf(file: ObjectFile, addresses: Table) -> None:
    """Note the functions of an object that was loaded, if ``WEFT_PERF`` asks for it."""
    if environment_flag("WEFT_PERF"):
        _notes(os.getpid(), file.machine).add(functions_in(file, addresses))


@functools.lru_cache(maxsize=1)
def _notes(process: int, machine: int) -> PerfNotes:
    return PerfNotes(FOLDER, process, machine)


class PerfNotes:
    """Both files of a process; ``machine`` is the processor's number in ELF files."""

    def __init__(self, folder: Path, process: int, machine: int) -> None:
        self.process, self._count, self._lock = process, 0, threading.Lock()
        self._map = (folder / f"perf-{process}.map").open("a", encoding="utf-8")
        self._dump = (folder / f"jit-{process}.dump").open("w+b")
        now = time.monotonic_ns()
        self._dump.write(_HEADER.pack(_MAGIC, _VERSION, _HEADER.size, machine, 0, process, now, 0))
        self._dump.flush()
        # perf learns of the file by seeing that it is mapped as code
        protection = mmap.PROT_READ | mmap.PROT_EXEC
        self._mark = mmap.mmap(self._dump.fileno(), _HEADER.size, mmap.MAP_PRIVATE, protection)

    def add(self, functions: Iterator[LoadedFunction]) -> None:
        """Write a line and a record for each function."""
        with self._lock:
            for function in functions:
                self._map.write(f"{function.address:x} {function.size:x} {function.name}\n")
                self._dump.write(self._record(function))
            self._map.flush()
            self._dump.flush()

    def close(self) -> None:
        """Close both files; what was written stays."""
        self._map.close()
        self._mark.close()
        self._dump.close()

    def _record(self, function: LoadedFunction) -> bytes:
        name = function.name.encode() + b"\0"
        code = ctypes.string_at(function.address, function.size)
        size = _RECORD.size + len(name) + len(code)
        self._count += 1
        head = _RECORD.pack(
            _CODE_LOAD, size, time.monotonic_ns(), self.process, threading.get_native_id(),
            function.address, function.address, function.size, self._count,
        )  # fmt: skip
        return head + name + code
