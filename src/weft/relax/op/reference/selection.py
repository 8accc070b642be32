"""Choice, casts, order and search."""

from __future__ import annotations

import numpy as np

from weft.relax.op.reference.rule import by_wide, convert, is_float, numpy_dtype, wide
from weft.support.errors import RuntimeFault


def _reversed(x: np.ndarray) -> np.ndarray:
    """Keys that sort in descending order, with NaN still last."""
    return -x if is_float(x) else ~x


def _order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    keys = wide(x)
    return np.argsort(_reversed(keys) if descending else keys, axis, kind="stable")


def sort(x: np.ndarray, axis: int = -1, descending: bool = False) -> np.ndarray:
    """The values in order, NaN last."""
    if x.ndim == 0:
        return x
    return np.take_along_axis(x, _order(x, axis, descending), axis)


def argsort(
    data: np.ndarray, axis: int = -1, descending: bool = False, dtype: str = "int32"
) -> np.ndarray:
    """The indices that sort the values."""
    if data.ndim == 0:
        return np.zeros((), numpy_dtype(dtype))
    return convert(_order(data, axis, descending), dtype)


def topk(
    data: np.ndarray,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    largest: bool = True,
    dtype: str = "int32",
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """The first k of the sorted values, and their indices."""
    order = _order(data, axis, largest)
    extent = order.shape[axis]
    chosen = np.take(order, np.arange(extent if k < 1 else min(k, extent)), axis)
    values, indices = np.take_along_axis(data, chosen, axis), convert(chosen, dtype)
    if ret_type == "values":
        return values
    return indices if ret_type == "indices" else (values, indices)


@by_wide
def bucketize(
    input_tensor: np.ndarray, boundaries: np.ndarray, out_int32: bool = False, right: bool = False
) -> np.ndarray:
    """numpy's searchsorted."""
    if np.any(boundaries[1:] < boundaries[:-1]):
        raise RuntimeFault("bucketize: the boundaries are not in order")
    places = np.searchsorted(boundaries, input_tensor, "right" if right else "left")
    return np.asarray(places, np.int32 if out_int32 else np.int64)


@by_wide
def searchsorted(
    sorted_sequence: np.ndarray, values: np.ndarray, out_int32: bool = False, right: bool = False
) -> np.ndarray:
    """As ``bucketize``, row by row where the sequence has rows."""
    if sorted_sequence.ndim < 2:
        return bucketize(values, sorted_sequence, out_int32, right)
    places = np.zeros(values.shape, np.int32 if out_int32 else np.int64)
    for row in np.ndindex(*values.shape[:-1]):
        places[row] = bucketize(values[row], sorted_sequence[row], out_int32, right)
    return places


def histogram(x: np.ndarray, low: np.ndarray, high: np.ndarray, bins: int) -> np.ndarray:
    """The number of elements in each of ``bins`` equal parts; the last part includes its end."""
    wider = 1.0 if low == high else 0.0
    start, end = low - wider, high + wider
    inside = x[(x >= start) & (x <= end)]
    places = ((inside - start) / (end - start) * bins).astype(np.int64)
    return np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(x.dtype)


def nonzero(x: np.ndarray) -> np.ndarray:
    """The indices of non-zero elements, one row for each axis."""
    return np.stack(np.nonzero(np.atleast_1d(wide(x)))).astype(np.int64)


def unique(
    x: np.ndarray,
    by_value: object = True,
    index: bool = False,
    inverse: bool = False,
    counts: bool = False,
    axis: int | None = None,
) -> np.ndarray | tuple[np.ndarray, ...]:
    """The distinct values, sorted if ``by_value``, else in order of first appearance."""
    values, first, place, number = np.unique(wide(x), True, True, True, axis)
    place = place.reshape(-1)
    if not by_value:
        order = np.argsort(first)
        values = np.take(values, order, 0 if axis is None else axis)
        place, first, number = np.argsort(order)[place], first[order], number[order]
    parts = [values.astype(x.dtype)]
    wanted = ((index, first), (inverse, place), (counts, number))
    parts += [part.astype(np.int64) for flag, part in wanted if flag]
    return parts[0] if len(parts) == 1 else tuple(parts)


def astype(x: np.ndarray, dtype: str) -> np.ndarray:
    """The values in another type."""
    return convert(x, dtype)
