"""Sampling of images: GridSample, AffineGrid; regions: RoiAlign, MaxRoiPool, NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.ir.expr import ExprLike
from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value, as_prim
from weft.te.operation import compute, reduce_axis
from weft.te.reduction import lowest
from weft.te.reduction import max as te_max
from weft.te.tensor import Tensor
from weft.tir import op as tir
from weft.topi.vision.roi_align import roi_align as topi_roi_align

METHODS = {"linear": "bilinear", "cubic": "bicubic"}
"""ONNX's mode of a grid -> Relax's, where they differ."""


@converter("GridSample", since=16)
def grid_sample(
    context: Context, x: Value, grid: Value, *, mode: str = "linear", padding_mode: str = "zeros",
    align_corners: int = 0,
) -> Expr:  # fmt: skip
    """The image at the points of a grid, whose coordinates (-1 .. 1) are its last axis."""
    rank = context.rank(x, "X")
    turned = context.emit(op.permute_dims(grid.expr, [0, rank - 1, *range(1, rank - 1)]))
    if grid.dtype != x.dtype:
        turned = context.emit(op.astype(turned, x.dtype))
    if mode in ("cubic", "bicubic") and padding_mode == "border":
        turned = context.te(_kept_inside, turned, x.expr, bool(align_corners))
    return context.emit(op.image.grid_sample(
        x.expr, turned, METHODS.get(mode, mode), "NC" + "DHW"[5 - rank :], padding_mode,
        bool(align_corners),
    ))  # fmt: skip


def _kept_inside(grid: Tensor, data: Tensor, align_corners: bool) -> Tensor:
    """Points outside of the image moved to its outermost pixels, as ONNX does before it samples."""
    kind, last = str(grid.dtype), data.ndim - 1

    def element(n: Any, row: Any, *point: Any) -> Any:
        here, edge = grid(n, row, *point), tir.const(1, kind)
        if not align_corners:
            size = data.shape[last]
            for column in range(1, last - 1):
                size = tir.select(tir.equal(row, column), data.shape[last - column], size)
            edge = edge - edge / tir.cast(kind, size)
        one = tir.const(1, kind)
        return tir.if_then_else(here > one, edge, tir.if_then_else(here < -one, -edge, here))

    return compute(grid.shape, element, "kept_inside")


@converter("AffineGrid", since=20)
def affine_grid(context: Context, theta: Value, size: Value, *, align_corners: int = 0) -> Expr:
    """The grid of an affine map for images of a size (batch, channels, extents)."""
    extents = context.dims(size, "size")[2:]
    made = context.emit(op.image.affine_grid(
        theta.expr, [as_prim(extent) for extent in extents], bool(align_corners)
    ))  # fmt: skip
    return context.emit(op.permute_dims(made, [0, *range(2, len(extents) + 2), 1]))


@converter("RoiAlign", since=10)
def roi_align_of_edges(
    context: Context, x: Value, rois: Value, batches: Value, **attributes: Any
) -> Expr:
    """Until opset 15 without the shift by half a pixel."""
    return roi_align(context, x, rois, batches, **attributes,
                     coordinate_transformation_mode="output_half_pixel")  # fmt: skip


@converter("RoiAlign", since=16)
def roi_align(
    context: Context, x: Value, rois: Value, batches: Value, *, mode: str = "avg",
    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
    spatial_scale: float = 1.0, coordinate_transformation_mode: str = "half_pixel",
) -> Expr:  # fmt: skip
    """Regions (x1, y1, x2, y2) of the images that ``batches`` names, sampled to one size."""
    if mode not in ("avg", "max"):
        context.fail(f"mode: expected avg or max, got {mode!r}")
    emit = context.emit
    first = emit(op.expand_dims(emit(op.astype(batches.expr, rois.dtype)), 1))
    whole = emit(op.concat([first, rois.expr], 1))
    size = [output_height, output_width]
    aligned = coordinate_transformation_mode == "half_pixel"
    if mode == "avg":
        return emit(op.vision.roi_align(
            x.expr, whole, size, spatial_scale, sampling_ratio or -1, aligned
        ))  # fmt: skip
    return context.te(topi_roi_align, x.expr, whole, size, spatial_scale, sampling_ratio or -1,
                      aligned, "NCHW", "max_neighbour")  # fmt: skip


@converter("MaxRoiPool")
def max_roi_pool(
    context: Context, x: Value, rois: Value, *, pooled_shape: Sequence[int],
    spatial_scale: float = 1.0,
) -> Expr:  # fmt: skip
    """The largest element of each bin of regions (batch, x1, y1, x2, y2), whose edges are rounded.

    As Girshick defines it ("Fast R-CNN", 2015): bins overlap by rounding outwards, an empty one
    gives 0.
    """

    def pool(data: Tensor, regions: Tensor) -> Tensor:
        taps = [reduce_axis((0, data.shape[axis]), name) for axis, name in ((2, "h"), (3, "w"))]
        places = [tir.cast("int64", tap.var) for tap in taps]

        def bins(roi: Any, index: Any, axis: int) -> tuple[Any, Any]:
            low, high = (
                tir.cast("int64", tir.round(regions(roi, column) * spatial_scale))
                for column in (2 - axis, 4 - axis)
            )
            length = tir.max(high - low + 1, tir.const(1, "int64"))
            count = pooled_shape[axis]
            first = tir.floordiv(index * length, count) + low
            end = tir.floordiv((index + 1) * length + count - 1, count) + low
            extent = tir.cast("int64", data.shape[2 + axis])
            zero = tir.const(0, "int64")
            return tir.min(tir.max(first, zero), extent), tir.min(tir.max(end, zero), extent)

        def largest(roi: Any, c: Any, ph: Any, pw: Any) -> Any:
            tests = []
            for axis, index in enumerate((ph, pw)):
                low, high = bins(roi, index, axis)
                tests += [places[axis] >= low, places[axis] < high]
            value = data(tir.cast("int64", regions(roi, 0)), c, *[tap.var for tap in taps])
            return te_max(tir.if_then_else(tir.all(*tests), value, lowest(data.dtype)), axis=taps)

        shape: list[ExprLike] = [regions.shape[0], data.shape[1], *pooled_shape]
        found = compute(shape, largest, "bins")

        def element(roi: Any, c: Any, ph: Any, pw: Any) -> Any:
            edges = [bins(roi, index, axis) for axis, index in enumerate((ph, pw))]
            empty = tir.any(*[high <= low for low, high in edges])
            zero = tir.const(0, str(data.dtype))
            return tir.if_then_else(empty, zero, found(roi, c, ph, pw))

        return compute(shape, element, "max_roi_pool")

    return context.te(pool, x.expr, rois.expr)


@converter("NonMaxSuppression", since=10)
def non_max_suppression(
    context: Context, boxes: Value, scores: Value, most: Value | None = None,
    iou: Value | None = None, score: Value | None = None, *, center_point_box: int = 0,
) -> Expr:  # fmt: skip
    """Rows (batch, class, box) of boxes that overlap no better one; the data decides how many."""
    emit = context.emit
    corners = boxes.expr
    if center_point_box:
        corners = _corners(context, boxes)
    defaults = (np.zeros(1, "int64"), np.zeros(1, "float32"), np.full(1, -np.inf, "float32"))
    limits = [
        context.constant(default).expr if value is None else emit(op.reshape(value.expr, [1]))
        for value, default in zip((most, iou, score), defaults, strict=True)
    ]
    made = emit(op.vision.all_class_non_max_suppression(corners, scores.expr, *limits))
    rows, count = (emit(TupleGetItem(made, index)) for index in range(2))
    kept = context.dims(context.value(count), "selected")[0]
    return emit(op.strided_slice(rows, [0], [0], [kept], assume_inbound=True))


def _corners(context: Context, boxes: Value) -> Expr:
    """(x centre, y centre, width, height) as (y1, x1, y2, x2)."""
    emit = context.emit
    x, y, width, height = [
        emit(op.strided_slice(boxes.expr, [2], [column], [column + 1])) for column in range(4)
    ]
    two = context.constant(2, boxes.dtype).expr
    half_width, half_height = [emit(op.divide(extent, two)) for extent in (width, height)]
    low = [emit(op.subtract(y, half_height)), emit(op.subtract(x, half_width))]
    high = [emit(op.add(y, half_height)), emit(op.add(x, half_width))]
    return emit(op.concat([*low, *high], 2))
