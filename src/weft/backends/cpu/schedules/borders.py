"""Windows that reach over the border of an image: a sum leaves out the terms of the padding.

A window of 3 x 3 pixels reads 441 pixels on its way over an image of 7 x 7, and 80 of these are the
zeros around the image. If a tile takes whole rows of the image, or equal parts of them, it is known
for each step of the window which of the tile's pixels lie outside. The sum then leaves these out:
it is shorter, and reads the image itself, which nobody needs to copy into a padded one (Georganas
et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures", 2018).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from weft.arith.deep_equal import expr_deep_equal
from weft.arith.linear import detect_linear_equation
from weft.dlight.nest import Access, Nest
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.functor import collect
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Add, Call, Mul, Var, is_call

WORTH: Final = 0.97
"""Terms of padding are left out if at most this share of all terms is inside. To leave them out
costs code: each step of a window gets its own, for the borders and for what lies between."""


def is_padding(nest: Nest) -> bool:
    """Whether a block copies another tensor and stores a constant around it."""
    if not nest.is_spatial or len(nest.stores) != 1:
        return False
    value = nest.stores[0].value
    is_choice = is_call(value, "if_then_else")
    return (
        is_choice
        and isinstance(value, Call)
        and isinstance(value.args[1], BufferLoad)
        and not collect(value.args[2], (BufferLoad, Var))
    )


def pads_with_zero(nest: Nest) -> bool:
    """Whether the constant is the floating-point zero, whose products may be left out of a sum."""
    value = nest.stores[0].value
    outside = value.args[2] if isinstance(value, Call) else None
    return isinstance(outside, FloatImm) and outside.value == 0


def is_factor(pad: Nest, block: Nest) -> bool:
    """Whether ``block`` adds up products in which an element of the padded tensor is a factor."""
    value = block.stores[0].value if block.stores else None
    if not isinstance(value, Add) or not isinstance(value.b, Mul):
        return False
    padded = pad.stores[0].buffer
    return any(
        isinstance(factor, BufferLoad) and factor.buffer is padded
        for factor in (value.b.a, value.b.b)
    )


def share_inside(pad: Nest, block: Nest) -> float:
    """Of the elements that ``block`` reads of the padded tensor, the share that is not padding.

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
        if before == 0 and expr_deep_equal(size, padded.shape[at]):
            continue  # nothing is added along this axis, whatever its size
        if places is None or before is None or not isinstance(size, IntImm):
            return 1.0
        inside = sum(1 for place in places if 0 <= place - before < size.value)
        share *= inside / len(places)
    return share


def _before(pad: Nest, at: int) -> int | None:
    """How many elements of padding lie before the image along axis ``at``; None if not known."""
    axes = pad.result_axes()
    load, store = pad.loads[0], pad.stores[0]
    if axes is None or len(load.indices) != len(store.indices):
        return None
    index, place = load.indices[at], pad.simplified(store.indices[at])
    if isinstance(place, IntImm) and isinstance(index, IntImm):
        return place.value - index.value
    if not isinstance(place, Var):
        return None
    coefficients = detect_linear_equation(index, [place])
    constants = [value.value for value in coefficients if isinstance(value, IntImm)]
    if not constants or len(constants) < len(coefficients):
        return None
    return -constants[1] if constants[0] == 1 else None


def _values(nest: Nest, index: PrimExpr) -> Sequence[int] | None:
    """All values of an index over the ranges of its axes; None if it is not linear in them."""
    axes = sorted(set(collect(index, Var)), key=lambda axis: axis.name)
    sizes = [nest.extent(axis) for axis in axes]
    coefficients = detect_linear_equation(index, axes)
    constants = [value.value for value in coefficients if isinstance(value, IntImm)]
    if not constants or len(constants) < len(coefficients):
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
    """The ``axes`` of a window that move along one of the image's axes ``rows``, and so over its
    border: those that stand in one index with it, as ``x[row + axis]``.
    """
    places = [set(collect(index, Var)) for load in loads for index in load.indices]
    return [axis for axis in axes if any(axis in place and place & set(rows) for place in places)]
