"""Conversion of tensors between layouts, blocked ones included."""

from __future__ import annotations

import numpy as np

from weft.relax.op.layout import parse_layout


def to_canonical(x: np.ndarray, name: str, order: str) -> np.ndarray:
    """The tensor with its axes in ``order``, the parts of split axes joined."""
    axes = parse_layout(name, order, "layout").axes
    parts = {
        letter: [place for place, (other, _) in enumerate(axes) if other == letter]
        for letter in order
    }
    # The upper-case axis is the outer part, at whatever position it is.
    for places in parts.values():
        places.sort(key=lambda place: axes[place][1] != 0)
    moved = x.transpose([place for letter in order for place in parts[letter]])
    shape = []
    for letter in order:
        extent = 1
        for place in parts[letter]:
            extent *= x.shape[place]
        shape.append(extent)
    return moved.reshape(shape)


def from_canonical(x: np.ndarray, name: str, order: str) -> np.ndarray:
    """The inverse of ``to_canonical``."""
    axes = parse_layout(name, order, "layout").axes
    shape: list[int] = []
    place_of: dict[tuple[str, int], int] = {}
    for letter, extent in zip(order, x.shape, strict=True):
        factors = [factor for other, factor in axes if other == letter and factor]
        for factor in factors:
            extent //= factor
        for factor, size in zip([0, *factors], [extent, *factors], strict=True):
            place_of[letter, factor] = len(shape)
            shape.append(size)
    return x.reshape(shape).transpose([place_of[axis] for axis in axes])
