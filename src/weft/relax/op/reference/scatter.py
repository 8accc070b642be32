"""Reads and writes at places that data give. Writes are made one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.relax.op.reference.index import check_indices
from weft.relax.op.reference.rule import wide

_COMBINE = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def _written(data: Any, place: Any, updates: Any, reduction: str) -> Any:
    made = wide(data).copy()
    if reduction == "update":
        made[place] = wide(updates)
    else:
        _COMBINE[reduction].at(made, place, wide(updates))
    return made


def scatter_elements(
    data: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "update"
) -> Any:
    """The data with updates written at indices along an axis."""
    place = list(np.indices(indices.shape))
    check_indices(indices, -data.shape[axis], data.shape[axis], "scatter_elements")
    place[axis] = indices.astype(np.int64)
    return _written(data, tuple(place), updates, reduction)


def _vectors(data: Any, indices: Any, first: int, low: bool, name: str) -> tuple[Any, ...]:
    """The index vectors along the last axis, as one array of indices for each axis of the data."""
    where = np.moveaxis(indices.astype(np.int64), -1, 0)
    for axis, numbers in enumerate(where, first):
        check_indices(numbers, -data.shape[axis] if low else 0, data.shape[axis], name)
    return tuple(where)


def scatter_nd(data: Any, indices: Any, updates: Any, reduction: str = "update") -> Any:
    """The data with updates written at index vectors."""
    place = _vectors(data, indices, 0, True, "scatter_nd")
    return _written(data, place, updates, reduction)


def gather_elements(data: Any, indices: Any, axis: int = 0) -> Any:
    """The elements that indices choose along an axis."""
    check_indices(indices, 0, data.shape[axis], "gather_elements")
    place = list(np.indices(indices.shape))
    place[axis] = indices.astype(np.int64)
    return data[tuple(place)]


def gather_nd(data: Any, indices: Any, batch_dims: int = 0) -> Any:
    """The slices that index vectors choose."""
    place = _vectors(data, indices, batch_dims, False, "gather_nd")
    outer = indices.shape[:-1]
    batch = np.indices(outer)[:batch_dims]
    return data[(*batch, *place)]


def index_tensor(data: Any, indices: Sequence[Any]) -> Any:
    """numpy's indexing by arrays."""
    return data[_positions(data, indices, "index_tensor")]


def _positions(data: Any, indices: Sequence[Any], name: str) -> tuple[Any, ...]:
    for axis, numbers in enumerate(indices):
        check_indices(numbers.astype(np.int64), -data.shape[axis], data.shape[axis], name)
    return tuple([numbers.astype(np.int64) for numbers in indices])


def index_put(data: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Values written or added where index arrays say."""
    place = _positions(data, indices, "index_put")
    return _written(data, place, values, "add" if accumulate else "update")


def slice_scatter(
    input_tensor: Any, src: Any, start: int, end: int, step: int = 1, axis: int = 0
) -> Any:
    """The input with src in the place of a slice."""
    made = input_tensor.copy()
    chosen = [slice(None)] * made.ndim
    chosen[axis] = slice(start, end, step)
    made[tuple(chosen)] = src
    return made
