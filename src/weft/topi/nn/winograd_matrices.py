"""The matrices of Winograd's algorithms for windows of three: exact, from interpolation points.

``F(m, 3)`` gives m results of a filter of three taps from m + 2 numbers with m + 2 products instead
of 3 m: ``y = A ((G g) * (B d))`` (Winograd, "Arithmetic Complexity of Computations", 1980; Lavin
and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016). The matrices are those of
Toom and Cook: values at points, a product of values, interpolation; one point is infinity.

The points are zero and pairs of opposite numbers, so that rows of a pair share their even and odd
parts. Lavin and Gray use 1 and 2 for F(4, 3). We use 3/4 and 3/2: the entries are exact in binary,
too, and the error is smaller, as no entry in the matrices of data and results exceeds 3.4, while
theirs reach 8. (On points: Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd
Convolution for Deep Neural Networks", 2020.)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

Matrix = tuple[tuple[float, ...], ...]

WINDOW: Final = 3
"""The size of the window on each axis."""
_PAIRS: Final[dict[int, tuple[Fraction, ...]]] = {
    2: (Fraction(1),),
    4: (Fraction(3, 4), Fraction(3, 2)),
}
"""Number of results along one axis -> p of each pair of points p and -p."""
TILES: Final = tuple(_PAIRS)
"""The numbers m of results along one axis for which there is an algorithm."""


@dataclass(frozen=True)
class Matrices:
    """``y = results @ ((weights @ g) * (data @ d))`` for taps g (3), data d (m + 2), y (m)."""

    results: Matrix
    weights: Matrix
    data: Matrix


@functools.cache
def matrices(tile: int) -> Matrices:
    """The matrices of F(tile, 3); KeyError for a tile that is not in ``TILES``.

    >>> matrices(2).data
    ((-1.0, 0.0, 1.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, -1.0, 1.0, 0.0), (0.0, -1.0, 0.0, 1.0))
    """
    points = [Fraction(0), *[sign * p for p in _PAIRS[tile] for sign in (1, -1)]]
    others = [[b for b in points if b != a] for a in points]
    scales = [_product([a - b for b in rest]) for a, rest in zip(points, others, strict=True)]
    results = [[a**power for a in points] + [Fraction(power == tile - 1)] for power in range(tile)]
    weights = [
        [a**power / scale for power in range(WINDOW)]
        for a, scale in zip(points, scales, strict=True)
    ]
    weights.append([Fraction(power == WINDOW - 1) for power in range(WINDOW)])
    data = [[*_polynomial(rest), Fraction(0)] for rest in others] + [_polynomial(points)]
    return Matrices(_floats(results), _floats(weights), _floats(data))


def _product(factors: Sequence[Fraction]) -> Fraction:
    return functools.reduce(lambda a, b: a * b, factors, Fraction(1))


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients, lowest power first, of the product of ``x - root``."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        coefficients = [*coefficients, Fraction(0)]
        coefficients = [high - root * low for high, low in zip(shifted, coefficients, strict=True)]
    return coefficients


def _floats(rows: Sequence[Sequence[Fraction]]) -> Matrix:
    return tuple([tuple([float(entry) for entry in row]) for row in rows])
