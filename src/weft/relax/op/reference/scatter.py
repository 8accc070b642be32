"""Reads and writes at indices that are data. Updates are applied one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.relax.op.reference.index import check_indices
from weft.relax.op.reference.rule import wide
from weft.support.errors import IRValueError

_COMBINE = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def _written(
    data: np.ndarray, place: tuple[np.ndarray, ...], updates: np.ndarray, reduction: str
) -> np.ndarray:
    written = wide(data).copy()
    if reduction == "update":
        written[place] = wide(updates)
    else:
        _COMBINE[reduction].at(written, place, wide(updates))
    return written


def scatter_elements(
    data: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    axis: int = 0,
    reduction: str = "update",
) -> np.ndarray:
    """The data with updates written at indices along an axis."""
    place: list[np.ndarray] = list(np.indices(indices.shape))
    check_indices(indices, -data.shape[axis], data.shape[axis], "scatter_elements")
    place[axis] = indices.astype(np.int64)
    return _written(data, tuple(place), updates, reduction)


def _vectors(
    data: np.ndarray, indices: np.ndarray, first: int, low: bool, name: str
) -> tuple[np.ndarray, ...]:
    """The index vectors along the last axis, as one array of indices for each axis of the data."""
    where = np.moveaxis(indices.astype(np.int64), -1, 0)
    for axis, numbers in enumerate(where, first):
        check_indices(numbers, -data.shape[axis] if low else 0, data.shape[axis], name)
    return tuple(where)


def scatter_nd(
    data: np.ndarray, indices: np.ndarray, updates: np.ndarray, reduction: str = "update"
) -> np.ndarray:
    """The data with updates written at index vectors."""
    place = _vectors(data, indices, 0, True, "scatter_nd")
    return _written(data, place, updates, reduction)


def gather_elements(data: np.ndarray, indices: np.ndarray, axis: int = 0) -> np.ndarray:
    """The elements that indices choose along an axis."""
    check_indices(indices, 0, data.shape[axis], "gather_elements")
    place: list[np.ndarray] = list(np.indices(indices.shape))
    place[axis] = indices.astype(np.int64)
    return np.asarray(data[tuple(place)])


def gather_nd(data: np.ndarray, indices: np.ndarray, batch_dims: int = 0) -> np.ndarray:
    """The slices that index vectors choose."""
    place = _vectors(data, indices, batch_dims, False, "gather_nd")
    outer = indices.shape[:-1]
    batch = np.indices(outer)[:batch_dims]
    return np.asarray(data[(*batch, *place)])


def index_tensor(data: np.ndarray, indices: Sequence[np.ndarray]) -> np.ndarray:
    """numpy's indexing by arrays."""
    return np.asarray(data[_positions(data, indices, "index_tensor")])


def _positions(
    data: np.ndarray, indices: Sequence[np.ndarray], name: str
) -> tuple[np.ndarray, ...]:
    for axis, numbers in enumerate(indices):
        check_indices(numbers.astype(np.int64), -data.shape[axis], data.shape[axis], name)
    return tuple([numbers.astype(np.int64) for numbers in indices])


def index_put(
    data: np.ndarray, indices: Sequence[np.ndarray], values: np.ndarray, accumulate: bool = False
) -> np.ndarray:
    """The data with values written, or added, at index arrays."""
    place = _positions(data, indices, "index_put")
    return _written(data, place, values, "add" if accumulate else "update")


def slice_scatter(
    input_tensor: np.ndarray, src: np.ndarray, start: int, end: int, step: int = 1, axis: int = 0
) -> np.ndarray:
    """The input with a slice replaced by src."""
    written = input_tensor.copy()
    chosen = [slice(None)] * written.ndim
    chosen[axis] = slice(start, end, step)
    written[tuple(chosen)] = src
    return written


def masked_scatter(data: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    """The data with the elements of source, one after the other, where the mask holds."""
    written = data.copy()
    count = int(mask.sum())
    if count > source.size:
        raise IRValueError(
            f"masked_scatter: expected at least {count} elements in the source, as many as the "
            f"mask has true places, found {source.size}"
        )
    written[mask] = source.ravel()[:count]
    return written
