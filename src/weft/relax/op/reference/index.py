"""Indexing: take and slices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.support.errors import IRIndexError


def check_indices(indices: np.ndarray, low: int, extent: int, name: str) -> None:
    """Raise IRIndexError unless ``low <= index < extent`` for all indices."""
    wrong = indices[(indices < low) | (indices >= extent)]
    if wrong.size:
        raise IRIndexError(f"{name}: index {wrong.flat[0]} is out of range for {extent} elements")


def take(
    x: np.ndarray, indices: np.ndarray, axis: int | None = None, mode: str = "fast"
) -> np.ndarray:
    """The slices that indices choose."""
    where = np.asarray(indices).astype(np.int64)
    data, along = (x.reshape(-1), 0) if axis is None else (x, axis % x.ndim)
    extent = data.shape[along]
    if mode == "wrap" and extent:
        where = where % extent
    elif mode == "clip":
        where = np.minimum(np.maximum(where, 0), extent - 1)
    outside = (where < 0) | (where >= extent)
    if mode == "nan" and outside.any():
        taken = np.array(np.take(data, np.where(outside, 0, where), along))
        taken[(slice(None),) * along + (outside,)] = math.nan
        return taken
    check_indices(where, 0, extent, "take")
    return np.take(data, where, along)


def strided_slice(
    x: np.ndarray,
    axes: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    assume_inbound: bool = False,  # noqa: ARG001 - clamping does not change slices in bounds
) -> np.ndarray:
    """Python's slice along some axes."""
    steps = strides or [1] * len(axes)
    chosen = [slice(None)] * x.ndim
    for axis, first, last, step in zip(axes, begin, end, steps, strict=True):
        chosen[axis] = slice(first, last, step)
    return x[tuple(chosen)]


def dynamic_strided_slice(
    x: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray
) -> np.ndarray:
    """A slice along every axis, bounds from tensors."""
    return strided_slice(x, range(x.ndim), begin.tolist(), end.tolist(), strides.tolist())


def reverse_sequence(data: Any, lengths: Any, seq_axis: int, batch_axis: int) -> Any:
    """The first ``length`` elements of each batch in reverse order."""
    rows = np.moveaxis(data, (batch_axis, seq_axis), (0, 1)).copy()
    for row, length in zip(rows, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(rows, (0, 1), (batch_axis, seq_axis))
