"""Copies of large numpy arrays at the speed of memory."""

from __future__ import annotations

from typing import Final

import numpy as np

_SLAB: Final = 64
"""So many elements of the last axis are copied at a time. The lines of memory that a slab reads
stay in the cache until its last column is written."""
_LARGE: Final = 1 << 16
"""Arrays of fewer elements lie in the cache as a whole."""


def in_order(array: np.ndarray) -> np.ndarray:
    """A new array with the same elements, which lie in memory in the order of the axes.

    >>> in_order(np.arange(6).reshape(2, 3).T).flags.c_contiguous
    True
    """
    result = np.empty(array.shape, array.dtype)
    if array.size >= _LARGE and _reads_across_lines(array):
        for start in range(0, array.shape[-1], _SLAB):
            result[..., start : start + _SLAB] = array[..., start : start + _SLAB]
    else:
        result[...] = array
    return result


def _reads_across_lines(array: np.ndarray) -> bool:
    """Whether neighbours on the last axis are farther apart than those on another axis."""
    strides = [
        abs(step) for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1
    ]
    return array.shape[-1] > 1 and abs(array.strides[-1]) > min(strides)
