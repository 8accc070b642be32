"""Weights of int8 whose products with unsigned bytes int16 holds in pairs.

``vpmaddubsw`` adds two neighbouring products ``u[2j] * w[2j] + u[2j + 1] * w[2j + 1]`` in int16 and
cuts off what int16 does not hold. With ``u`` up to 255 nothing is cut off if neighbouring weights
of one sign add up to at most 128. AttachBytePairs looks at the weights of a graph and writes into
the attribute ``exact_byte_pairs`` of their kernels along which axes that is so; default schedules
use the instruction where it is exact.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.tir.buffer import Buffer
from weft.tir.function import PrimFunc

EXACT_BYTE_PAIRS: Final = "exact_byte_pairs"
"""The attribute: a list for each parameter, of the axes along which its pairs are exact."""
LARGEST_PAIR: Final = 128
"""What neighbours of one sign may add up to: int16 holds 255 times that, and not 255 times more."""


def largest_pairs(weights: np.ndarray, axis: int) -> np.ndarray:
    """The absolute sum of any two neighbours along ``axis``, where numbers of one sign count only.

    Neighbours are the elements 0 and 1, 2 and 3, and so on; the last one may be alone, and is left
    out. The result has half as many elements along ``axis``.

    >>> largest_pairs(np.array([3, 4, -5, 2, 7]), 0).tolist()
    [7, 5]
    """
    numbers = np.moveaxis(weights, axis, 0)
    count = len(numbers) // 2
    first, second = numbers[: 2 * count : 2], numbers[1 : 2 * count : 2]
    above = np.maximum(first, 0) + np.maximum(second, 0)
    below = np.minimum(first, 0) + np.minimum(second, 0)
    return np.moveaxis(np.maximum(above, -below), 0, axis)


def has_exact_pairs(weights: np.ndarray, axis: int) -> bool:
    """Whether int16 holds what unsigned bytes times any two neighbours along ``axis`` add up to.

    >>> weights = np.array([[100, -100], [28, 29]], "int8")
    >>> has_exact_pairs(weights, 0), has_exact_pairs(weights, 1)
    (True, True)
    >>> has_exact_pairs(np.array([100, 29], "int8"), 0)
    False
    """
    if weights.dtype != np.int8 or weights.ndim == 0:
        return False
    return bool((largest_pairs(weights.astype(np.int16), axis) <= LARGEST_PAIR).all())


def exact_axes_of(func: PrimFunc, buffer: Buffer) -> tuple[int, ...]:
    """The axes of a parameter's buffer along which pairs are exact; none for any other buffer."""
    lists = func.attrs.get(EXACT_BYTE_PAIRS)
    if lists is None:
        return ()
    for param, axes in zip(func.params, lists, strict=True):
        if func.buffer_map.get(param) is buffer:
            return tuple([int(axis) for axis in axes])
    return ()
