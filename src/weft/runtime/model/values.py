"""The values of a call: tensors and arrays whose memory compiled code can use, and results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.runtime.ndarray import NDArray, from_dlpack
from weft.support.errors import IRTypeError

_NATIVE_NUMPY = frozenset("biuf")


def readable(value: Any) -> object:
    """An input whose memory compiled code can read: copied only where it is not compact."""
    kind = type(value)
    if kind is NDArray:
        return value if value._compact else NDArray(np.ascontiguousarray(value._array))
    if kind is np.ndarray:
        return value if value.flags.carray else np.array(value, order="C")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.is_nested:
            raise IRTypeError(
                "expected a dense tensor, got a nested one; torch.nested.to_padded_tensor makes one"
            )
        if value.layout is torch.strided and not value.is_contiguous():
            value = value.contiguous()
        return value.resolve_neg() if value.is_neg() else value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, tuple | list):
        return tuple([readable(item) for item in value])
    if isinstance(value, np.ndarray):
        return np.array(value)
    return value


def holds_any(values: Sequence[object], kinds: tuple[type, ...]) -> bool:
    """Whether there is a value of one of these classes, also in a tuple."""
    for value in values:
        if holds_any(value, kinds) if isinstance(value, tuple) else isinstance(value, kinds):
            return True
    return False


def converted(value: object, convert: Callable[[NDArray], object]) -> Any:
    """The value with ``convert`` of each array in it."""
    if isinstance(value, NDArray):
        return convert(value)
    if isinstance(value, tuple):
        return tuple([converted(item, convert) for item in value])
    return value


def to_numpy(value: NDArray) -> np.ndarray:
    """The numpy array on an array's memory."""
    return value._array  # noqa: SLF001 - the same room


def to_torch(value: NDArray) -> Any:
    """The torch tensor on an array's memory; torch must be loaded."""
    array = value._array  # noqa: SLF001 - the same room
    torch = sys.modules["torch"]
    if array.dtype.kind in _NATIVE_NUMPY:
        return torch.from_numpy(array)
    return torch.from_dlpack(value)


def write_into(target: Any, value: NDArray) -> None:
    """Give a tensor that the caller or the model holds its new content."""
    if isinstance(target, NDArray):
        target.copyfrom(value)
    elif isinstance(target, np.ndarray):
        target[...] = to_numpy(value)
    else:
        with sys.modules["torch"].no_grad():
            target.copy_(to_torch(value))


def as_array(value: object) -> NDArray:
    """The NDArray on the memory of a state."""
    return value if isinstance(value, NDArray) else from_dlpack(value)
