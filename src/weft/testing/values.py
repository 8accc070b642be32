"""Small functions that tests call: in worker processes, on environment variables, on types.

``identity_after`` and ``terminate_self`` are what tests of process pools send to the workers.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Final, NoReturn, TypeVar

import ml_dtypes
import numpy as np

from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError

_TRUE: Final = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE: Final = frozenset({"n", "no", "f", "false", "off", "0"})


Value = TypeVar("Value")


def identity_after(x: Value, sleep: float) -> Value:
    """``x``, after that many seconds."""
    if sleep:
        time.sleep(sleep)
    return x


def terminate_self() -> NoReturn:
    """End the process with status -1."""
    sys.exit(-1)


def echo(x: Value) -> Value:
    """``x`` itself."""
    return x


def nop(*_args: object) -> None:
    """Do nothing."""


def strtobool(val: str) -> int:
    """1 for a text that says yes, 0 for one that says no: ``"on"``, ``"0"``, ``"True"``."""
    text = val.lower()
    if text in _TRUE:
        return 1
    if text in _FALSE:
        return 0
    known = ", ".join(sorted(_TRUE | _FALSE))
    raise IRValueError(f"strtobool: expected one of {known}, got {val!r}")


def get_dtype_range(dtype: str) -> tuple[Any, Any]:
    """The least and the greatest value of an integer or floating-point type."""
    kind = DataType(dtype)
    if kind.is_float:
        limits: ml_dtypes.finfo | np.iinfo = ml_dtypes.finfo(np.dtype(kind.numpy))
    elif not (kind.is_handle or kind.is_bool):
        limits = np.iinfo(np.dtype(kind.numpy))
    else:
        raise IRTypeError(
            f"get_dtype_range: expected an integer or a floating-point type, got {dtype}"
        )
    return limits.min, limits.max
