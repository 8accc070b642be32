"""Sliding windows: how many there are, and which elements of the data each of them reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.support.errors import IRValueError


def count(padded: int, reach: int, stride: int, ceil: bool = False) -> int:
    """The number of windows; IRValueError where the operator's struct-info rule would raise it."""
    room = padded - reach
    steps = (-(-room // stride) if ceil else room // stride) + 1
    if room + (stride - 1 if ceil else 0) < 0 and (padded or steps < 0):
        raise IRValueError(
            f"the window reaches over {reach} elements, the padded data has {padded}"
        )
    return steps


def part(x: np.ndarray, place: Sequence[np.ndarray | slice]) -> np.ndarray:
    """The part of x at indices or slices of its last axes."""
    return x[(..., *place)]


def taps(
    place: Sequence[int], dilation: Sequence[int], counts: Sequence[int], strides: Sequence[int]
) -> tuple[slice, ...]:
    """The slices of the padded data that kernel element ``place`` reads over all windows."""
    sizes = zip(place, dilation, counts, strides, strict=True)
    return tuple(
        [
            slice(tap * step, tap * step + (times - 1) * stride + 1 if times else 0, stride)
            for tap, step, times, stride in sizes
        ]
    )


def deform_im2col(
    data: np.ndarray,
    offset: np.ndarray,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    offset_groups: int = 1,
) -> np.ndarray:
    """Windows of images whose elements are moved by offsets and interpolated bilinearly."""
    batches, channels, *space = data.shape
    counts = offset.shape[2:]
    moves = offset.reshape(batches, offset_groups, *kernel_size, 2, *counts)
    windows = np.zeros((*data.shape[:2], *kernel_size, *counts))
    per_group = channels // max(offset_groups, 1)
    window_places = np.indices(counts)
    for n, group, *tap in np.ndindex(batches, offset_groups, *kernel_size):
        planes = slice(group * per_group, (group + 1) * per_group)
        places = [
            window_places[a] * strides[a]
            + tap[a] * dilation[a]
            - padding[a]
            + moves[n, group, tap[0], tap[1], a]
            for a in range(2)
        ]
        for corner in np.ndindex(2, 2):
            at = [np.floor(places[a]) + corner[a] for a in range(2)]
            weights = np.prod([1 - np.abs(places[a] - at[a]) for a in range(2)], 0)
            inside = np.all([(at[a] >= 0) & (at[a] < space[a]) for a in range(2)], 0)
            index = [np.where(inside, at[a], 0).astype("int64") for a in range(2)]
            pixels = data[n, planes][:, index[0], index[1]] if data.size else 0.0
            windows[n, planes, tap[0], tap[1]] += np.where(inside, weights * pixels, 0.0)
    return windows
