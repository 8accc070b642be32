"""Element-wise operators of two tensors. Integers wrap; integer division by zero is an error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.relax.op.reference.rule import is_float
from weft.support.errors import RuntimeFault

Binary = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _checked(divisor: np.ndarray) -> None:
    if not is_float(divisor) and np.any(divisor == 0):
        raise RuntimeFault("division by zero")


def division(of_floats: Binary, of_integers: Binary) -> Binary:
    """A quotient or remainder; RuntimeFault for an integer divisor of zero."""

    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        _checked(y)
        return np.asarray((of_floats if is_float(x) else of_integers)(x, y))

    return run


def truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The quotient rounded towards zero."""
    down = np.floor_divide(x, y)
    inexact = np.not_equal(np.multiply(down, y), x)
    return np.asarray(np.where(inexact & ((x < 0) != (y < 0)), down + 1, down).astype(x.dtype))


def floor(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The quotient rounded down."""
    return np.asarray(np.floor(x / y))


def floor_mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The remainder of floor division."""
    return np.asarray(np.mod(x, y))


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x ** y; integers wrap, and a negative exponent gives the truncated reciprocal."""
    if is_float(x):
        return np.asarray(np.power(x, y))
    x, y = np.broadcast_arrays(x, y)
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.asarray(np.where(y < 0, inverse, np.power(x, np.maximum(y, 0))).astype(x.dtype))
