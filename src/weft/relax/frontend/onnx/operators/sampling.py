"""Sampling of images: GridSample, AffineGrid; regions: RoiAlign, MaxRoiPool, NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value, as_prim

METHODS = {"linear": "bilinear", "cubic": "bicubic"}
"""ONNX's mode of a grid -> Relax's, where they differ."""


@converter("GridSample", since=16)
def grid_sample(
    context: Context,
    x: Value,
    grid: Value,
    *,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: int = 0,
) -> Expr:
    """The image at the points of a grid, whose coordinates (-1 .. 1) are its last axis."""
    rank = context.rank(x, "X")
    turned = context.emit(op.permute_dims(grid.expr, [0, rank - 1, *range(1, rank - 1)]))
    if grid.dtype != x.dtype:
        turned = context.emit(op.astype(turned, x.dtype))
    if mode in ("cubic", "bicubic") and padding_mode == "border":
        turned = _kept_inside(context, turned, x, bool(align_corners))
    return context.emit(
        op.image.grid_sample(
            x.expr,
            turned,
            METHODS.get(mode, mode),
            "NC" + "DHW"[5 - rank :],
            padding_mode,
            bool(align_corners),
        )
    )


def _kept_inside(context: Context, grid: Expr, data: Value, align_corners: bool) -> Expr:
    """Points outside of the image moved to its outermost pixels, as ONNX does before it samples."""
    emit, kind = context.emit, data.dtype
    edge = unit = context.constant(1, kind).expr
    if not align_corners:
        space = context.shape(data, "X")[2:]
        sizes = emit(op.astype(context.shape_value(space[::-1]).expr, kind))
        edges = emit(unit - emit(op.divide(unit, sizes)))
        edge = emit(op.reshape(edges, [len(space), *[1] * len(space)]))
    kept = emit(op.where(emit(grid < -1.0), emit(op.negative(edge)), grid))
    return emit(op.where(emit(grid > 1.0), edge, kept))


@converter("AffineGrid", since=20)
def affine_grid(context: Context, theta: Value, size: Value, *, align_corners: int = 0) -> Expr:
    """The grid of an affine map for images of a size (batch, channels, extents)."""
    extents = context.sizes(size, "size")[2:]
    points = context.emit(
        op.image.affine_grid(
            theta.expr, [as_prim(extent) for extent in extents], bool(align_corners)
        )
    )
    return context.emit(op.permute_dims(points, [0, *range(2, len(extents) + 2), 1]))


class RoiAttributes(TypedDict, total=False):
    """The attributes of RoiAlign that all opsets have."""

    mode: str
    output_height: int
    output_width: int
    sampling_ratio: int
    spatial_scale: float


@converter("RoiAlign", since=10)
def roi_align_of_edges(
    context: Context, x: Value, rois: Value, batches: Value, **attributes: Unpack[RoiAttributes]
) -> Expr:
    """Until opset 15 without the shift by half a pixel."""
    return roi_align(
        context, x, rois, batches, **attributes, coordinate_transformation_mode="output_half_pixel"
    )


@converter("RoiAlign", since=16)
def roi_align(
    context: Context,
    x: Value,
    rois: Value,
    batches: Value,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    coordinate_transformation_mode: str = "half_pixel",
) -> Expr:
    """Regions (x1, y1, x2, y2) of the images that ``batches`` names, sampled to one size."""
    if mode not in ("avg", "max"):
        context.fail(f"mode: expected avg or max, got {mode!r}")
    emit = context.emit
    first = emit(op.expand_dims(emit(op.astype(batches.expr, rois.dtype)), 1))
    whole = emit(op.concat([first, rois.expr], 1))
    size = [output_height, output_width]
    aligned = coordinate_transformation_mode == "half_pixel"
    return emit(
        op.vision.roi_align(
            x.expr,
            whole,
            size,
            spatial_scale,
            sampling_ratio or -1,
            aligned,
            mode="avg" if mode == "avg" else "max_neighbour",
        )
    )


@converter("MaxRoiPool")
def max_roi_pool(
    context: Context,
    x: Value,
    rois: Value,
    *,
    pooled_shape: Sequence[int],
    spatial_scale: float = 1.0,
) -> Expr:
    """The largest element of each bin of regions (batch, x1, y1, x2, y2) with rounded edges."""
    return context.emit(op.vision.roi_pool(x.expr, rois.expr, pooled_shape, spatial_scale))


@converter("NonMaxSuppression", since=10)
def non_max_suppression(
    context: Context,
    boxes: Value,
    scores: Value,
    most: Value | None = None,
    iou: Value | None = None,
    score: Value | None = None,
    *,
    center_point_box: int = 0,
) -> Expr:
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
    selected = emit(op.vision.all_class_non_max_suppression(corners, scores.expr, *limits))
    rows, count = (emit(TupleGetItem(selected, index)) for index in range(2))
    kept = context.sizes(context.value(count), "selected")[0]
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
