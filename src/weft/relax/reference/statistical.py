"""Reductions and scans. Floats are summed in float64; integers wrap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.relax.reference.rule import all_axes, by_wide, convert, is_float, quiet, table, wide
from weft.support.errors import IRValueError


def _sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.sum(x, all_axes(axis, x.ndim), dtype=x.dtype, keepdims=keepdims)


def _prod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.prod(x, all_axes(axis, x.ndim), dtype=x.dtype, keepdims=keepdims)


def _extreme(function: Callable[..., Any], is_max: bool) -> Callable[..., Any]:
    """The neutral element is the result over no elements."""

    def run(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if is_float(x):
            start: Any = -math.inf if is_max else math.inf
        elif x.dtype == bool:
            start = not is_max
        else:
            start = np.iinfo(x.dtype).min if is_max else np.iinfo(x.dtype).max
        return function(x, axis=all_axes(axis, x.ndim), keepdims=keepdims, initial=start)

    return run


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    axes = all_axes(axis, x.ndim)
    count = math.prod([x.shape[item] for item in axes])
    return np.divide(np.sum(x, axes, keepdims=keepdims), count)


def _variance(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    distance = x - _mean(x, axis, keepdims=True)
    return _mean(distance * distance, axis, keepdims)


def _median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The lower one of an even number; over one axis also where it stands."""
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


def _arg(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        made = function(x.reshape(-1) if axis is None else x, axis=axis or 0, keepdims=keepdims)
        if axis is None:
            made = np.asarray(made).reshape([1] * x.ndim if keepdims else [])
        return np.asarray(made, np.int64)

    return by_wide(run)


def _scan(function: Callable[..., Any], start: int) -> Callable[..., Any]:
    def run(
        data: Any, axis: int | None = None, dtype: str | None = None, exclusive: bool = False
    ) -> Any:
        x = wide(convert(data, dtype))
        x, along = (x.reshape(-1), 0) if axis is None else (x, axis)
        made = function(x, axis=along, dtype=x.dtype)
        if exclusive and x.shape[along]:
            made = np.roll(made, 1, along)
            np.moveaxis(made, along, 0)[0] = start
        return made

    return quiet(run)


TABLE = table(
    {
        "sum": quiet(by_wide(_sum)),
        "prod": quiet(by_wide(_prod)),
        "max": quiet(by_wide(_extreme(np.max, True))),
        "min": quiet(by_wide(_extreme(np.min, False))),
        "mean": quiet(by_wide(_mean)),
        "variance": quiet(by_wide(_variance)),
        "std": quiet(by_wide(lambda *args, **attrs: np.sqrt(_variance(*args, **attrs)))),
        "median": _median,
        "argmax": _arg(np.argmax),
        "argmin": _arg(np.argmin),
        "cumsum": _scan(np.cumsum, 0),
        "cumprod": _scan(np.cumprod, 1),
    }
)
