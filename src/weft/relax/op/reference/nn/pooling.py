"""Pooling: the maximum or the mean over each window."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.relax.op.reference.nn import windows
from weft.relax.op.reference.nn.layout import from_canonical, to_canonical
from weft.relax.op.reference.rule import Reference, is_float, quiet, wide

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _least(x: np.ndarray) -> float:
    return -math.inf if is_float(x) else np.iinfo(x.dtype).min


def pool(rank: int, is_max: bool) -> Reference:
    """The reference of max or average pooling over ``rank`` spatial axes."""
    order = f"NC{_SPATIAL[rank]}"

    def run(
        data: np.ndarray, *, pool_size: Sequence[int], strides: Sequence[int],
        padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool, count_include_pad: bool,
        layout: str, out_layout: str,
    ) -> np.ndarray:  # fmt: skip
        x = to_canonical(wide(data), layout, order)
        extents, sides = [], []
        for axis in range(rank):
            before, after = padding[axis], padding[rank + axis]
            reach = dilation[axis] * (pool_size[axis] - 1) + 1
            whole = x.shape[2 + axis] + before + after
            extents.append(windows.count(whole, reach, strides[axis], ceil_mode))
            sides.append((before, after + strides[axis] - 1))
        places = [
            windows.taps(place, dilation, extents, strides) for place in np.ndindex(*pool_size)
        ]
        padded = np.pad(x, [(0, 0), (0, 0), *sides], constant_values=_least(x) if is_max else 0)
        taps = [windows.part(padded, at) for at in places]
        if is_max:
            pooled = np.maximum.reduce(taps)
        else:
            inside = np.ones(x.shape[2:])
            if count_include_pad:
                pads = [(padding[axis], padding[rank + axis]) for axis in range(rank)]
                inside = np.pad(inside, pads, constant_values=1)
                inside = np.pad(inside, [(0, stride - 1) for stride in strides])
            else:
                inside = np.pad(inside, sides)
            counts = sum(inside[at] for at in places)
            pooled = np.add.reduce(taps) / np.maximum(counts, 1)  # of no element: 0
        return from_canonical(pooled, out_layout, order)

    return quiet(run)


def adaptive(rank: int, is_max: bool) -> Reference:
    """The reference of adaptive pooling: windows are chosen to give the output a size."""
    order = f"NC{_SPATIAL[rank]}"

    def run(
        data: np.ndarray, *, output_size: Sequence[int] | None = None, layout: str, out_layout: str
    ) -> np.ndarray:
        x = to_canonical(wide(data), layout, order)
        size = list(x.shape[2:]) if output_size is None else list(output_size)
        pooled = np.empty((*x.shape[:2], *size), x.dtype)
        for place in np.ndindex(*size):
            window = tuple(
                [
                    slice(at * extent // count, -(-(at + 1) * extent // count))
                    for at, extent, count in zip(place, x.shape[2:], size, strict=True)
                ]
            )
            part = windows.part(x, window)
            axes = tuple(range(2, part.ndim))
            count = np.float64(math.prod(part.shape[2:]))  # of nothing: NaN, as the mean
            pooled[(..., *place)] = part.max(axes) if is_max else part.sum(axes) / count
        return from_canonical(pooled, out_layout, order)

    return quiet(run)
