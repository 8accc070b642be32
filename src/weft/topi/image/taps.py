"""One axis resampled by tables of neighbours and weights.

Importers whose source fixes the positions (PyTorch's, ONNX's) compute the tables with numpy; row i
of ``indices`` and ``weights``, both (outputs, taps), says which elements output i is made of.

    indices [[0, 0], [0, 1]], weights [[.5, .5], [.25, .75]]: [4, 8] -> [4, 7]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir.expr import Extent, IntImm, PrimExpr
from weft.ir.node import expect
from weft.te.operation import reduce_axis
from weft.te.reduction import sum as te_sum
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import Point, compute_ax

Pair = Callable[[PrimExpr, PrimExpr], PrimExpr]

_WRITTEN_OUT: Final = 4
"""Up to so many neighbours are added in one expression."""


def weighted_taps(
    data: Tensor, indices: Tensor, weights: Tensor, axis: int, skip_zeros: bool = False,
    mask: Tensor | None = None, fill: float = 0.0,
) -> Tensor:  # fmt: skip
    """The sums of neighbours by weight along an axis, in the type of the data and the weights.

    ``skip_zeros``: a weight of 0 fills a row of the table, so that the infinity or NaN that it
    names does not count. ``fill`` is the value where the mask (outputs) is set.
    """

    def term(value: PrimExpr, weight: PrimExpr) -> PrimExpr:
        if not skip_zeros:
            return value * weight
        zero = op.const(0, weight.dtype)
        return op.select(op.equal(weight, zero), zero, value * weight)

    def finish(total: PrimExpr, place: PrimExpr) -> PrimExpr:
        if mask is None:
            return total
        return op.if_then_else(mask(place), op.const(fill, data.dtype), total)

    return _summed(data, (indices, weights), axis, term, finish)


def fixed_point_taps(
    data: Tensor, indices: Tensor, weights: Tensor, axis: int, bits: int
) -> Tensor:  # fmt: skip
    """uint8 by int32 weights that stand for ``weight / 2 ** bits``.

    Sums are rounded half up and limited to 0 .. 255, as Pillow-SIMD and PyTorch do for images.
    """
    half, low, high = [op.const(number, "int32") for number in (1 << (bits - 1), 0, 255)]
    shift = op.const(bits, "int32")

    def term(value: PrimExpr, weight: PrimExpr) -> PrimExpr:
        return op.cast("int32", value) * weight

    def finish(total: PrimExpr, place: PrimExpr) -> PrimExpr:
        whole = op.right_shift(total + half, shift)
        return op.cast("uint8", op.minimum(op.maximum(whole, low), high))

    return _summed(data, (indices, weights), axis, term, finish)


def _summed(
    data: Tensor, tables: tuple[Tensor, Tensor], axis: int, term: Pair, finish: Pair,
) -> Tensor:  # fmt: skip
    """``finish`` of the sum of ``term`` over the neighbours, and of the place on the axis."""
    indices, weights = tables
    shape = list(data.shape)
    shape[axis], count = indices.shape[0], int(expect(indices.shape[1], IntImm))

    def value(point: Point, tap: Extent) -> PrimExpr:
        moved = list(point)
        moved[axis] = indices(point[axis], tap)
        return term(data(*moved), weights(point[axis], tap))

    if count <= _WRITTEN_OUT:
        return compute_ax(
            shape,
            lambda *i: finish(op.add_n(*[value(i, tap) for tap in range(count)]), i[axis]),
            "T_resample", tag=tag.INJECTIVE,
        )  # fmt: skip
    taps = reduce_axis((0, count), "tap")
    total = compute_ax(
        shape, lambda *i: te_sum(value(i, taps.var), axis=[taps]), "T_resample_sum",
        tag=tag.COMM_REDUCE,
    )  # fmt: skip
    return compute_ax(
        shape, lambda *i: finish(total(*i), i[axis]), "T_resample", tag=tag.INJECTIVE
    )
