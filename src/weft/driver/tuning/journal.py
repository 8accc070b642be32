"""The file of all trials: a line of JSON each, so that nothing is measured twice or lost.

A line is written by one call of the system, so that several processes may write to a file, and one
that is killed loses no line but its last. When the disk is full, a search goes on in memory. Lines
count for the processor, the number of threads and the version of weft's schedules that they name;
others are kept, and not used.
"""

from __future__ import annotations

import errno
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from weft.support.errors import IRValueError

_FORMAT: Final = 1


@dataclass(frozen=True)
class Entry:
    """One trial of a kernel.

    Attributes:
        kernel: the digest of its structure.
        taken: the answers to its choices; none are those of the default schedule.
        microseconds: of a call; None: the trial failed.
        name: what its model calls it.
        calls: how often its model calls it.
        is_winner: whether this form was then measured beside the default, and is in the model.
    """

    kernel: str
    taken: Mapping[str, str]
    microseconds: float | None
    name: str = ""
    calls: int = 1
    is_winner: bool = False


class Journal:
    """The trials in a file.

    Args:
        path: the file; None keeps them in memory only.
        place: what the times depend on: the target, the processor, the number of threads.
    """

    def __init__(self, path: Path | None, place: str) -> None:
        self._path, self._place = path, place
        self._entries = list(self._read())
        self._has_written = False

    def of(self, kernel: str) -> list[Entry]:
        """The trials of a kernel, oldest first."""
        return [entry for entry in self._entries if entry.kernel == kernel]

    def add(self, entry: Entry) -> None:
        """Keep a trial.

        Raises IRValueError if the file cannot be written from the first. If it could before (the
        disk is full now), there is a warning, and this and later trials are kept in memory only.
        """
        self._entries.append(entry)
        if self._path is None:
            return
        row = {"format": _FORMAT, "place": self._place, **asdict(entry)}
        try:
            append_line(self._path, json.dumps(row).encode() + b"\n")
        except OSError as error:
            problem = f"tune: the trial cannot be written to {self._path}: {error.strerror}"
            if not self._has_written:
                raise IRValueError(f"{problem}; give another file as database=, or None") from error
            warnings.warn(f"{problem}; the search goes on without the file", stacklevel=2)
            self._path = None
        self._has_written = True

    def _read(self) -> Iterator[Entry]:
        """The entries of the file for this place."""
        if self._path is None or not self._path.is_file():
            return iter(())
        return (entry for place, entry in entries_of(self._path) if place == self._place)


def append_line(path: Path, line: bytes) -> None:
    """Write a line behind what is there; one that a kill or a full disk cut off is ended first."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        text = b"\n" + line if is_torn else line
        if os.write(descriptor, text) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)


def entries_of(path: Path) -> Iterator[tuple[str, Entry]]:
    """(place, trial) for each line of a file; damaged lines, as a kill leaves, are skipped."""
    for line in path.read_text(errors="replace").splitlines():
        try:
            fields = json.loads(line)
            if fields["format"] == _FORMAT:
                yield str(fields["place"]), _entry(fields)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def _entry(fields: Mapping[str, Any]) -> Entry:
    time = fields["microseconds"]
    return Entry(
        str(fields["kernel"]),
        {str(name): str(answer) for name, answer in fields["taken"].items()},
        None if time is None else float(time),
        str(fields.get("name", "")),
        int(fields.get("calls", 1)),
        bool(fields.get("is_winner", False)),
    )
