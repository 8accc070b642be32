"""Index maps that take axes apart into digits and put these into another order.

``lambda i, j: [j // 16, i, j % 16]`` makes blocks of 16 columns. Numpy moves the elements of an
array so by ``reshape`` and ``transpose``, in a small part of the time that a table of all places
takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from weft.ir.expr import IntImm, PrimExpr
from weft.support.arrays import in_order
from weft.tir.expr import FloorDiv, FloorMod, Var


class Digit(NamedTuple):
    """``axis // unit % extent``."""

    axis: int
    unit: int
    extent: int


def digits_of(
    indices: Sequence[PrimExpr], axes: Sequence[Var], shape: Sequence[int]
) -> list[Digit] | None:
    """The digit that each index is, if they are all digits of all axes, each once; else None."""
    digits = [digit for index in indices if (digit := digit_of(index, axes, shape)) is not None]
    if len(digits) != len(indices):
        return None
    for axis, extent in enumerate(shape):
        unit = 1
        for digit in sorted([digit for digit in digits if digit.axis == axis]):
            if digit.unit != unit:
                return None
            unit *= digit.extent
        if unit != extent:
            return None
    return digits


def digit_of(index: PrimExpr, axes: Sequence[Var], shape: Sequence[int]) -> Digit | None:
    """The digit that an index is; None if it is none, or one that an axis has only in part."""
    if isinstance(index, Var):
        positions = [position for position, axis in enumerate(axes) if axis is index]
        return Digit(positions[0], 1, shape[positions[0]]) if positions else None
    if not isinstance(index, (FloorDiv, FloorMod)) or not isinstance(index.b, IntImm):
        return None
    inner, by = digit_of(index.a, axes, shape), index.b.value
    if inner is None or by < 1 or inner.extent % by:
        return None
    if isinstance(index, FloorMod):
        return inner._replace(extent=by)
    return Digit(inner.axis, inner.unit * by, inner.extent // by)


def reordered(array: np.ndarray, digits: Sequence[Digit], rank: int) -> np.ndarray:
    """A new array with an axis for each digit of the first ``rank`` axes; the others stay last."""
    order = sorted(
        range(len(digits)),
        key=lambda at: (digits[at].axis, -digits[at].unit, -digits[at].extent),
    )
    apart = array.reshape([*[digits[at].extent for at in order], *array.shape[rank:]])
    last = range(len(digits), apart.ndim)
    places = [*[order.index(at) for at in range(len(digits))], *last]
    return in_order(apart.transpose(places))
