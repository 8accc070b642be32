"""Element-wise operators of two tensors. Integers wrap; a divisor of zero is a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.relax.op.reference.rule import Reference, in_float64, is_float
from weft.support.errors import RuntimeFault


def _checked(divisor: Any) -> None:
    if not is_float(divisor) and np.any(divisor == 0):
        raise RuntimeFault("division by zero")


def division(of_floats: Callable[..., Any], of_integers: Callable[..., Any]) -> Reference:
    """A quotient or remainder; a divisor of zero is a fault for integers."""
    def run(x: Any, y: Any) -> Any:
        _checked(y)
        return (of_floats if is_float(x) else of_integers)(x, y)

    return in_float64(run)


def truncated(x: Any, y: Any) -> Any:
    """The quotient rounded towards zero."""
    down = np.floor_divide(x, y)
    inexact = np.not_equal(np.multiply(down, y), x)
    return np.where(inexact & ((x < 0) != (y < 0)), down + 1, down).astype(x.dtype)


def floor(x: Any, y: Any) -> Any:
    """The quotient rounded down."""
    return np.floor(x / y)


def floor_mod(x: Any, y: Any) -> Any:
    """The remainder of floor division."""
    return np.mod(x, y)


def power(x: Any, y: Any) -> Any:
    """Of integers modulo their type; of a negative exponent the inverse, truncated."""
    if is_float(x):
        return np.power(x, y)
    x, y = np.broadcast_arrays(x, y)
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0))).astype(x.dtype)
