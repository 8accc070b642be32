"""Offsets in one block of working memory for tensors by their lifetimes.

Greedy best fit (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
2020): tensors are placed one after the other, the largest first, each into the smallest gap that
the tensors alive at the same time leave, or behind them; where that is above the bound that the
largest sum of live tensors gives, other orders are tried too. Two tensors share memory only if
their lives do not overlap. The compiler plans with it where sizes are known; where they depend on
symbols, an :class:`OffsetPlanner` plans at run time, once for each tuple of their values.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from weft.support.errors import IRValueError

ALIGNMENT: Final = 64
"""Every tensor starts on a cache line, which is also the widest vector."""
LARGEST_BITS: Final = 56
"""No processor addresses more than two to this power of bytes."""
KEPT_PLANS: Final = 64
"""How many tuples of symbol values a planner remembers."""

Lives = Sequence[tuple[int, int]]
"""The first and the last step that touches each tensor."""


def plan_offsets(sizes: Sequence[int], lives: Lives) -> tuple[tuple[int, ...], int]:
    """The offset of each tensor in bytes, and the size of the whole: the best of a few orders.

    IRValueError where tensors are larger than memory can be, so that no offset wraps.

    >>> plan_offsets([100, 64, 100], [(0, 1), (1, 2), (2, 3)])
    ((0, 128, 0), 192)
    """
    count = len(sizes)
    if not count:
        return (), 0
    whole = sum(sizes)
    if max(whole, *sizes) >= 1 << LARGEST_BITS:
        raise IRValueError(
            f"expected intermediate tensors of less than 2**{LARGEST_BITS} bytes, got {whole} bytes"
        )
    rounded = np.maximum(ALIGNMENT, -(-np.asarray(sizes, np.int64) // ALIGNMENT) * ALIGNMENT)
    first, last = np.asarray(lives, np.int64).reshape(count, 2).T
    least = largest_live(rounded.tolist(), lives)
    best: tuple[np.ndarray, int] | None = None
    for order in _orders(rounded, first, last):
        offsets = _place(order, rounded, first, last)
        total = int((offsets + rounded).max())
        if best is None or total < best[1]:
            best = offsets, total
        if total == least:
            break
    assert best is not None
    return tuple(best[0].tolist()), best[1]


def _orders(sizes: np.ndarray, first: np.ndarray, last: np.ndarray) -> Iterator[np.ndarray]:
    """Orders to place tensors in: largest first; longest life first; as they come."""
    yield np.argsort(-sizes, kind="stable")
    yield np.lexsort((-sizes, first - last))
    yield np.argsort((first - last - 1) * sizes, kind="stable")
    yield np.argsort(first, kind="stable")


def _place(order: np.ndarray, sizes: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The offsets when tensors are placed in this order."""
    offsets = np.zeros(len(sizes), np.int64)
    for position, index in enumerate(order):
        placed = order[:position]
        alive = placed[(first[placed] <= last[index]) & (first[index] <= last[placed])]
        offsets[index] = _best_gap(offsets[alive], sizes[alive], int(sizes[index]))
    return offsets


def _best_gap(starts: np.ndarray, sizes: np.ndarray, wanted: int) -> int:
    """The start of the smallest gap of at least ``wanted`` bytes, else the end of what is taken."""
    if not len(starts):
        return 0
    order = np.argsort(starts, kind="stable")
    begins, ends = starts[order], (starts + sizes)[order]
    cursors = np.maximum.accumulate(np.concatenate(([0], ends)))
    gaps = begins - cursors[:-1]
    fits = gaps >= wanted
    if fits.any():
        return int(cursors[:-1][fits][np.argmin(gaps[fits])])
    return int(cursors[-1])


def largest_live(sizes: Sequence[int], lives: Lives) -> int:
    """The most bytes that are alive at one step: no plan can do with less.

    >>> largest_live([100, 64, 100], [(0, 1), (1, 2), (2, 3)])
    164
    """
    if not sizes:
        return 0
    change: dict[int, int] = {}
    for size, (start, end) in zip(sizes, lives, strict=True):
        change[start] = change.get(start, 0) + size
        change[end + 1] = change.get(end + 1, 0) - size
    live = most = 0
    for step in sorted(change):
        live += change[step]
        most = max(most, live)
    return most


class Plan:
    """Offsets for one tuple of symbol values: ``address`` of the int64 table, ``size`` in bytes."""

    __slots__ = ("address", "size", "table")

    def __init__(self, offsets: Sequence[int], size: int) -> None:
        self.table = (ctypes.c_int64 * max(1, len(offsets)))(*offsets)
        self.address = ctypes.addressof(self.table)
        self.size = size


class OffsetPlanner:
    """Plans for symbolic sizes: ``planner(values of the symbols) -> Plan``; the last ones are kept.

    A plan that is in use stays alive with whoever uses it, so that threads may call at once.
    """

    def __init__(self, sizes_of: Callable[..., Sequence[int]], lives: Lives) -> None:
        self._sizes_of, self._lives = sizes_of, tuple(lives)
        self._plans: OrderedDict[tuple[int, ...], Plan] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, *symbols: int) -> Plan:
        """The plan for these values."""
        with self._lock:
            kept = self._plans.get(symbols)
            if kept is not None:
                self._plans.move_to_end(symbols)
                return kept
        plan = Plan(*plan_offsets(self._sizes_of(*symbols), self._lives))
        with self._lock:
            self._plans[symbols] = plan
            while len(self._plans) > KEPT_PLANS:
                self._plans.popitem(last=False)
        return plan
