"""One axis resampled by tables of neighbours and weights.

Importers whose source fixes the positions (PyTorch's, ONNX's) compute the tables with numpy: row i
of ``indices`` and ``weights``, both (outputs, taps), says which elements output i is made of.

    indices [[0, 0], [0, 1]], weights [[.5, .5], [.25, .75]]: [4, 8] -> [4, 7]
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import Extent, IntImm, PrimExpr
from weft.ir.node import expect
from weft.te.operation import reduce_axis
from weft.te.reduction import sum as te_sum
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import Point, compute_ax

_WRITTEN_OUT: Final = 4
"""Up to so many neighbours are added in one expression."""


def weighted_taps(
    data: Tensor, indices: Tensor, weights: Tensor, axis: int, skip_zeros: bool = False
) -> Tensor:
    """The sums of neighbours by weight along an axis, in the type of the data and the weights.

    ``skip_zeros``: a weight of 0 fills a row of the table, so that the infinity or NaN that it
    names does not count.
    """
    axis %= data.ndim
    shape = list(data.shape)
    shape[axis], count = indices.shape[0], int(expect(indices.shape[1], IntImm))

    def term(point: Point, tap: Extent) -> PrimExpr:
        moved = list(point)
        moved[axis] = indices(point[axis], tap)
        value, weight = data(*moved), weights(point[axis], tap)
        if not skip_zeros:
            return value * weight
        zero = op.const(0, weight.dtype)
        return op.select(op.equal(weight, zero), zero, value * weight)

    if 0 < count <= _WRITTEN_OUT:
        return compute_ax(
            shape, lambda *i: op.add_n(*[term(i, tap) for tap in range(count)]), "T_resample",
            tag=tag.INJECTIVE,
        )  # fmt: skip
    taps = reduce_axis((0, count), "tap")
    return compute_ax(
        shape, lambda *i: te_sum(term(i, taps.var), axis=[taps]), "T_resample_sum",
        tag=tag.COMM_REDUCE,
    )  # fmt: skip
