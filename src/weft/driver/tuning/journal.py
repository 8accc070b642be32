"""The file of all trials: a line of JSON each, so that nothing is measured twice or lost.

A line is written by one call of the system, so that several processes may write to a file, and one
that is killed loses no line but its last. Lines count for the processor, the number of threads and
the version of weft's schedules that they name; others are kept, and not used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from weft.support.errors import IRValueError

_FORMAT: Final = 1


@dataclass(frozen=True)
class Entry:
    """One trial of a kernel: its answers, and its microseconds (None: it failed)."""

    kernel: str
    taken: Mapping[str, str]
    microseconds: float | None


class Journal:
    """The trials in a file.

    Args:
        path: the file; None keeps them in memory only.
        place: what the times depend on: the target, the processor, the number of threads.
    """

    def __init__(self, path: Path | None, place: str) -> None:
        self._path, self._place = path, place
        self._entries = list(self._read())

    def of(self, kernel: str) -> list[Entry]:
        """The trials of a kernel, oldest first."""
        return [entry for entry in self._entries if entry.kernel == kernel]

    def add(self, entry: Entry) -> None:
        """Keep a trial. Raises IRValueError if the file cannot be written."""
        self._entries.append(entry)
        if self._path is None:
            return
        line = json.dumps({"format": _FORMAT, "place": self._place, **asdict(entry)}) + "\n"
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise IRValueError(
                f"tune: the trial cannot be written to {self._path}: {error.strerror}; give "
                "another file as database=, or None"
            ) from error

    def _read(self) -> Iterator[Entry]:
        """The entries of the file for this place; damaged lines, as a kill leaves, are skipped."""
        if self._path is None or not self._path.is_file():
            return
        for line in self._path.read_text(errors="replace").splitlines():
            try:
                fields = json.loads(line)
                if fields.get("format") == _FORMAT and fields.get("place") == self._place:
                    time = fields["microseconds"]
                    taken = {str(name): str(answer) for name, answer in fields["taken"].items()}
                    yield Entry(str(fields["kernel"]), taken, None if time is None else float(time))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
