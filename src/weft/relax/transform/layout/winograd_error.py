"""Measures the error of Winograd's algorithm with the weights of a given convolution."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from weft.topi.nn.winograd_matrices import WINDOW, matrices

_SAMPLES: Final = 2
"""How many tiles of data: one of normally distributed numbers, one of these after a relu."""


def error_of(weights: npt.NDArray[np.floating], transformed: npt.NDArray[np.floating]) -> float:
    """The largest error of a filter, relative to its own largest result.

    ``weights`` have the shape (filters, channels, 3, 3), in float32; ``transformed`` is what
    ``topi.nn.winograd.transformed_weights`` returns for them. Two tiles of random data (with a
    fixed seed) are convolved by the algorithm in float32 and directly in float64. The error is
    infinite if a result is not finite.

    >>> weights = np.random.default_rng(0).normal(size=(8, 16, 3, 3)).astype("float32")
    >>> from weft.topi.nn.winograd import transformed_weights
    >>> small, large = [error_of(weights, transformed_weights(weights, tile)) for tile in (2, 4)]
    >>> small < large < 5e-5
    True
    """
    side = len(transformed)
    random = np.random.default_rng(side).normal(size=(_SAMPLES, weights.shape[1], side, side))
    random[1] = np.maximum(random[1], 0)
    data = random.astype("float32")
    with np.errstate(all="ignore"):
        expected = _direct(weights, data)
        computed = _winograd(transformed, data)
        worst = np.abs(computed - expected).max(axis=(0, 1, 2))
        scale = np.abs(expected).max(axis=(0, 1, 2))
        errors = np.where(worst == 0, 0, worst / scale)
    return float(errors.max()) if np.isfinite(errors).all() else float("inf")


def _direct(
    weights: npt.NDArray[np.floating], data: npt.NDArray[np.floating]
) -> npt.NDArray[np.floating]:
    """The convolution in float64: (samples, tile, tile, filters)."""
    filters, channels = weights.shape[:2]
    windows = np.lib.stride_tricks.sliding_window_view(data, (WINDOW, WINDOW), (2, 3))
    taps = np.moveaxis(windows, 1, 3).astype("float64")
    samples, tile = taps.shape[:2]
    matrix = weights.reshape(filters, channels * WINDOW * WINDOW).T.astype("float64")
    products = taps.reshape(samples * tile * tile, channels * WINDOW * WINDOW) @ matrix
    return np.asarray(products.reshape(samples, tile, tile, filters))


def _winograd(
    transformed: npt.NDArray[np.floating], data: npt.NDArray[np.floating]
) -> npt.NDArray[np.floating]:
    """The same in float32, by the algorithm."""
    side, _, channels, filters = transformed.shape
    known = matrices(side - WINDOW + 1)
    into, back = np.array(known.data, "float32"), np.array(known.results, "float32")
    moved = np.moveaxis(into @ data @ into.T, (2, 3), (0, 1))  # side, side, samples, channels
    by_place = np.ascontiguousarray(moved).reshape(side * side, len(data), channels)
    products = by_place @ transformed.reshape(side * side, channels, filters)
    lines = np.tensordot(back, products.reshape(side, side, len(data), filters), 1)
    tiles = np.tensordot(back, lines, (1, 1))  # tile, tile, samples, filters, axes swapped
    return np.ascontiguousarray(tiles.transpose(2, 1, 0, 3))
