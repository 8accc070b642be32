"""Detection of races: accesses of different threads to one element without a barrier between them.

Within a block, all accesses since the last barrier are compared. In memory that blocks share, all
accesses of different blocks are compared, since no barrier orders blocks. Two threads that write
the same value are no race: all threads do that in a statement that uses no thread index.
"""

from __future__ import annotations

import numpy as np

from weft.support.errors import RuntimeFault
from weft.tir.interp.state import Bound
from weft.tir.interp.values import Value


class _Record:
    """The threads (or blocks) that accessed an element since the last barrier."""

    __slots__ = ("readers", "value", "writers")

    def __init__(self) -> None:
        self.writers: set[int] = set()
        self.readers: set[int] = set()
        self.value: Value = None


class RaceLog:
    """The accesses since the last barrier, by address; ``what`` is "thread" or "block"."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.records: dict[int, _Record] = {}
        self.names: dict[int, str] = {}

    def clear(self) -> None:
        """Forget all accesses, at a barrier."""
        self.records.clear()

    def read(self, who: int, address: int) -> str | None:
        """Record a read; returns a text about an access that it conflicts with, or None."""
        record = self.records.get(address)
        if record is None:
            record = self.records[address] = _Record()
        elif record.writers and who not in record.writers:
            return f"{self.named(who)} reads what {self.named(next(iter(record.writers)))} writes"
        record.readers.add(who)
        return None

    def write(self, who: int, address: int, value: object) -> str | None:
        """Record a write; returns a text about an access that it conflicts with, or None."""
        record = self.records.get(address)
        if record is None:
            record = self.records[address] = _Record()
        same = bool(record.writers) and _same(record.value, value)
        if not same:
            others = record.writers - {who}
            if others:
                return f"{self.named(who)} and {self.named(next(iter(others)))} write"
            others = record.readers - {who}
            if others:
                return f"{self.named(who)} writes what {self.named(next(iter(others)))} reads"
        record.writers.add(who)
        record.value = value
        return None

    def named(self, who: int) -> str:
        """The name of a thread or block in a message."""
        return f"{self.what} {self.names.get(who, who)}"


def _same(a: object, b: object) -> bool:
    return bool(a == b) or bool(a != a and b != b)


class WatchedBound(Bound):
    """A buffer over memory that several threads can access; it records accesses in race logs."""

    __slots__ = ("logs", "start", "steps")

    def __init__(self, plain: Bound, logs: list[tuple[RaceLog, int]]) -> None:
        super().__init__(plain.name, plain.array)
        self.logs = logs
        self.start = plain.array.__array_interface__["data"][0]
        self.steps = plain.array.strides

    def address(self, indices: tuple[int, ...]) -> int:
        """The address of an element."""
        return int(self.start + sum([i * s for i, s in zip(indices, self.steps, strict=True)]))

    def load(self, indices: tuple[int, ...]) -> Value:
        """The element at ``indices``."""
        value = Bound.load(self, indices)
        address = self.address(indices)
        for log, who in self.logs:
            self.report(log.read(who, address), indices)
        return value

    def store(self, indices: tuple[int, ...], value: object) -> None:
        """Set the element at ``indices``."""
        self.check(indices)
        stored = np.asarray(value).astype(self.array.dtype)[()]
        address = self.address(indices)
        for log, who in self.logs:
            self.report(log.write(who, address, stored), indices)
        Bound.store(self, indices, value)

    def report(self, conflict: str | None, indices: tuple[int, ...]) -> None:
        """Raise RuntimeFault if there is a conflict."""
        if conflict is not None:
            place = ", ".join([str(int(index)) for index in indices])
            raise RuntimeFault(
                f"a race: {conflict} {self.name}[{place}], with no barrier between them"
            )
