"""Scales and zero points: which real numbers the integers of a quantised tensor stand for.

An activation is ``(q - zero_point) * scale`` with ``q`` in uint8, one scale for the tensor; weights
are ``q * scale`` with ``q`` in int8 and one scale for each channel of the result (Krishnamoorthi,
"Quantizing deep convolutional networks for efficient inference", 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.tir.byte_pairs import LARGEST_PAIR, largest_pairs

STEPS: Final = 255
"""The distance of the least and the greatest uint8."""
GREATEST: Final = 127
"""The greatest absolute value of a weight: -128 is left out, so that 0 is in the middle."""

_GREATEST_PAIR: Final = LARGEST_PAIR - 0.1
"""The greatest sum of two neighbours, with room for the rounding of scales."""


@dataclass(frozen=True)
class Coding:
    """How numbers of an activation are written as uint8."""

    scale: float
    zero_point: int


def coding_of(least: float, greatest: float) -> Coding:
    """The finest steps that reach from ``least`` to ``greatest``, with 0 exactly on a step.

    >>> coding_of(-1.0, 254.0)
    Coding(scale=1.0, zero_point=1)
    >>> coding_of(0.0, 0.0)
    Coding(scale=1.0, zero_point=0)
    """
    least, greatest = min(least, 0.0), max(greatest, 0.0)
    scale = float(np.float32((greatest - least) / STEPS))
    if scale == 0.0 or not np.isfinite(scale):
        return Coding(1.0, 0)
    zero = min(max(round(-least / scale), 0), STEPS)
    return Coding(scale, zero)


def quantized_weights(
    weights: np.ndarray, axis: int, pair_axis: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weights as int8, and the scales of the channels, one float32 for each index of ``axis``.

    With a ``pair_axis``, a scale is also so large that neighbours of one sign along that axis add
    up to at most 128 (``weft.tir.byte_pairs`` says what for).

    >>> given = np.array([[1.0, -2.0], [0.5, 127.0]], "float32")
    >>> numbers, scales = quantized_weights(given, 1)
    >>> numbers.tolist(), scales.tolist()
    ([[127, -2], [64, 127]], [0.007874015718698502, 1.0])
    >>> quantized_weights(given, 1, 0)[0].tolist()
    [[85, -2], [43, 127]]
    """
    others = tuple([other for other in range(weights.ndim) if other != axis])
    largest = np.abs(weights).max(axis=others, initial=0.0) / GREATEST
    if pair_axis is not None:
        pairs = largest_pairs(weights, pair_axis).max(axis=others, initial=0.0)
        largest = np.maximum(largest, pairs / _GREATEST_PAIR)
    scales = largest.astype("float32")
    scales[scales == 0] = 1.0
    shape = [-1 if other == axis else 1 for other in range(weights.ndim)]
    numbers = np.rint(weights / scales.reshape(shape)).clip(-GREATEST, GREATEST)
    return numbers.astype("int8"), scales


def range_of(values: np.ndarray, percentile: float | None) -> tuple[float, float]:
    """The range of the numbers of an activation; with a percentile, without the outermost ones.

    >>> range_of(np.arange(101.0), None), range_of(np.arange(101.0), 98.0)
    ((0.0, 100.0), (2.0, 98.0))
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 0.0
    if percentile is None:
        return float(finite.min()), float(finite.max())
    low, high = np.percentile(finite, [100.0 - percentile, percentile])
    return float(low), float(high)
