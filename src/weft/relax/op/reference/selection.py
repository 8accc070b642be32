"""Choice, casts, order and search."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.relax.op.reference.rule import by_wide, convert, is_float, numpy_dtype, wide
from weft.support.errors import RuntimeFault


def _reversed(x: Any) -> Any:
    """Keys in the opposite order; NaN stays last."""
    return -x if is_float(x) else ~x


def _order(x: Any, axis: int, descending: bool) -> Any:
    keys = wide(x)
    return np.argsort(_reversed(keys) if descending else keys, axis, kind="stable")


def sort(x: Any, axis: int = -1, descending: bool = False) -> Any:
    """The values in order, NaN last."""
    if x.ndim == 0:
        return x
    return np.take_along_axis(x, _order(x, axis, descending), axis)


def argsort(data: Any, axis: int = -1, descending: bool = False, dtype: str = "int32") -> Any:
    """The places of the values in order."""
    if data.ndim == 0:
        return np.zeros((), numpy_dtype(dtype))
    return convert(_order(data, axis, descending), dtype)


def topk(
    data: Any, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True,
    dtype: str = "int32",
) -> Any:  # fmt: skip
    """The first k of the values in order, and their places."""
    order = _order(data, axis, largest)
    extent = order.shape[axis]
    chosen = np.take(order, np.arange(extent if k < 1 else min(k, extent)), axis)
    values, indices = np.take_along_axis(data, chosen, axis), convert(chosen, dtype)
    return {"values": values, "indices": indices}.get(ret_type, (values, indices))


@by_wide
def bucketize(
    input_tensor: Any, boundaries: Any, out_int32: bool = False, right: bool = False
) -> Any:
    """numpy's searchsorted."""
    if np.any(boundaries[1:] < boundaries[:-1]):
        raise RuntimeFault("bucketize: the boundaries are not in order")
    made = np.searchsorted(boundaries, input_tensor, "right" if right else "left")
    return np.asarray(made, np.int32 if out_int32 else np.int64)


@by_wide
def searchsorted(
    sorted_sequence: Any, values: Any, out_int32: bool = False, right: bool = False
) -> Any:
    """As ``bucketize``, row by row where the sequence has rows."""
    if sorted_sequence.ndim < 2:
        return bucketize(values, sorted_sequence, out_int32, right)
    places = np.zeros(values.shape, np.int32 if out_int32 else np.int64)
    for row in np.ndindex(*values.shape[:-1]):
        places[row] = bucketize(values[row], sorted_sequence[row], out_int32, right)
    return places


def histogram(x: Any, low: Any, high: Any, bins: int) -> Any:
    """Counts of equal parts, the last one with its upper end."""
    wider = 1.0 if low == high else 0.0
    start, end = low - wider, high + wider
    inside = x[(x >= start) & (x <= end)]
    places = ((inside - start) / (end - start) * bins).astype(np.int64)
    return np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(x.dtype)


def nonzero(x: Any) -> Any:
    """One row for each axis."""
    return np.stack(np.nonzero(np.atleast_1d(wide(x)))).astype(np.int64)


def unique(
    x: Any, by_value: Any = True, index: Any = False, inverse: Any = False, counts: Any = False,
    axis: int | None = None,
) -> Any:  # fmt: skip
    """Unless ``by_value``, in the order in which the values are met first."""
    found, first, place, number = np.unique(wide(x), True, True, True, axis)
    place = place.reshape(-1)
    if not by_value:
        order = np.argsort(first)
        found = np.take(found, order, 0 if axis is None else axis)
        place, first, number = np.argsort(order)[place], first[order], number[order]
    parts = [found.astype(x.dtype)]
    wanted = ((index, first), (inverse, place), (counts, number))
    parts += [part.astype(np.int64) for flag, part in wanted if flag]
    return parts[0] if len(parts) == 1 else tuple(parts)


def astype(x: Any, dtype: str) -> Any:
    """The values in another type."""
    return convert(x, dtype)
