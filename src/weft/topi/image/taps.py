"""Resampling along one axis by tables of neighbours and weights.

Importers of formats that define the positions (PyTorch, ONNX) compute the tables with numpy: output
``i`` is the sum of the elements in row ``i`` of ``indices`` times row ``i`` of ``weights``; both
tables are (outputs, taps).

    indices [[0, 0], [0, 1]], weights [[.5, .5], [.25, .75]]: [4, 8] -> [4, 7]
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import Extent, IntImm, PrimExpr
from weft.te.operation import reduce_axis
from weft.te.reduction import sum as te_sum
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import Point, compute_ax

_WRITTEN_OUT: Final = 4
"""Up to this many neighbours are added in one expression."""


def weighted_taps(
    data: Tensor, indices: Tensor, weights: Tensor, axis: int, skip_zeros: bool = False
) -> Tensor:
    """Weighted sums of neighbours along an axis, in the type of the data and the weights.

    With ``skip_zeros`` neighbours with weight 0, which only fill a row of the table, are left out:
    infinity or NaN times 0 would be NaN.
    """
    axis %= data.ndim
    shape = list(data.shape)
    shape[axis], count = indices.shape[0], indices.shape[1]

    def term(point: Point, tap: Extent) -> PrimExpr:
        moved = list(point)
        moved[axis] = indices(point[axis], tap)
        value, weight = data(*moved), weights(point[axis], tap)
        if not skip_zeros:
            return value * weight
        zero = op.const(0, weight.dtype)
        return op.select(op.equal(weight, zero), zero, value * weight)

    if isinstance(count, IntImm) and 0 < count.value <= _WRITTEN_OUT:
        written = range(count.value)
        return compute_ax(
            shape,
            lambda *i: op.add_n(*[term(i, tap) for tap in written]),
            "T_resample",
            tag=tag.INJECTIVE,
        )
    taps = reduce_axis((0, count), "tap")
    return compute_ax(
        shape,
        lambda *i: te_sum(term(i, taps.var), axis=[taps]),
        "T_resample_sum",
        tag=tag.COMM_REDUCE,
    )
