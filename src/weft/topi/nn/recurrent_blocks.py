"""The weights of a recurrent layer's state in blocks of gates, whose sums registers hold."""

from __future__ import annotations

from typing import Final

from weft.ir.expr import Extent
from weft.te.primfunc import LAYOUT_REWRITE_PREPROC
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import compute_ax, const_int, is_const
from weft.topi.simplify import simplified

_LANES: Final = (16, 8)
"""The lanes of vectors, which divide the gates of a block: if possible those of the longest."""
_WIDEST: Final = 128
"""The gates of a block whose sums registers hold."""


def in_blocks(weight: Tensor, width: Extent) -> Tensor:
    """The weights of the state as (blocks, hidden, gates of a block).

    By its annotation, weights that are known are laid out once, when the model is built.
    """
    return compute_ax(
        [simplified(op.floordiv(weight.shape[0], width)), weight.shape[1], width],
        lambda block, k, g: weight(block * width + g, k),
        "recurrent_blocks",
        tag=tag.INJECTIVE,
        attrs={LAYOUT_REWRITE_PREPROC: True},
    )


def block_width(unit: Extent) -> Extent:
    """The gates of a block: up to 128 of ``unit`` gates in whole vectors; all where there are none.

    >>> block_width(1200), block_width(512), block_width(600), block_width(30)
    (80, 128, 120, 30)
    """
    if not is_const(unit):
        return unit
    size = const_int(unit, "gates")
    for lanes in _LANES:
        widths = [width for width in range(lanes, _WIDEST + 1, lanes) if size % width == 0]
        if widths:
            return max(widths)
    return size


def part_width(width: Extent, rows: int) -> Extent:
    """The gates of a block whose sums registers hold for several rows; it divides the block.

    >>> part_width(128, 1), part_width(128, 4), part_width(80, 4), part_width(120, 4)
    (128, 32, 16, 24)
    """
    if rows == 1 or not is_const(width):
        return width
    size = const_int(width, "gates")
    for lanes in _LANES:
        parts = [part for part in range(lanes, _WIDEST // rows + 1, lanes) if size % part == 0]
        if parts:
            return max(parts)
    return width
