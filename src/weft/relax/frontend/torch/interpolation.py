"""Where PyTorch's interpolations read, and with what weights: tables for one axis.

``Sizes`` is (extent, count, factor): the axis before and after, and the factor that the user gave
(None where the sizes tell it). Kinds are nearest, exact (nearest of centres), linear, cubic, and
linear_aa and cubic_aa (antialias).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

Sizes = tuple[int, int, float | None]
Row = list[tuple[int, float]]

CUBIC: Final = -0.75
"""The coefficient of torch's cubic kernel."""
CUBIC_ANTIALIAS: Final = -0.5
"""That of its cubic kernel with antialias, as PIL's."""
MOST_BITS: Final = 22
"""The most bits of the fraction of a weight in fixed point."""
SMALL_IMAGE: Final = 128
"""The largest sum of height and width of images for which torch has a kernel of its own."""


def nearest_places(sizes: Sizes, kind: str, dtype: str, image: int | None = None) -> np.ndarray:
    """For each new element the index of the old one that it copies.

    torch computes positions in float64 and rounds them to float32 at the end. For images ``image``
    is the new height plus the new width, as torch has a kernel for small ones, up to 128, in which
    positions are products in float32, whatever the type of the image. (It takes this kernel for
    larger ones, too, where four or more channels lie last in memory, which is not known here.) For
    images the factor is ignored along an axis that keeps its extent or doubles it.

    >>> nearest_places((8, 376, None), "nearest", "float32")[46:49]  # 47 * (8 / 376) < 1
    array([0, 0, 1])
    """
    extent, count, factor = sizes
    places = np.arange(count)
    if kind == "nearest" and image is not None and count in (extent, 2 * extent):
        return places // (count // extent) if extent else places
    is_small = image is not None and image <= SMALL_IMAGE
    is_wide = dtype == "float64" and not is_small
    real: type[np.floating] = np.float64 if is_wide else np.float32
    scale = real(1 / factor) if factor else real(extent) / real(max(count, 1))
    middle = real(0.5 if kind == "exact" else 0.0)
    if is_small:
        positions = (places.astype(real) + middle) * scale
    else:
        exact = (places + float(middle)) * float(scale) - float(middle)  # one operation in torch
        positions = (exact.astype(real) + middle).astype("float32")
    return np.asarray(np.minimum(np.floor(positions).astype("int64"), extent - 1))


def weighted_rows(sizes: Sizes, kind: str, corners: bool) -> list[Row]:
    """For each new element the old ones that it is a sum of: ascending indices and weights."""
    extent, count, factor = sizes
    scale = 1 / factor if factor else extent / count
    if corners:
        scale = (extent - 1) / (count - 1) if count > 1 else 0.0
    rows = []
    for row in range(count):
        weights: dict[int, float] = {}
        for place, weight in _taps(row, (scale, extent), kind, corners):
            inside = min(max(place, 0), extent - 1)
            weights[inside] = weights.get(inside, 0.0) + weight
        rows.append(sorted(weights.items()))
    return rows


def tables(rows: list[Row]) -> tuple[np.ndarray, np.ndarray]:
    """(indices, weights), both (outputs, taps); rows that are shorter end with weights of 0."""
    taps = max((len(row) for row in rows), default=1)
    indices = np.zeros((len(rows), taps), "int64")
    weights = np.zeros((len(rows), taps))
    for number, row in enumerate(rows):
        for tap in range(taps):
            place, weight = row[tap] if tap < len(row) else (row[-1][0], 0.0)
            indices[number, tap], weights[number, tap] = place, weight
    return indices, weights


def fixed_point(weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Weights as int32 times ``2 ** bits``, the most bits whose largest weight an int16 holds.

    >>> fixed_point(np.array([[0.25, 0.75]]))
    (array([[ 8192, 24576]], dtype=int32), 15)
    """
    largest, bits = float(weights.max(initial=0.0)), 0
    while bits < MOST_BITS and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    scaled = weights * (1 << bits)
    return np.trunc(scaled + np.copysign(0.5, scaled)).astype("int32"), bits


def _taps(row: int, axis: tuple[float, int], kind: str, corners: bool) -> Row:
    scale, extent = axis
    if kind.endswith("_aa"):
        return _wide_taps(row, scale, extent, _linear if kind == "linear_aa" else _cubic_half)
    centre = row * scale if corners else (row + 0.5) * scale - 0.5
    if kind == "linear":
        centre = max(centre, 0.0)
    base = math.floor(centre)
    reach = range(2) if kind == "linear" else range(-1, 3)
    kernel = _linear if kind == "linear" else _cubic
    return [(base + tap, kernel(centre - base - tap)) for tap in reach]


def _wide_taps(row: int, scale: float, extent: int, kernel: Callable[[float], float]) -> Row:
    """All elements under a kernel stretched by the scale, as PIL resamples."""
    radius = (1 if kernel is _linear else 2) * max(scale, 1.0)
    centre = scale * (row + 0.5)
    first = max(int(centre - radius + 0.5), 0)
    end = min(int(centre + radius + 0.5), extent)
    weights = [kernel((place - centre + 0.5) / max(scale, 1.0)) for place in range(first, end)]
    total = sum(weights)
    return [(first + i, weight / total) for i, weight in enumerate(weights)]


def _linear(distance: float) -> float:
    return max(0.0, 1.0 - abs(distance))


def _keys(distance: float, alpha: float) -> float:
    """Keys' cubic convolution kernel (1981)."""
    x = abs(distance)
    if x <= 1:
        return (alpha + 2) * x**3 - (alpha + 3) * x**2 + 1
    return alpha * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def _cubic(distance: float) -> float:
    return _keys(distance, CUBIC)


def _cubic_half(distance: float) -> float:
    return _keys(distance, CUBIC_ANTIALIAS)
