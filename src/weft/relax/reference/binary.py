"""Element-wise operators of two tensors. Integers wrap; a divisor of zero is a fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.relax.reference.rule import Reference, by_wide, is_float, quiet, table
from weft.support.errors import RuntimeFault


def _checked(divisor: Any) -> None:
    if not is_float(divisor) and np.any(divisor == 0):
        raise RuntimeFault("division by zero")


def _division(of_floats: Callable[..., Any], of_integers: Callable[..., Any]) -> Reference:
    def run(x: Any, y: Any) -> Any:
        _checked(y)
        return (of_floats if is_float(x) else of_integers)(x, y)

    return quiet(by_wide(run))


def _truncated(x: Any, y: Any) -> Any:
    """The quotient rounded towards zero."""
    down = np.floor_divide(x, y)
    inexact = np.not_equal(np.multiply(down, y), x)
    return np.where(inexact & ((x < 0) != (y < 0)), down + 1, down).astype(x.dtype)


def _floor(x: Any, y: Any) -> Any:
    return np.floor(x / y)


def _floor_mod(x: Any, y: Any) -> Any:
    return np.mod(x, y)


TABLE = table(
    {
        "add": quiet(by_wide(np.add)),
        "subtract": quiet(by_wide(np.subtract)),
        "multiply": quiet(by_wide(np.multiply)),
        "divide": _division(np.divide, _truncated),
        "floor_divide": _division(_floor, np.floor_divide),
        "power": quiet(by_wide(np.power)),
        "mod": _division(np.fmod, np.fmod),
        "floor_mod": _division(_floor_mod, np.mod),
        "maximum": quiet(by_wide(np.maximum)),
        "minimum": quiet(by_wide(np.minimum)),
        "log_add_exp": quiet(by_wide(np.logaddexp)),
        "equal": by_wide(np.equal),
        "not_equal": by_wide(np.not_equal),
        "less": by_wide(np.less),
        "less_equal": by_wide(np.less_equal),
        "greater": by_wide(np.greater),
        "greater_equal": by_wide(np.greater_equal),
        "logical_and": np.logical_and,
        "logical_or": np.logical_or,
        "logical_xor": np.logical_xor,
        "bitwise_and": np.bitwise_and,
        "bitwise_or": np.bitwise_or,
        "bitwise_xor": np.bitwise_xor,
        "left_shift": np.left_shift,
        "right_shift": np.right_shift,
    }
)
