"""Tensors from shapes and numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.relax.reference.rule import convert, is_float, numpy_dtype, table


def _full(shape: Any, fill_value: Any, dtype: str | None = None) -> Any:
    return np.broadcast_to(convert(fill_value, dtype), shape)


def _full_like(x: Any, fill_value: Any, dtype: str | None = None) -> Any:
    return _full(x.shape, fill_value, dtype or x.dtype.name)


def _constant(value: int) -> Any:
    def run(shape: Any, dtype: str) -> Any:
        return np.full(shape, value, numpy_dtype(dtype))

    return run


def _constant_like(value: int) -> Any:
    def run(x: Any, dtype: str | None = None) -> Any:
        return np.full(x.shape, value, x.dtype if dtype is None else numpy_dtype(dtype))

    return run


def _eye(n: int, m: int, k: int, dtype: str) -> Any:
    return np.eye(n, m, k, bool).astype(numpy_dtype(dtype))


def _eye_like(x: Any, k: int, dtype: str | None = None) -> Any:
    return _eye(x.shape[0], x.shape[1], k, dtype or x.dtype.name)


def _arange(start: Any, end: Any, step: Any, dtype: str) -> Any:
    count = max(0, math.ceil((end - start) / step))
    return convert(start + np.arange(count) * step, dtype)


def _hamming_window(
    window_size: int, periodic: Any, alpha: float, beta: float, dtype: str
) -> Any:
    if window_size == 1:
        return np.ones(1, numpy_dtype(dtype))
    count = window_size if periodic else window_size - 1
    made = alpha - beta * np.cos(2 * np.pi * np.arange(window_size) / count)
    return made if is_float(np.empty(0, numpy_dtype(dtype))) else convert(made, dtype)


TABLE = table(
    {
        "full": _full,
        "full_like": _full_like,
        "ones": _constant(1),
        "ones_like": _constant_like(1),
        "zeros": _constant(0),
        "zeros_like": _constant_like(0),
        "eye": _eye,
        "eye_like": _eye_like,
        "arange": _arange,
        "hamming_window": _hamming_window,
        "tril": np.tril,
        "triu": np.triu,
    }
)
