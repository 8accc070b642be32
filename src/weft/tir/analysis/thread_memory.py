"""Checks that threads only read memory that they, or threads they are synchronised with, wrote.

Local memory belongs to a thread and shared memory to a block of threads; both end with the kernel.
If a schedule leaves the producer of such a buffer in another kernel, or in other threads of the
same kernel, the reader gets undefined contents. Global memory is visible to all threads, but no
barrier orders them: a thread may only read what it wrote itself in the same kernel. (In shared
memory, ThreadSync inserts barriers between the threads of a block.)

``find_thread_memory_fault`` compares the elements that threads access, for threads at the ends and
in the middle of each axis. A fault is an element that a thread reads and that another thread
writes, but not this thread (or block) before; or an element that one thread accumulates while
another one sets it. Elements that depend on data are not checked; large loops are sampled. To check
all threads on given data, use ``tir.interp.run(f, ..., threads=True)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.ir.expr import IntImm
from weft.ir.module import IRModule
from weft.support.errors import VerifyError
from weft.support.recursion import deep_recursion
from weft.tir.analysis.integer_values import UnknownValueError
from weft.tir.analysis.thread_accesses import SYMBOL, Access, Accesses, accesses_of
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.transform.threads.cross_thread_reduction import lower_cross_thread_reduction
from weft.tir.transform.threads.thread_scope import has_threads, thread_text

_THREAD, _BLOCK, _ANYONE = "thread", "block of threads", "anyone"
_OWNERS: Final = {"local": _THREAD, "global": _ANYONE}
_MOVE: Final = "move the producer into the reader's nest (compute_at), or use a wider storage scope"
_ONCE: Final = "bind a loop of the block to the threads, or set_scope to 'local'"
_SHARE: Final = "set_scope to 'shared', which gets barriers, or let each thread make what it reads"


class ThreadMemoryError(VerifyError):
    """A thread reads memory that it does not share with the thread that writes it."""


@dataclass(frozen=True)
class ThreadMemoryFault:
    """An element that a thread reads and only others write.

    Attributes:
        reader, writer: the accesses.
        element: the indices of the element.
        thread: the indices of the thread that reads.
    """

    reader: Access
    writer: Access
    element: tuple[int, ...]
    thread: Mapping[str, int]

    def __str__(self) -> str:
        buffer = self.reader.buffer
        assert buffer is not None
        element = f"{buffer.name}[{', '.join([str(index) for index in self.element])}]"
        who = _name(self.reader)
        if self.thread:
            who = f"{who}, {thread_text(self.thread)},"
        where, why, hint = self._relation(buffer.scope())
        written = f"which {_name(self.writer)} writes {where}"
        return f"{who} reads {element}, {written}: {why}\nhint: {hint}"

    def _relation(self, scope: str) -> tuple[str, str, str]:
        """Where the writer is relative to the reader, why that is a fault, and what to do."""
        owner = owner_of(scope)
        if self.reader.kernel != self.writer.kernel:
            why = f"{scope} memory belongs to one {owner} of one nest"
            return "in another nest of threads", why, _MOVE
        if self.reader.statement == self.writer.statement:
            why = "threads run one statement in no order"
            return "in another thread too", why, _ONCE
        if owner is _ANYONE:
            why = "no barrier orders accesses of global memory in one nest"
            return "in another thread", why, _SHARE
        return f"in another {owner}", f"{scope} memory belongs to one {owner} of one nest", _MOVE


def owner_of(scope: str) -> str:
    """The owner of memory of a storage scope: a thread, a block of threads, or anyone."""
    return _OWNERS.get(scope.partition(".")[0], _BLOCK)


def _name(access: Access) -> str:
    return f"block {access.block}" if access.block else "a statement"


def find_thread_memory_fault(func: PrimFunc) -> ThreadMemoryFault | None:
    """The first fault of the function, or None; accesses that depend on data are not checked."""
    if not has_threads(func.body):
        return None
    accesses: Accesses = deep_recursion(accesses_of)(lower_cross_thread_reduction(func))
    by_data: dict[Var, list[Access]] = {}
    for access in accesses.in_order:
        by_data.setdefault(access.data, []).append(access)
    for group in by_data.values():
        search = _Search(accesses, group)
        for fault in search.faults():
            return fault
    return None


def verify_thread_memory(func: PrimFunc | IRModule) -> None:
    """Raise if a thread reads memory that only threads write with which it does not share it.

    Raises:
        ThreadMemoryError: names the buffer, an element, the two blocks and the thread.
    """
    functions: Any = func.functions.items() if isinstance(func, IRModule) else [(None, func)]
    for var, item in functions:
        if not isinstance(item, PrimFunc):
            continue
        fault = find_thread_memory_fault(item)
        if fault is not None:
            name = item.attrs.get("global_symbol", "main") if var is None else var.name_hint
            raise ThreadMemoryError(f"{name}: {fault}")


class _Search:
    """The search for faults in one buffer."""

    def __init__(self, accesses: Accesses, group: Sequence[Access]) -> None:
        self.accesses = accesses
        self.writes = [access for access in group if access.is_write]
        self.reads = [access for access in group if not access.is_write]
        self.plain = all(access.buffer is group[0].buffer for access in group)

    def faults(self) -> Iterator[ThreadMemoryFault]:
        for read in self.reads:
            if read.buffer is None or not self.writes:
                continue
            owner = owner_of(read.buffer.scope())
            if owner is _ANYONE:
                if read.kernel is None or read.kernel in self.accesses.synchronised:
                    continue
            elif all(item.kernel is None for item in (read, *self.writes)):
                continue
            for unit in self.units(read, owner):
                fault = self.fault(read, owner, unit) or self.repeated(read, owner, unit)
                if fault is not None:
                    yield fault

    def units(self, read: Access, owner: str) -> list[dict[str, int]]:
        """Some threads (or blocks): the first, the last and the middle one along each axis."""
        if read.kernel is None:
            return [{}]
        axes = {
            tag: extent.value if isinstance(extent, IntImm) else SYMBOL
            for tag, extent in self.accesses.kernels[read.kernel].items()
            if owner is not _BLOCK or tag.startswith("blockIdx")
        }
        first = dict.fromkeys(axes, 0)
        last = {tag: max(extent - 1, 0) for tag, extent in axes.items()}
        middle = {tag: extent // 2 for tag, extent in axes.items()}
        candidates = [first, last, middle]
        candidates += [{**first, tag: min(1, last[tag])} for tag in axes]
        candidates += [{**first, tag: last[tag]} for tag in axes]
        return [unit for n, unit in enumerate(candidates) if unit not in candidates[:n]]

    def fault(self, read: Access, owner: str, unit: dict[str, int]) -> ThreadMemoryFault | None:
        """An element that the unit reads and another unit writes, but not this one before."""
        try:
            left, _ = read.points(unit)
        except UnknownValueError:
            return None
        left = np.unique(left, axis=0) if left.size else left[:1]
        for write in self.writes:
            if write.kernel == read.kernel and (owner is _ANYONE or _comes_before(write, read)):
                left = self.without(left, write, unit)
            if not len(left):
                return None
        for write in self.writes:
            if owner is _ANYONE and write.kernel != read.kernel:
                continue
            element = self.written(left, write)
            if element is not None:
                return ThreadMemoryFault(read, write, element, unit)
        return None

    def repeated(self, read: Access, owner: str, unit: dict[str, int]) -> ThreadMemoryFault | None:
        """An element that one thread updates in place, and another one updates or initialises.

        In shared memory there is a barrier between different statements.
        """
        if owner is _THREAD or read.kernel is None:
            return None
        if all(write.statement != read.statement for write in self.writes):
            return None
        axes = self.accesses.kernels[read.kernel]
        mine = {**dict.fromkeys(axes, 0), **unit}
        for write in self.writes:
            unordered = owner is _ANYONE and write.kernel == read.kernel
            if write.statement != read.statement and not unordered:
                continue
            for tag, extent in axes.items():
                private = owner is _BLOCK and tag.startswith("blockIdx")
                if private or (isinstance(extent, IntImm) and extent.value <= mine[tag] + 1):
                    continue
                element = self.met(read, mine, write, {**mine, tag: mine[tag] + 1})
                if element is not None:
                    return ThreadMemoryFault(read, write, element, mine)
        return None

    def met(
        self, read: Access, reader: dict[str, int], write: Access, other: dict[str, int]
    ) -> tuple[int, ...] | None:
        """An element that one thread reads and another one writes."""
        if not self.plain:
            return None
        try:
            here, there = read.points(reader)[0], write.points(other)[0]
        except UnknownValueError:
            return None
        return _first_common(here, there)

    def without(self, left: np.ndarray, write: Access, unit: dict[str, int]) -> np.ndarray:
        """The elements that the write, even if all of its conditions hold, does not write."""
        if not self.plain:
            return left[:0]
        try:
            own, exact = write.points(unit)
        except UnknownValueError:
            return left[:0]
        if not len(own):
            return left
        if exact:
            written = _member(left, own)
        elif write.is_affine:
            written = ((left >= own.min(axis=0)) & (left <= own.max(axis=0))).all(axis=1)
        else:
            return left[:0]
        remaining: np.ndarray = left[~written]
        return remaining

    def written(self, left: np.ndarray, write: Access) -> tuple[int, ...] | None:
        """One of the elements ``left`` that some thread certainly writes, or None."""
        try:
            all_points, _ = write.points({})
        except UnknownValueError:
            return None
        return _first_common(left, all_points) if self.plain else None


def _first_common(rows: np.ndarray, others: np.ndarray) -> tuple[int, ...] | None:
    """The first row that is among the others, or None."""
    for row in rows[_member(rows, others)]:
        return tuple([int(index) for index in row])
    return None


def _member(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """A mask of the rows that are among the others."""
    if rows.size == 0 or not len(others):
        return np.full(len(rows), len(others) > 0)
    low = np.minimum(rows.min(axis=0), others.min(axis=0))
    high = np.maximum(rows.max(axis=0), others.max(axis=0))
    shape = tuple(high - low + 1)
    return np.isin(
        np.ravel_multi_index(tuple((rows - low).T), shape),
        np.ravel_multi_index(tuple((others - low).T), shape),
    )


def _comes_before(write: Access, read: Access) -> bool:
    """Whether a thread may run the store before the load, in this iteration or an earlier one.

    An in-place update does not count: its first execution reads what another store wrote.
    """
    if write.statement == read.statement:
        return False
    if write.place < read.place:
        return True
    return any(
        loop.tag is None and any(loop is other for other in read.loops) for loop in write.loops
    )
