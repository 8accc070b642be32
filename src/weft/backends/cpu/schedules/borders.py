"""Windows that reach over the border of an image: terms of padding are left out of a sum.

A window of 3 x 3 pixels on an image of 7 x 7 meets 441 pixels, 80 of which are zeros around it. If
a tile takes whole rows of the image, or equal parts of them, it is known which of its pixels a step
of the window finds outside; a sum of those that are inside is shorter and reads the image where it
lies, so that nobody copies it into a padded one (Georganas et al., "Anatomy of High-Performance
Deep Learning Convolutions on SIMD Architectures", 2018).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from weft.arith.linear import detect_linear_equation
from weft.dlight.nest import Access, Nest
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.functor import collect
from weft.tir.expr import Add, BufferLoad, Call, Mul, Var

WORTH: Final = 0.97
"""The share of the terms at most that is inside where the others are left out: the steps of a
window then are code of their own, at the borders and between them."""


def is_padding(nest: Nest) -> bool:
    """Whether a block holds an element of another tensor, or a constant outside of it."""
    if not nest.is_spatial or len(nest.stores) != 1:
        return False
    value = nest.stores[0].value
    is_choice = isinstance(value, Call) and getattr(value.op, "name", "") == "tir.if_then_else"
    return (
        is_choice and isinstance(value, Call) and isinstance(value.args[1], BufferLoad)
        and not collect(value.args[2], (BufferLoad, Var))
    )  # fmt: skip


def pads_with_zero(nest: Nest) -> bool:
    """Whether a padding's constant is a zero that a product of floats may be left out for."""
    value = nest.stores[0].value
    outside = value.args[2] if isinstance(value, Call) else None
    return isinstance(outside, FloatImm) and outside.value == 0


def is_factor(pad: Nest, block: Nest) -> bool:
    """Whether a sum adds products with an element of a padding."""
    value = block.stores[0].value if block.stores else None
    if not isinstance(value, Add) or not isinstance(value.b, Mul):
        return False
    padded = pad.stores[0].buffer
    return any(
        isinstance(factor, BufferLoad) and factor.buffer is padded
        for factor in (value.b.a, value.b.b)
    )


def share_inside(pad: Nest, block: Nest) -> float:
    """The share of what ``block`` reads of a padding that is elements of the image.

    1.0 where an index is not known to be a sum of axes.
    """
    padded = pad.stores[0].buffer
    reads = [load for load in block.loads if load.buffer is padded]
    if len(reads) != 1 or len(pad.loads) != 1:
        return 1.0
    share = 1.0
    for at, index in enumerate(reads[0].indices):
        places, before = _values(block, index), _before(pad, at)
        size = pad.loads[0].buffer.shape[at]
        if places is None or before is None or not isinstance(size, IntImm):
            return 1.0
        inside = sum(1 for place in places if 0 <= place - before < size.value)
        share *= inside / len(places)
    return share


def _before(pad: Nest, at: int) -> int | None:
    """The rows of an axis of a padding that lie before the image's first."""
    axes = pad.result_axes()
    load, store = pad.loads[0], pad.stores[0]
    if axes is None or len(load.indices) != len(store.indices):
        return None
    index, place = load.indices[at], pad.simplified(store.indices[at])
    if isinstance(place, IntImm) and isinstance(index, IntImm):
        return place.value - index.value
    if not isinstance(place, Var):
        return None
    found = detect_linear_equation(index, [place])
    constants = [value.value for value in found if isinstance(value, IntImm)]
    if not constants or len(constants) < len(found):
        return None
    return -constants[1] if constants[0] == 1 else None


def _values(nest: Nest, index: PrimExpr) -> Sequence[int] | None:
    """What an index is over the ranges of its axes; None if it is not linear in them."""
    axes = sorted(set(collect(index, Var)), key=lambda axis: axis.name)
    sizes = [nest.extent(axis) for axis in axes]
    found = detect_linear_equation(index, axes)
    constants = [value.value for value in found if isinstance(value, IntImm)]
    if not constants or len(constants) < len(found):
        return None
    *steps, start = constants
    ranges = [range(size) for size in sizes if size is not None]
    if len(ranges) != len(sizes):
        return None
    return [
        start + sum(step * at for step, at in zip(steps, place, strict=True))
        for place in itertools.product(*ranges)
    ]


def crossing(loads: Sequence[Access], axes: Sequence[Var], rows: Sequence[Var]) -> list[Var]:
    """Which ``axes`` of a window walk along one of ``rows``, and so over its ends."""
    places = [set(collect(index, Var)) for load in loads for index in load.indices]
    return [
        axis for axis in axes if any(axis in place and place & set(rows) for place in places)
    ]
