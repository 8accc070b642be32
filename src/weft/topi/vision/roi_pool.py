"""RoI pooling (Girshick, "Fast R-CNN", 2015): regions of interest, with rounded edges."""

from __future__ import annotations

from weft.ir.expr import Extent, PrimExpr
from weft.te import reduction as te_reduction
from weft.te.operation import reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi.extents import Extents, compute_ax
from weft.topi.nn.convolution import per_axis


def roi_pool(
    data: Tensor, rois: Tensor, pooled_size: Extents, spatial_scale: float = 1.0
) -> Tensor:
    """The largest element of each bin of regions (batch index, x1, y1, x2, y2).

    Edges, times ``spatial_scale``, are rounded to pixels, half to even; both edges belong to the
    region. Bins overlap, since they are rounded outwards; a bin without pixels gives 0.
    """
    size = per_axis(pooled_size, 2, "roi_pool: pooled_size")
    shape: list[Extent] = [rois.shape[0], data.shape[1], *size]
    rows, columns = [
        reduce_axis((0, data.shape[axis]), name) for axis, name in ((2, "h"), (3, "w"))
    ]

    def limits(roi: PrimExpr, index: PrimExpr, axis: int) -> tuple[PrimExpr, PrimExpr]:
        """The first pixel of a bin along an axis, and the one after its last."""
        low, high = [
            op.cast("int64", op.round(rois(roi, column) * op.const(spatial_scale, rois.dtype)))
            for column in (2 - axis, 4 - axis)
        ]
        length = op.maximum(high - low + 1, op.const(1, "int64"))
        count, zero = size[axis], op.const(0, "int64")
        extent = op.cast("int64", data.shape[2 + axis])
        first = op.floordiv(index * length, count) + low
        end = op.floordiv((index + 1) * length + count - 1, count) + low
        edges = [op.minimum(op.maximum(edge, zero), extent) for edge in (first, end)]
        return edges[0], edges[1]

    def largest(roi: PrimExpr, c: PrimExpr, ph: PrimExpr, pw: PrimExpr) -> PrimExpr:
        tests = []
        for axis, (index, tap) in enumerate(((ph, rows), (pw, columns))):
            first, end = limits(roi, index, axis)
            place = op.cast("int64", tap.var)
            tests += [op.less_equal(first, place), op.less(place, end)]
        value = data(op.cast("int64", rois(roi, 0)), c, rows.var, columns.var)
        lowest = te_reduction.lowest(data.dtype)
        pixel = op.if_then_else(op.all(*tests), value, lowest)
        return te_reduction.max(pixel, axis=[rows, columns])

    bins = compute_ax(shape, largest, "roi_bins")

    def element(roi: PrimExpr, c: PrimExpr, ph: PrimExpr, pw: PrimExpr) -> PrimExpr:
        edges = [limits(roi, index, axis) for axis, index in enumerate((ph, pw))]
        empty = op.any(*[op.less_equal(end, first) for first, end in edges])
        return op.if_then_else(empty, op.const(0, data.dtype), bins(roi, c, ph, pw))

    return compute_ax(shape, element, "T_roi_pool")
