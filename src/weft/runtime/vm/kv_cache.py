"""Caches of keys and values as the virtual machine has them: rows appended, rows read.

``vm.builtin.attention_kv_cache_*`` are TVM 0.20's names; graph programs call them through
``relax.frontend.nn.KVCache``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from weft.runtime.ndarray import NDArray, empty
from weft.support.errors import IRValueError, wrong_type


class AttentionKVCache:
    """Rows of one shape in memory that grows: appending n rows costs O(n) on average."""

    def __init__(self, capacity: int, row: Sequence[int], dtype: str) -> None:
        self.data = empty((capacity, *row), dtype)
        self.count = 0
        self.next = 0
        """Where ``override`` writes: the rows of a window are a ring."""

    def __repr__(self) -> str:
        return f"AttentionKVCache({self.count} rows of {list(self.data.shape[1:])})"

    def append(self, rows: NDArray) -> None:
        """Add rows at the end; IRValueError where their shape or type is another."""
        self._check(rows, "append")
        self._put(rows._array, self.count)  # noqa: SLF001 - the same room
        self.count += rows.shape[0]

    def override(self, rows: NDArray, limit: int, kept: int = 0) -> None:
        """Add rows; beyond ``limit`` rows, in the place of the oldest but the first ``kept``."""
        self._check(rows, "window_override")
        number = rows.shape[0]
        if not 0 <= kept <= limit or number > limit - kept:
            raise IRValueError(
                f"attention_kv_cache_window_override: expected at most {limit - kept} rows (a "
                f"window of {limit}, of which {kept} stay), got {number}"
            )
        fitting = max(min(number, limit - self.next), 0)
        self._put(rows._array[:fitting], self.next)  # noqa: SLF001 - see above
        self.count = min(self.count + number, limit)
        self.next += fitting
        if fitting < number:
            self._put(rows._array[fitting:], kept)  # noqa: SLF001 - see above
            self.next = kept + number - fitting

    def update(self, rows: NDArray) -> None:
        """Replace all rows by as many others."""
        self._check(rows, "update")
        if rows.shape[0] != self.count:
            raise IRValueError(
                f"attention_kv_cache_update: expected {self.count} rows, got {rows.shape[0]}"
            )
        self._put(rows._array, 0)  # noqa: SLF001 - see above

    def pop(self, number: int) -> None:
        """Forget the last rows."""
        if not 0 <= number <= self.count:
            raise IRValueError(
                f"attention_kv_cache_array_popn: expected at most {self.count} rows, got {number}"
            )
        self.count -= number

    def clear(self) -> None:
        """Forget all rows."""
        self.count = self.next = 0

    def _check(self, rows: NDArray, what: str) -> None:
        wanted = self.data.shape[1:]
        if tuple(rows.shape[1:]) != tuple(wanted) or rows.dtype != self.data.dtype:
            raise IRValueError(
                f"attention_kv_cache_{what}: expected rows of {list(wanted)} {self.data.dtype}, "
                f"got a tensor {list(rows.shape)} {rows.dtype}"
            )

    def _put(self, rows: np.ndarray, place: int) -> None:
        needed = place + len(rows)
        if needed > self.data.shape[0]:
            self._grow(needed)
        self.data._array[place:needed] = rows  # noqa: SLF001 - see above

    def view(self, shape: Sequence[int] | None = None) -> NDArray:
        """The first rows, as many as ``shape`` says (all by default), without a copy."""
        row = tuple(self.data.shape[1:])
        wanted = (self.count, *row) if shape is None else tuple(shape)
        if not wanted or wanted[1:] != row or not 0 <= wanted[0] <= self.count:
            raise IRValueError(
                f"attention_kv_cache_view: expected at most {self.count} rows of {list(row)}, got "
                f"the shape {list(wanted)}"
            )
        return NDArray(self.data._array[: wanted[0]], self.data.dtype)  # noqa: SLF001 - see above

    def _grow(self, needed: int) -> None:
        """New memory, twice as much or more; views keep the old one."""
        before = self.data
        size = max(needed, 2 * before.shape[0])
        self.data = empty((size, *before.shape[1:]), before.dtype)
        self.data._array[: self.count] = before._array[: self.count]  # noqa: SLF001 - see above


def _create(init_data: NDArray, reserve_shape: Sequence[int], init_fill_count: int) -> object:
    """A cache for rows like those of ``init_data``, the first of which may fill it; -1: all."""
    cache = AttentionKVCache(reserve_shape[0], reserve_shape[1:], str(init_data.dtype))
    rows = init_data.shape[0] if init_fill_count < 0 else init_fill_count
    if rows > 0:
        cache.append(NDArray(init_data._array[:rows], init_data.dtype))  # noqa: SLF001 - see above
    cache.next = cache.count if init_fill_count >= 0 else 0
    return cache


def _checked(cache: object) -> AttentionKVCache:
    if not isinstance(cache, AttentionKVCache):
        raise wrong_type("attention_kv_cache: expected a cache", cache)
    return cache


def _append(cache: object, rows: NDArray) -> AttentionKVCache:
    checked = _checked(cache)
    checked.append(rows)
    return checked


def _override(cache: object, rows: NDArray, limit: int, kept: int = 0) -> AttentionKVCache:
    checked = _checked(cache)
    checked.override(rows, limit, kept)
    return checked


def _update(cache: object, rows: NDArray) -> AttentionKVCache:
    checked = _checked(cache)
    checked.update(rows)
    return checked


def _pop(caches: Iterable[object], number: int) -> None:
    for cache in caches:
        _checked(cache).pop(number)


def _clear(caches: Iterable[object]) -> None:
    for cache in caches:
        _checked(cache).clear()


BUILTINS: Final[dict[str, Callable[..., object]]] = {
    "attention_kv_cache_append": _append,
    "attention_kv_cache_array_clear": _clear,
    "attention_kv_cache_array_popn": _pop,
    "attention_kv_cache_create": _create,
    "attention_kv_cache_update": _update,
    "attention_kv_cache_view": lambda cache, shape=None: _checked(cache).view(shape),
    "attention_kv_cache_window_override": _override,
    "attention_kv_cache_window_override_with_sinks": _override,
}
"""Name without ``vm.builtin.`` -> function."""
