"""A file with one JSON value a line, to which several processes append.

A process that appends holds a lock on the file (``flock``), and first reads what others have added.
A line without its end was cut off, by ``kill -9`` or a full disk: it is not read, and the next one
that is appended takes its place.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from weft.support.errors import IRValueError, TVMError

_Writer: TypeAlias = Callable[[object], None]
DAMAGED: Final = object()
"""The value of a line that is no JSON."""


class Line(NamedTuple):
    """A line of the file: its number, from 0, and its value (``DAMAGED`` if it has none)."""

    number: int
    value: object


class JsonLines:
    """A file of JSON lines, and how much of it was read.

    Args:
        path: the file.
        allow_missing: create it, empty, if it is not there. Otherwise that is an IRValueError.
    """

    def __init__(self, path: str | Path, *, allow_missing: bool) -> None:
        self.path = Path(path)
        self._end = 0
        self._count = 0
        if not self.path.exists():
            if not allow_missing:
                raise IRValueError(
                    f"expected the file {self.path} of a database, found none; allow_missing=True "
                    "begins an empty one"
                )
            with self._reported():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.touch()

    def read_new(self) -> list[Line]:
        """The lines that were added since the last call, by any process."""
        with self._reported(), self.path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return self._read(file)

    def append(self, value: object) -> list[Line]:
        """Add a line. Gives those that others added before it."""
        with self.appending() as (added, write):
            write(value)
        return added[:-1]

    @contextlib.contextmanager
    def appending(self) -> Iterator[tuple[list[Line], _Writer]]:
        """Hold the lock: gives the lines that others added, and a function that adds one to them.

        Raises TVMError where the file cannot be written; it is then as it was.
        """
        with self._reported(), self.path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            added = self._read(file)

            def write(value: object) -> None:
                self._write(file, value)
                added.append(Line(self._count - 1, value))

            yield added, write

    def _read(self, file: BinaryIO) -> list[Line]:
        file.seek(self._end)
        content = file.read()
        if content and not content.endswith(b"\n") and _value(content.splitlines()[-1]) is DAMAGED:
            content = content[: content.rfind(b"\n") + 1]
        lines = [Line(self._count + i, _value(t)) for i, t in enumerate(content.splitlines())]
        self._end += len(content)
        self._count += len(lines)
        return lines

    def cut_off(self) -> bool:
        """Whether the file ends with a line that was not written to its end."""
        return self.path.stat().st_size > self._end

    def _write(self, file: BinaryIO, value: object) -> None:
        data = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        os.ftruncate(file.fileno(), self._end)  # a line that was cut off
        if self._end and os.pread(file.fileno(), 1, self._end - 1) != b"\n":
            data = b"\n" + data
        try:
            written = os.pwrite(file.fileno(), data, self._end)
            while written < len(data):
                written += os.pwrite(file.fileno(), data[written:], self._end + written)
        except OSError:
            os.ftruncate(file.fileno(), self._end)
            raise
        self._end += len(data)
        self._count += 1

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TVMError(
                f"cannot use the file {self.path} of the database: {error.strerror or error}"
            ) from error


def _value(line: bytes) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return DAMAGED
