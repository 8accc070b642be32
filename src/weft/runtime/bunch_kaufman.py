"""Factors of symmetric matrices that need not be definite: x = P L D L^T P^T.

Bunch and Kaufman, "Some stable methods for calculating inertia and solving symmetric linear
systems" (1977): the pivots are single elements, or blocks of 2x2 where the diagonal is too small to
divide by. D and L are kept in one triangle, the swaps of rows as LAPACK writes them: a number from
1, or for both rows of a block the same number, negated.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

_ALPHA: Final = (1 + math.sqrt(17)) / 8
"""How large an element on the diagonal must be beside its column: this bounds growth best."""


def factored(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """(D and L in one triangle, swaps, the place of the first 0 in D from 1, else 0) of a matrix.

    The lower triangle is read.
    """
    a, count = np.tril(x), len(x)
    pivots, first_zero, start = np.zeros(count, np.int32), 0, 0
    while start < count:
        pivot, width = _choice(a, start)
        last = start + width - 1
        _swap(a, start, last, pivot)
        if width == 2:
            _eliminate_block(a, start)
        elif a[start, start] != 0:
            _eliminate(a, start)
        elif not first_zero:
            first_zero = start + 1
        pivots[start : start + width] = pivot + 1 if width == 1 else -(pivot + 1)
        start += width
    return a, pivots, first_zero


def _choice(a: np.ndarray, start: int) -> tuple[int, int]:
    """The row to swap with the last one of the block at ``start``, and the rows of the block."""
    below = np.abs(a[start + 1 :, start])
    own = abs(a[start, start])
    if not len(below) or not below.max() > 0 or own >= _ALPHA * below.max():
        return start, 1
    other, column = start + 1 + int(below.argmax()), below.max()
    rest = np.abs(np.concatenate([a[other, start:other], a[other + 1 :, other]]))
    if own * rest.max() >= _ALPHA * column * column:
        return start, 1
    return other, 1 if abs(a[other, other]) >= _ALPHA * rest.max() else 2


def _swap(a: np.ndarray, start: int, row: int, other: int) -> None:
    """Exchange two rows and columns, ``row`` the upper one, of what is left of the triangle."""
    if row == other:
        return
    below, between = slice(other + 1, None), slice(row + 1, other)
    a[below, [row, other]] = a[below, [other, row]]
    a[between, row], a[other, between] = a[other, between].copy(), a[between, row].copy()
    a[[row, other], [row, other]] = a[[other, row], [other, row]]
    if row > start:
        a[[row, other], start] = a[[other, row], start]


def _eliminate(a: np.ndarray, at: int) -> None:
    """Divide by one element of the diagonal."""
    column = a[at + 1 :, at].copy()
    a[at + 1 :, at] /= a[at, at]
    a[at + 1 :, at + 1 :] -= np.tril(np.outer(a[at + 1 :, at], column))


def _eliminate_block(a: np.ndarray, at: int) -> None:
    """Divide by a block of 2x2 on the diagonal."""
    below, both = slice(at + 2, None), slice(at, at + 2)
    columns = a[below, both].copy()
    a[below, both] = _divided(a, at, columns.T).T
    a[below, below] -= np.tril(a[below, both] @ columns.T)


def _divided(a: np.ndarray, at: int, rows: np.ndarray) -> np.ndarray:
    """The inverse of the block of 2x2 at ``at`` times two rows.

    All is scaled by the element beside the diagonal, the largest one of the block.
    """
    side = a[at + 1, at]
    first, second = a[at, at] / side, a[at + 1, at + 1] / side
    scale = (first * second - 1) * side
    upper, lower = rows
    return np.stack([(second * upper - lower) / scale, (first * lower - upper) / scale])


def solved(a: np.ndarray, pivots: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution for the right sides ``b``, by the factors of one matrix."""
    x, blocks = b.copy(), _blocks(pivots)
    for start, stop, other in blocks:
        x[[stop - 1, other]] = x[[other, stop - 1]]
        x[stop:] -= a[stop:, start:stop] @ x[start:stop]
        if stop - start == 2:
            x[start:stop] = _divided(a, start, x[start:stop])
        else:
            x[start] /= a[start, start]
    for start, stop, other in reversed(blocks):
        x[start:stop] -= a[stop:, start:stop].T @ x[stop:]
        x[[stop - 1, other]] = x[[other, stop - 1]]
    return x


def _blocks(pivots: np.ndarray) -> list[tuple[int, int, int]]:
    """(first row, row after the last, row that the last was swapped with) of each block of D."""
    blocks, start = [], 0
    while start < len(pivots):
        stop = start + (1 if pivots[start] > 0 else 2)
        blocks.append((start, stop, abs(int(pivots[start])) - 1))
        start = stop
    return blocks
