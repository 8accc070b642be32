"""The values that a random graph has so far, and how a recipe picks among them.

A value knows its concrete array (the reference computed it) and its shape with symbols. Floats are
*exact* if every order of evaluation gives the same bits: eighths of small magnitude. Operators that
jump (rounding, comparisons, sorting, indices) take exact values only, since a last bit that differs
would otherwise become another result. ``scale`` is the largest magnitude that went into a value:
what the tolerance of a comparison is measured by.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.support.dtype import DataType

LARGEST_INPUT: Final = 200.0
"""Inexact values above that are results only: operators may magnify their error."""
EXACT_LIMIT: Final = {"float64": 1 << 20, "float32": 1 << 12, "float16": 1 << 6}
"""Eighths up to that magnitude keep their value in sums and products of a few."""


@dataclass(frozen=True)
class Value:
    """One tensor of the graph: its name, its array, whether it is exact, its scale."""

    name: str
    array: Any
    exact: bool
    scale: float

    @property
    def shape(self) -> tuple[int, ...]:
        """The concrete shape."""
        shape: tuple[int, ...] = self.array.shape
        return shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """The data type."""
        return str(DataType(self.array.dtype.name))

    @property
    def is_float(self) -> bool:
        """Whether it holds floats."""
        return DataType(self.dtype).is_float

    @property
    def is_bool(self) -> bool:
        """Whether it holds booleans."""
        return self.dtype == "bool"

    @property
    def is_int(self) -> bool:
        """Whether it holds integers."""
        return not self.is_float and not self.is_bool

    @property
    def usable(self) -> bool:
        """Whether operators may go on from it."""
        if not self.is_float:
            return True
        with np.errstate(all="ignore"):
            return bool(np.all(np.abs(self.array.astype("float64")) <= LARGEST_INPUT))


def is_exact(array: Any) -> bool:
    """Whether the floats of an array are eighths of small magnitude; integers always are exact."""
    limit = EXACT_LIMIT.get(array.dtype.name)
    if limit is None:
        return not DataType(array.dtype.name).is_float
    wide = array.astype("float64") * 8
    with np.errstate(all="ignore"):
        return bool(np.all(np.abs(wide) <= 8 * limit) and np.all(wide == np.rint(wide)))


class Pool:
    """The values so far, and the source of choices."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.values: list[Value] = []

    def pick(self, accept: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """A usable value that fits; later ones are likelier, so that graphs get deep."""
        found = [value for value in self.values if value.usable and accept(value)]
        if not found:
            return None
        return found[max(self.r.randrange(len(found)), self.r.randrange(len(found)))]

    def float(self, ndim: int | None = None, *, exact: bool = False) -> Value | None:
        """A float tensor."""
        return self.pick(
            lambda v: v.is_float and (ndim is None or v.ndim == ndim) and (v.exact or not exact)
        )

    def any(self, least: int = 0, *, exact: bool = False) -> Value | None:
        """A tensor of at least so many dimensions."""
        return self.pick(lambda v: v.ndim >= least and (v.exact or not exact))

    def axis(self, value: Value) -> int:
        """An axis of a value, counted from either end."""
        return self.r.randrange(-value.ndim, value.ndim)

    def axes(self, value: Value, least: int = 0) -> list[int]:
        """Some axes of a value, each once."""
        chosen = self.r.sample(range(value.ndim), self.r.randint(least, value.ndim))
        return [axis - value.ndim if self.r.random() < 0.3 else axis for axis in chosen]

    def constant(self, array: Any) -> str:
        """Text of a constant of the graph."""
        items = np.asarray(array)
        return f"const(np.array({items.tolist()!r}, {items.dtype.name!r}).reshape({items.shape}))"

    def weights(self, shape: tuple[int, ...], dtype: str) -> str:
        """Text of a constant of small magnitude: halves where the dtype has them."""
        count, step = int(np.prod(shape)), 0.5 if DataType(dtype).is_float else 1
        low = 0 if dtype.startswith("uint") else -4
        items = [self.r.randint(low, 4) * step for _ in range(count)]
        return self.constant(np.array(items, dtype).reshape(shape))


Recipe = Callable[[Pool], str | None]
"""What writes a call on values of a pool, or None if nothing fits."""
