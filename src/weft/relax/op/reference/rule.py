"""What a numpy reference is, and the helpers that references share.

``@operator(numpy=...)`` names a function that takes the values of the call's
arguments in order (a tensor is a numpy array, a tuple a tuple, a shape a tuple of int, a scalar
a number; an absent optional argument is not passed), then the attributes by name as plain Python.
It returns an array or a tuple of them. Floats may come back wider than the operator's result: the
interpreter rounds them to the dtype that the struct info gives. Integers and booleans come back
in their own dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.support.dtype import DataType

Reference = Callable[..., Any]


def is_float(x: Any) -> bool:
    """Whether an array holds floats, bfloat16 and the 8-bit ones among them."""
    return DataType(np.asarray(x).dtype.name).is_float


def wide(x: Any) -> Any:
    """Floats as float64 (a reference that rounds as little as it can); other values as given."""
    made = np.asarray(x)
    return made.astype("float64") if is_float(made) else made


def by_wide(function: Reference) -> Reference:
    """A reference whose floats are widened first."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def run(*args: Any, **attrs: Any) -> Any:
        given = [wide(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        return function(*given, **attrs)

    return run


def quiet(function: Reference) -> Reference:
    """A reference that may overflow, divide by zero and meet NaN without a warning."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def run(*args: Any, **attrs: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **attrs)

    return run


def in_float64(function: Reference) -> Reference:
    """A reference that computes in float64, without warnings; integers stay as they are."""
    return quiet(by_wide(function))


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The numpy dtype of a data type's name."""
    return DataType(dtype).numpy


def convert(x: Any, dtype: str | None) -> Any:
    """The values in another type (None: as they are): floats saturate to integers, NaN is 0."""
    made = np.asarray(x)
    if dtype is None or DataType(dtype).numpy == made.dtype:
        return made
    target = DataType(dtype)
    with np.errstate(all="ignore"):
        if target.is_bool:
            return wide(made) != 0
        if target.is_float or not is_float(made):
            return wide(made).astype(target.numpy)
        limits = np.iinfo(target.numpy)
        values = np.trunc(wide(made))
        inside = (values >= float(limits.min)) & (values < float(limits.max))
        ends = np.where(values > 0, limits.max, limits.min).astype(target.numpy)
        whole = np.where(inside, values, 0).astype(target.numpy)
        return np.where(np.isnan(values), target.numpy.type(0), np.where(inside, whole, ends))


def normalized(axis: int, ndim: int) -> int:
    """An axis counted from the front."""
    return axis % ndim if ndim else 0


def all_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes of an attribute that is a list, one number, or None for all."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, list | tuple) else [axis]
    return tuple([normalized(item, ndim) for item in given])
