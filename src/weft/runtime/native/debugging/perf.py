"""Tells Linux's ``perf`` which function and which line lies where in memory.

Two files in ``/tmp``, where perf looks for them:

- ``perf-PID.map``: address, size and name of each function, which ``perf report`` reads by itself;
- ``jit-PID.dump``: the code and its lines, too, for ``perf annotate``: after ``perf record -k
  mono``, ``perf inject --jit`` makes object files of it.

Sources: Linux, tools/perf/Documentation: jit-interface.txt, jitdump-specification.txt.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import mmap
import struct
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from weft.runtime.native.debugging.functions import LoadedFunction
from weft.runtime.native.debugging.line_table import Row

FOLDER: Final = Path("/tmp")  # noqa: S108 - perf reads no other
_HEADER: Final = struct.Struct("<IIIIIIQQ")
_RECORD: Final = struct.Struct("<IIQIIQQQQ")
_LINES: Final = struct.Struct("<IIQQQ")
_LINE: Final = struct.Struct("<QII")
_MAGIC: Final = 0x4A695444
_VERSION: Final = 1
_CODE_LOAD, _DEBUG_INFO = 0, 2


@functools.lru_cache(maxsize=1)
def notes_of(process: int, machine: int) -> PerfNotes:
    """The files of a process."""
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

    def add(self, functions: Iterable[LoadedFunction], rows: Sequence[Row] = ()) -> None:
        """Write a line and a record for each function, after one of its lines.

        ``rows`` are those of the line tables of all of them, by address.
        """
        with self._lock:
            for function in functions:
                self._map.write(f"{function.address:x} {function.size:x} {function.name}\n")
                self._dump.write(_lines_record(function, rows))
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


def _lines_record(function: LoadedFunction, rows: Sequence[Row]) -> bytes:
    """The record of a function's lines; nothing if none is known."""
    begin = bisect.bisect_left(rows, function.address, key=lambda row: row.address)
    end = bisect.bisect_left(rows, function.address + function.size, key=lambda row: row.address)
    entries = [
        _LINE.pack(row.address, row.line, 0) + row.file.path.encode() + b"\0"
        for row in rows[begin:end]
        if row.file is not None and row.line  # line 0: LLVM made the code of several
    ]
    if not entries:
        return b""
    size = _LINES.size + sum([len(entry) for entry in entries])
    head = _LINES.pack(_DEBUG_INFO, size, time.monotonic_ns(), function.address, len(entries))
    return head + b"".join(entries)
