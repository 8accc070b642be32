"""Tensors from shapes and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.relax.op.reference.rule import Reference, convert, is_float, numpy_dtype


def full(shape: Sequence[int], fill_value: np.ndarray, dtype: str | None = None) -> np.ndarray:
    """A tensor of one value."""
    return np.broadcast_to(convert(fill_value, dtype), shape)


def full_like(x: np.ndarray, fill_value: np.ndarray, dtype: str | None = None) -> np.ndarray:
    """A tensor of one value, with the shape of another tensor."""
    return full(x.shape, fill_value, dtype or x.dtype.name)


def constant(value: int) -> Reference:
    """The reference of ``zeros`` or ``ones``."""

    def run(shape: Sequence[int], dtype: str) -> np.ndarray:
        return np.full(shape, value, numpy_dtype(dtype))

    return run


def constant_like(value: int) -> Reference:
    """The reference of ``zeros_like`` or ``ones_like``."""

    def run(x: np.ndarray, dtype: str | None = None) -> np.ndarray:
        return np.full(x.shape, value, x.dtype if dtype is None else numpy_dtype(dtype))

    return run


def eye(n: int, m: int, k: int, dtype: str) -> np.ndarray:
    """Ones on a diagonal."""
    return np.eye(n, m, k, bool).astype(numpy_dtype(dtype))


def eye_like(x: np.ndarray, k: int, dtype: str | None = None) -> np.ndarray:
    """Ones on a diagonal, of the shape of a matrix."""
    return eye(x.shape[0], x.shape[1], k, dtype or x.dtype.name)


def arange(start: float, end: float, step: float, dtype: str) -> np.ndarray:
    """The numbers from start up to end, in steps."""
    count = max(0, math.ceil((end - start) / step))
    return convert(start + np.arange(count) * step, dtype)


def hamming_window(
    window_size: int, periodic: bool, alpha: float, beta: float, dtype: str
) -> np.ndarray:
    """A raised cosine; a window of one element is 1."""
    if window_size == 1:
        return np.ones(1, numpy_dtype(dtype))
    count = window_size if periodic else window_size - 1
    window = alpha - beta * np.cos(2 * np.pi * np.arange(window_size) / count)
    return window if is_float(np.empty(0, numpy_dtype(dtype))) else convert(window, dtype)


def linspace(start: float, end: float, steps: int, dtype: str) -> np.ndarray:
    """Equally spaced numbers, each computed from the nearer end, as PyTorch does."""
    place = np.arange(steps)
    width = (end - start) / max(steps - 1, 1)
    values = np.where(2 * place < steps, start + width * place, end - width * (steps - 1 - place))
    return convert(values, dtype)
