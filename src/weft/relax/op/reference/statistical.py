"""Reductions and scans. Floats are summed in float64; integers wrap."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.relax.op.reference.rule import (
    Axes,
    Reference,
    all_axes,
    by_wide,
    convert,
    in_float64,
    is_float,
    quiet,
    wide,
)
from weft.support.errors import IRValueError


@in_float64
def sum_of(x: np.ndarray, axis: Axes = None, keepdims: bool = False) -> np.ndarray:
    """The sum over axes."""
    return np.asarray(np.sum(x, all_axes(axis, x.ndim), dtype=x.dtype, keepdims=keepdims))


@in_float64
def prod(x: np.ndarray, axis: Axes = None, keepdims: bool = False) -> np.ndarray:
    """The product over axes."""
    return np.asarray(np.prod(x, all_axes(axis, x.ndim), dtype=x.dtype, keepdims=keepdims))


def extreme(function: Reference, is_max: bool) -> Reference:
    """The reference of max or min; over no elements the result is the neutral element."""

    def run(x: np.ndarray, axis: Axes = None, keepdims: bool = False) -> np.ndarray:
        if is_float(x):
            start: float = -math.inf if is_max else math.inf
        elif x.dtype == bool:
            start = not is_max
        else:
            start = np.iinfo(x.dtype).min if is_max else np.iinfo(x.dtype).max
        axes = all_axes(axis, x.ndim)
        return np.asarray(function(x, axis=axes, keepdims=keepdims, initial=start))

    return in_float64(run)


@in_float64
def mean(x: np.ndarray, axis: Axes = None, keepdims: bool = False) -> np.ndarray:
    """The sum divided by the number of elements."""
    axes = all_axes(axis, x.ndim)
    count = math.prod([x.shape[item] for item in axes])
    return np.asarray(np.divide(np.sum(x, axes, keepdims=keepdims), count))


@in_float64
def variance(x: np.ndarray, axis: Axes = None, keepdims: bool = False) -> np.ndarray:
    """The mean square of the distance from the mean."""
    distance = x - mean(x, axis, keepdims=True)
    return mean(distance * distance, axis, keepdims)


def median(
    x: np.ndarray, axis: Axes = None, keepdims: bool = False
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """The median, of an even number of values the lower one; over one axis also its index."""
    axes = all_axes(axis, x.ndim)
    values = wide(x)
    moved = np.moveaxis(values, axes, range(values.ndim - len(axes), values.ndim))
    outer = moved.shape[: values.ndim - len(axes)]
    count = math.prod([values.shape[item] for item in axes])
    if count == 0:
        raise IRValueError("median: expected at least one element along the axes, got none")
    flat = moved.reshape(*outer, count)
    order = np.argsort(flat, -1, kind="stable")
    place = order[..., (count - 1) // 2]
    numbers = np.isnan(flat)
    place = np.where(numbers.any(-1), numbers.argmax(-1), place)
    chosen = np.take_along_axis(flat, place[..., None], -1)[..., 0]
    if keepdims:
        chosen, place = np.expand_dims(chosen, axes), np.expand_dims(place, axes)
    return (chosen, place) if axis is not None and len(axes) == 1 else chosen


def arg(function: Reference) -> Reference:
    """The reference of argmax or argmin: the index of the first extreme value."""

    def run(x: np.ndarray, axis: int | None = None, keepdims: bool = False) -> np.ndarray:
        places = function(x.reshape(-1) if axis is None else x, axis=axis or 0, keepdims=keepdims)
        if axis is None:
            places = np.asarray(places).reshape([1] * x.ndim if keepdims else [])
        return np.asarray(places, np.int64)

    return by_wide(run)


def scan(function: Reference, start: int) -> Reference:
    """The reference of cumsum or cumprod; ``start`` is the neutral element."""

    def run(
        data: np.ndarray, axis: int | None = None, dtype: str | None = None, exclusive: bool = False
    ) -> np.ndarray:
        x = wide(convert(data, dtype))
        x, along = (x.reshape(-1), 0) if axis is None else (x, axis)
        running = function(x, axis=along, dtype=x.dtype)
        if exclusive and x.shape[along]:
            running = np.roll(running, 1, along)
            np.moveaxis(running, along, 0)[0] = start
        return np.asarray(running)

    return quiet(run)


def logcumsumexp(data: np.ndarray, axis: int) -> np.ndarray:
    """The logarithms of running sums of exponentials."""
    return np.logaddexp.accumulate(data, axis=axis)


def running_extreme(data: np.ndarray, axis: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """The running maximum or minimum, and the last index at which each occurs."""
    rows = np.moveaxis(data, axis, 0)
    values, places = rows.copy(), np.zeros(rows.shape, np.int64)
    for place in range(1, len(rows)):
        row, best = rows[place], values[place - 1]
        better = (row >= best if largest else row <= best) | (row != row)  # row != row: NaN
        values[place] = np.where(better, row, best)
        places[place] = np.where(better, place, places[place - 1])
    return np.moveaxis(values, 0, axis), np.moveaxis(places, 0, axis)


def collapse(data: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The sum over the axes that ``shape`` lacks or has with the extent 1."""
    extra = data.ndim - len(shape)
    axes = [*range(extra)]
    for axis, extent in enumerate(shape):
        if extent == 1 and data.shape[extra + axis] != 1:
            axes.append(extra + axis)
    return np.asarray(np.sum(wide(data), tuple(axes), dtype=wide(data).dtype).reshape(shape))
