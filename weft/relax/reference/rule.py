"""What a row of the reference tables is, and the helpers that rows share.

``table(add=np.add)`` makes rows keyed by Op. A row's function takes the values of the call's
arguments in order (a tensor is a numpy array, a tuple a tuple, a shape a tuple of int, a scalar
a number; an absent optional argument is not passed), then the attributes by name as plain Python.
It returns an array or a tuple of them. Floats may come back wider than the operator's result: the
interpreter rounds them to the dtype that the struct info gives. Integers and booleans come back
in their own dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from weft.ir.op import Op
from weft.support.dtype import DataType

Reference = Callable[..., Any]


def table(rows: Mapping[str, Reference]) -> dict[Op, Reference]:
    """Rows by operator, from rows by name without ``relax.``."""
    return {Op.get(f"relax.{name}"): function for name, function in rows.items()}


def is_float(x: Any) -> bool:
    """Whether an array holds floats, bfloat16 and the 8-bit ones among them."""
    return DataType(np.asarray(x).dtype.name).is_float


def wide(x: Any) -> Any:
    """Floats as float64 (a reference that rounds as little as it can); other values as given."""
    made = np.asarray(x)
    return made.astype("float64") if is_float(made) else made


def by_wide(function: Reference) -> Reference:
    """A row whose tensors are widened first."""

    def run(*args: Any, **attrs: Any) -> Any:
        given = [wide(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        return function(*given, **attrs)

    return run
