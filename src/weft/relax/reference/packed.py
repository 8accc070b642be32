"""Calls of registered functions: arrays are passed as NDArrays that share their memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weft.relax.reference.frame import Value
from weft.runtime.ndarray import NDArray
from weft.runtime.registry import get_global_func
from weft.runtime.vm import (  # noqa: F401 - they register what graphs call
    data_dependent,
    rows,
    sequences,
)
from weft.runtime.vm.library import alloc_shape_heap


def _outward(value: Value) -> Value:
    if isinstance(value, np.ndarray):
        return NDArray(value)
    if isinstance(value, tuple):
        return tuple([_outward(item) for item in value])
    return value.item() if isinstance(value, np.generic) else value


def _inward(value: Value) -> Value:
    if isinstance(value, NDArray):
        return np.asarray(value)
    if isinstance(value, tuple | list):
        return tuple([_inward(item) for item in value])
    return value


def call_packed(name: str, values: Sequence[Value]) -> Value:
    """Call the registered function of that name; a result of None is the empty tuple."""
    function: Callable[..., object] = alloc_shape_heap if name == _HEAP else get_global_func(name)
    result = _inward(function(*[_outward(value) for value in values]))
    return () if result is None and name not in _MAY_BE_NONE else result


_HEAP = "vm.builtin.alloc_shape_heap"
_MAY_BE_NONE = ("vm.builtin.null_value",)
