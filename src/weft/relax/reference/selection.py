"""Choice, casts, order and search."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.relax.reference.rule import by_wide, convert, is_float, numpy_dtype, quiet, table, wide
from weft.support.errors import RuntimeFault


def _reversed(x: Any) -> Any:
    """Keys in the opposite order; NaN stays last."""
    return -x if is_float(x) else ~x


def _order(x: Any, axis: int, descending: bool) -> Any:
    keys = wide(x)
    return np.argsort(_reversed(keys) if descending else keys, axis, kind="stable")


def _sort(x: Any, axis: int = -1, descending: bool = False) -> Any:
    if x.ndim == 0:
        return x
    return np.take_along_axis(x, _order(x, axis, descending), axis)


def _argsort(data: Any, axis: int = -1, descending: bool = False, dtype: str = "int32") -> Any:
    if data.ndim == 0:
        return np.zeros((), numpy_dtype(dtype))
    return convert(_order(data, axis, descending), dtype)


def _topk(
    data: Any, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True,
    dtype: str = "int32",
) -> Any:  # fmt: skip
    order = _order(data, axis, largest)
    extent = order.shape[axis]
    chosen = np.take(order, np.arange(extent if k < 1 else min(k, extent)), axis)
    values, indices = np.take_along_axis(data, chosen, axis), convert(chosen, dtype)
    return {"values": values, "indices": indices}.get(ret_type, (values, indices))


def _bucketize(
    input_tensor: Any, boundaries: Any, out_int32: bool = False, right: bool = False
) -> Any:
    if np.any(boundaries[1:] < boundaries[:-1]):
        raise RuntimeFault("bucketize: the boundaries are not in order")
    made = np.searchsorted(boundaries, input_tensor, "right" if right else "left")
    return np.asarray(made, np.int32 if out_int32 else np.int64)


def _nonzero(x: Any) -> Any:
    return np.stack(np.nonzero(np.atleast_1d(wide(x)))).astype(np.int64)


def _unique(
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


def _cast(x: Any, dtype: str) -> Any:
    return convert(x, dtype)


TABLE = table(
    {
        "where": lambda condition, x, y: np.where(condition, wide(x), wide(y)),
        "ewise_fma": quiet(by_wide(lambda x, y, z: x * y + z)),
        "astype": _cast,
        "wrap_param": lambda data, dtype: convert(data, dtype),
        "sort": _sort,
        "argsort": _argsort,
        "topk": _topk,
        "bucketize": by_wide(_bucketize),
        "nonzero": _nonzero,
        "unique": _unique,
    }
)
