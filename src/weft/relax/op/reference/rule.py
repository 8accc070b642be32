"""The interface of a numpy reference, and the helpers that references share.

``@operator(numpy=...)`` names a function that takes the values of the call's arguments in order (a
tensor is a numpy array, a tuple a tuple, a shape a tuple of int, a scalar a number; an absent
optional argument is not passed), then the attributes by name as plain Python. It returns an array
or a tuple of arrays. Floats may be wider than the operator's result: the interpreter rounds them to
the dtype in the struct info. Integers and booleans must have their own dtype.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from weft.support.dtype import DataType

Reference = Callable[..., Any]
F = TypeVar("F", bound=Callable[..., object])
Axes = int | Sequence[int] | None
"""One axis, several, or all of them (None)."""


def is_float(x: npt.ArrayLike) -> bool:
    """Whether an array holds floats (also bfloat16 and 8-bit floats)."""
    return _is_float_type(np.asarray(x).dtype)


@functools.cache
def _is_float_type(dtype: np.dtype) -> bool:
    return DataType(dtype.name).is_float


def wide(x: npt.ArrayLike) -> np.ndarray:
    """Floats as float64, so that a reference rounds as little as possible; others as given."""
    values = np.asarray(x)
    return values.astype("float64") if is_float(values) else values


def by_wide(function: F) -> F:
    """A reference that gets its floats as float64."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def run(*args: object, **attrs: object) -> object:
        given = [wide(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        return function(*given, **attrs)

    return cast("F", run)


def quiet(function: F) -> F:
    """A reference that may overflow, divide by zero and meet NaN without a warning."""

    @functools.wraps(function, assigned=("__name__", "__doc__"))
    def run(*args: object, **attrs: object) -> object:
        with np.errstate(all="ignore"):
            return function(*args, **attrs)

    return cast("F", run)


def in_float64(function: F) -> F:
    """A reference that computes in float64, without warnings; integers stay as they are."""
    return quiet(by_wide(function))


def numpy_dtype(dtype: str) -> np.dtype:
    """The numpy dtype of a data type's name."""
    return DataType(dtype).numpy


def convert(x: npt.ArrayLike, dtype: str | None) -> np.ndarray:
    """The values in another type (None: as they are).

    Floats are truncated and clamped to the integer type; NaN becomes 0.
    """
    values = np.asarray(x)
    if dtype is None or DataType(dtype).numpy == values.dtype:
        return values
    target = DataType(dtype)
    with np.errstate(all="ignore"):
        if target.is_bool:
            return np.asarray(wide(values) != 0)
        if target.is_float or not is_float(values):
            return wide(values).astype(target.numpy)
        limits = np.iinfo(target.numpy)
        numbers = np.trunc(wide(values))
        inside = (numbers >= float(limits.min)) & (numbers < float(limits.max))
        ends = np.where(numbers > 0, limits.max, limits.min).astype(target.numpy)
        whole = np.where(inside, numbers, 0).astype(target.numpy)
        return np.where(np.isnan(numbers), target.numpy.type(0), np.where(inside, whole, ends))


def normalized(axis: int, ndim: int) -> int:
    """An axis counted from 0."""
    return axis % ndim if ndim else 0


def all_axes(axis: Axes, ndim: int) -> tuple[int, ...]:
    """The axes of an attribute that is a list, one number, or None for all."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, Sequence) else [axis]
    return tuple([normalized(item, ndim) for item in given])
