"""Caches of keys and values as the virtual machine has them: rows appended, rows read.

``vm.builtin.attention_kv_cache_*`` are TVM 0.20's names; graph programs call them through
``relax.frontend.nn.KVCache``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.runtime.ndarray import NDArray, empty
from weft.support.errors import IRTypeError, IRValueError


class AttentionKVCache:
    """Rows of one shape in memory that grows: appending n rows costs O(n) on average."""

    def __init__(self, capacity: int, row: Sequence[int], dtype: str) -> None:
        self.data = empty((capacity, *row), dtype)
        self.count = 0

    def __repr__(self) -> str:
        return f"AttentionKVCache({self.count} rows of {list(self.data.shape[1:])})"

    def append(self, rows: NDArray) -> None:
        """Add rows at the end; IRValueError where their shape or type is another."""
        wanted = self.data.shape[1:]
        if tuple(rows.shape[1:]) != tuple(wanted) or rows.dtype != self.data.dtype:
            raise IRValueError(
                f"attention_kv_cache_append: expected rows of {list(wanted)} {self.data.dtype}, "
                f"got a tensor {list(rows.shape)} {rows.dtype}"
            )
        needed = self.count + rows.shape[0]
        if needed > self.data.shape[0]:
            self._grow(needed)
        self.data._array[self.count : needed] = rows._array  # noqa: SLF001 - the same room
        self.count = needed

    def view(self, shape: Sequence[int]) -> NDArray:
        """The first rows, as many as ``shape`` says, without a copy."""
        wanted, row = tuple(shape), tuple(self.data.shape[1:])
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
    """A cache for rows like those of ``init_data``, the first of which may fill it."""
    cache = AttentionKVCache(reserve_shape[0], reserve_shape[1:], str(init_data.dtype))
    if init_fill_count > 0:
        cache.append(NDArray(init_data._array[:init_fill_count]))  # noqa: SLF001 - see above
    return cache


def _checked(cache: object) -> AttentionKVCache:
    if not isinstance(cache, AttentionKVCache):
        raise IRTypeError(f"attention_kv_cache: expected a cache, got {type(cache).__name__}")
    return cache


def _append(cache: object, rows: NDArray) -> AttentionKVCache:
    checked = _checked(cache)
    checked.append(rows)
    return checked


BUILTINS: Final[dict[str, Callable[..., object]]] = {
    "attention_kv_cache_append": _append,
    "attention_kv_cache_create": _create,
    "attention_kv_cache_view": lambda cache, shape: _checked(cache).view(shape),
}
"""Name without ``vm.builtin.`` -> function."""
