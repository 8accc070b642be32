"""Windows, diagonals and strided views as new tensors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def unfold(x: Array, axis: int, size: int, step: int) -> Array:
    """Windows along an axis; their elements are along a new last axis."""
    axis %= x.ndim
    starts = np.arange((x.shape[axis] - size) // step + 1) * step
    windows: Array = np.take(x, starts[:, None] + np.arange(size), axis)
    return np.moveaxis(windows, axis + 1, -1)


def diagonal_scatter(x: Array, src: Array, offset: int, axis1: int, axis2: int) -> Array:
    """A copy whose diagonal is replaced by ``src``."""
    result = x.copy()
    places: Array = np.diagonal(np.arange(x.size).reshape(x.shape), offset, axis1, axis2)
    result.reshape(-1)[places] = src
    return result


def as_strided(x: Array, shape: Sequence[int], strides: Sequence[int], offset: int) -> Array:
    """The elements of the flat array at ``offset`` plus multiples of the strides."""
    places: Array = np.full(tuple(shape), offset)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(extent) * stride
        places += steps.reshape([-1 if axis == other else 1 for other in range(len(shape))])
    return x.reshape(-1)[places]


def im2col(
    x: Array,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    """(batch, channels, kernel ..., windows ...) of (batch, channels, ...); zeros outside."""
    rank = len(kernel_size)
    pairs = [(padding[axis], padding[rank + axis]) for axis in range(rank)]
    windows = np.pad(x, [(0, 0), (0, 0), *pairs])
    for axis in range(rank):
        reach = dilation[axis] * (kernel_size[axis] - 1) + 1
        windows = unfold(windows, 2 + axis, reach, strides[axis])[..., :: dilation[axis]]
    inner = [2 + rank + axis for axis in range(rank)]
    return windows.transpose([0, 1, *inner, *range(2, 2 + rank)])


def col2im(
    columns: Array,
    output_size: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Array:
    """The images whose windows are given; where windows overlap they add up."""
    rank = len(output_size)
    kernel, counts = columns.shape[2 : 2 + rank], columns.shape[2 + rank :]
    image: Array = np.zeros([*columns.shape[:2], *output_size], columns.dtype)
    pixels = np.moveaxis(image, [0, 1], [rank, rank + 1])
    parts = np.moveaxis(columns, [0, 1], [2 * rank, 2 * rank + 1])
    for tap in itertools.product(*[range(extent) for extent in kernel]):
        for window in itertools.product(*[range(extent) for extent in counts]):
            place = tuple(
                [
                    window[axis] * strides[axis] + tap[axis] * dilation[axis] - padding[axis]
                    for axis in range(rank)
                ]
            )
            if all(0 <= at < extent for at, extent in zip(place, output_size, strict=True)):
                pixels[place] += parts[(*tap, *window)]
    return image
