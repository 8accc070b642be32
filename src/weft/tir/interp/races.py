"""Races: accesses of one element by different threads with no barrier between them.

Within a block, everything since the last barrier is compared; in memory that blocks share, every
access of other blocks, which no barrier orders. Writing the value that another thread has just
written is no race: that is what all threads do in a statement that no thread index guards.
"""

from __future__ import annotations

import numpy as np

from weft.support.errors import RuntimeFault
from weft.tir.interp.state import Bound
from weft.tir.interp.values import Value


class _Record:
    """Who touched an element since the last barrier."""

    __slots__ = ("readers", "value", "writers")

    def __init__(self) -> None:
        self.writers: set[int] = set()
        self.readers: set[int] = set()
        self.value: Value = None


class RaceLog:
    """Accesses of elements by address, by threads (or blocks) that no barrier orders."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.records: dict[int, _Record] = {}
        self.names: dict[int, str] = {}

    def clear(self) -> None:
        """A barrier: what comes next is ordered after everything so far."""
        self.records.clear()

    def read(self, who: int, address: int) -> str | None:
        """Note a read; what it conflicts with."""
        record = self.records.get(address)
        if record is None:
            record = self.records[address] = _Record()
        elif record.writers and who not in record.writers:
            return f"{self.named(who)} reads what {self.named(next(iter(record.writers)))} writes"
        record.readers.add(who)
        return None

    def write(self, who: int, address: int, value: object) -> str | None:
        """Note a write; what it conflicts with."""
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
        """A thread or block for a message."""
        return f"{self.what} {self.names.get(who, who)}"


def _same(a: object, b: object) -> bool:
    return bool(a == b) or bool(a != a and b != b)


class WatchedBound(Bound):
    """A buffer over memory that several threads reach: accesses go into the race logs."""

    __slots__ = ("logs", "start", "steps")

    def __init__(self, plain: Bound, logs: list[tuple[RaceLog, int]]) -> None:
        super().__init__(plain.name, plain.array)
        self.logs = logs
        self.start = plain.array.__array_interface__["data"][0]
        self.steps = plain.array.strides

    def address(self, indices: list[int]) -> int:
        """Where the element lies."""
        return int(self.start + sum([i * s for i, s in zip(indices, self.steps, strict=True)]))

    def load(self, indices: list[int]) -> Value:
        """The element at ``indices``."""
        value = Bound.load(self, indices)
        address = self.address(indices)
        for log, who in self.logs:
            self.report(log.read(who, address), indices)
        return value

    def store(self, indices: list[int], value: object) -> None:
        """Set the element at ``indices``."""
        self.check(indices)
        stored = np.asarray(value).astype(self.array.dtype)[()]
        address = self.address(indices)
        for log, who in self.logs:
            self.report(log.write(who, address, stored), indices)
        Bound.store(self, indices, value)

    def report(self, conflict: str | None, indices: list[int]) -> None:
        """Stop at a race."""
        if conflict is not None:
            place = ", ".join([str(int(index)) for index in indices])
            raise RuntimeFault(
                f"a race: {conflict} {self.name}[{place}], with no barrier between them"
            )
