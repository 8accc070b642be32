"""Indices of the largest elements of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.relax.op.reference.rule import wide

Array = np.ndarray[Any, Any]
_NOWHERE = np.iinfo(np.int64).max


def _first_largest(plane: Array, parts: Sequence[Sequence[int]]) -> int:
    """The flat index of the first largest element of the window with these indices an axis."""
    places = np.ravel_multi_index(np.ix_(*parts), plane.shape).reshape(-1)
    return int(places[np.argmax(plane.reshape(-1)[places])]) if places.size else _NOWHERE


def _each(data: Array, counts: Sequence[int], window: Any) -> Array:
    places = np.zeros([*data.shape[:2], *counts], np.int64)
    for at in np.ndindex(*places.shape):
        places[at] = _first_largest(wide(data[at[:2]]), window(at[2:]))
    return places


def max_pool_indices(
    data: Array,
    pool_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    """The index of the largest element of each window; windows as in pooling."""
    space, rank = data.shape[2:], len(pool_size)
    reaches = [dilation[i] * (pool_size[i] - 1) + 1 for i in range(rank)]
    counts = [
        (space[i] + padding[i] + padding[rank + i] - reaches[i]) // strides[i] + 1
        for i in range(rank)
    ]

    def window(at: Sequence[int]) -> list[list[int]]:
        return [
            [
                place
                for tap in range(pool_size[i])
                if 0 <= (place := at[i] * strides[i] - padding[i] + tap * dilation[i]) < space[i]
            ]
            for i in range(rank)
        ]

    return _each(data, counts, window)


def adaptive_max_pool_indices(data: Array, output_size: Sequence[int]) -> Array:
    """The index of the largest element of each window; so many windows cover each axis."""
    space = data.shape[2:]

    def window(at: Sequence[int]) -> list[range]:
        return [
            range(at[i] * extent // count, math.ceil((at[i] + 1) * extent / count))
            for i, (extent, count) in enumerate(zip(space, output_size, strict=True))
        ]

    return _each(data, output_size, window)
