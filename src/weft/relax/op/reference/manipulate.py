"""Operators that join, split and rearrange tensors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from weft.relax.op.reference.rule import wide
from weft.runtime.ndarray import NDArray, array
from weft.support.errors import IRValueError
from weft.tir.index_map import IndexMap


def concat(tensors: Sequence[np.ndarray], axis: int | None = 0) -> np.ndarray:
    """numpy's concatenate."""
    return np.concatenate(tensors, axis)


def split(
    x: np.ndarray, indices_or_sections: int | Sequence[int], axis: int = 0
) -> np.ndarray | tuple[np.ndarray, ...]:
    """So many parts of equal size (the last may be smaller), or the parts between indices.

    A negative index counts from the end. A single part is returned without a tuple.
    """
    extent = x.shape[axis]
    if isinstance(indices_or_sections, int):
        size = -(-extent // indices_or_sections)
        if size * (indices_or_sections - 1) > extent:
            raise IRValueError(
                f"relax.split: cannot split an extent of {extent} into {indices_or_sections} "
                "sections"
            )
        ends = [size * number for number in range(1, indices_or_sections)]
    else:
        ends = list(indices_or_sections)
    ends = [min(end, extent) if end >= 0 else max(end + extent, 0) for end in ends]
    limits = [0, *ends, extent]
    parts = []
    for start, end in itertools.pairwise(limits):
        index = [slice(None)] * x.ndim
        index[axis] = slice(start, max(start, end))
        parts.append(x[tuple(index)])
    return parts[0] if len(parts) == 1 else tuple(parts)


def squeeze(x: np.ndarray, axis: Sequence[int] | None = None) -> np.ndarray:
    """Without axes of extent 1."""
    return np.squeeze(x, None if axis is None else tuple(axis))


def layout_transform(
    x: np.ndarray,
    index_map: IndexMap,
    pad_value: float | None = None,
    axis_separators: object = None,  # noqa: ARG001 - describes physical memory, not values
    input_axis_separators: object = None,  # noqa: ARG001 - likewise
) -> np.ndarray:
    """Elements moved by an index map."""
    source = NDArray(x) if x.flags.writeable else array(x)
    moved = index_map.map_ndarray(source)._array
    if not pad_value:
        return moved
    is_data = index_map.map_ndarray(array(np.ones(x.shape, bool))).numpy()
    return np.where(is_data, wide(moved), pad_value).astype(x.dtype)


def one_hot(
    indices: np.ndarray, on_value: float, off_value: float, depth: int, axis: int = -1
) -> np.ndarray:
    """on_value where the index along the new axis equals the element, else off_value."""
    hot = np.where(indices[..., None] == np.arange(depth), on_value, off_value)
    return np.moveaxis(hot, -1, axis)


def meshgrid(tensors: Sequence[np.ndarray], indexing: str | None = "ij") -> tuple[np.ndarray, ...]:
    """numpy's meshgrid; a scalar is a vector of one."""
    vectors = [np.atleast_1d(item) for item in tensors]
    return tuple(np.meshgrid(*vectors, indexing="xy" if indexing == "xy" else "ij"))
