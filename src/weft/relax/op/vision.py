"""``relax.op.vision``: object detection."""

from __future__ import annotations

from weft import topi
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, differ, simplified
from weft.relax.op.definition import Ints, Replacements, operator
from weft.relax.op.infer import (
    check_float,
    check_rank,
    common_dtype,
    dims_of,
    fail,
    int64,
    result,
    show_dims,
    tensor,
)
from weft.relax.op.layout import parse_layout
from weft.relax.op.nn.padding import each
from weft.relax.op.reference import vision as reference
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError


def infer_nms(call: Call) -> TupleStructInfo:
    """(indices (batch * classes * boxes, 3), how many of them are valid (1,)), both int64."""
    boxes, scores = check_rank(call, 0, 3), check_rank(call, 1, 3)
    common_dtype(call, [boxes, scores])
    check_float(call, boxes)
    if call.attrs["output_format"] != "onnx":
        fail(
            call,
            f"output_format: expected onnx, got {call.attrs['output_format']!r} (the form "
            "of tensorflow is not built)",
        )
    for index in (2, 3, 4):
        _check_single(call, index)
    limit = tensor(call, 2).dtype
    if limit != "void" and not DataType(limit).is_integral:
        raise IRTypeError(
            f"{call.op.name}: max_output_boxes_per_class: expected an integer, got {limit}"
        )
    mine, its = dims_of(boxes), dims_of(scores)
    if mine is not None and differ(mine[2], int64(4)):
        fail(call, f"boxes: expected (batch, boxes, 4), got {show_dims(mine)}")
    rows = None
    if mine is not None and its is not None:
        if differ(mine[0], its[0]) or differ(mine[1], its[2]):
            fail(
                call,
                f"boxes {show_dims(mine)} and scores {show_dims(its)}, (batch, classes, "
                "boxes), must agree in batch and boxes",
            )
    if its is not None:
        rows = [simplified(its[0] * its[1] * its[2]), int64(3)]
    return TupleStructInfo([result(rows, "int64", 2), result([1], "int64")])


def _check_single(call: Call, index: int) -> None:
    """Raise unless the argument is a scalar or a vector of one element."""
    info = tensor(call, index)
    dims = dims_of(info)
    if info.ndim not in (-1, 0, 1) or (dims and differ(dims[0], int64(1))):
        name = call.op.attributes["params"][index]
        fail(call, f"{name}: expected a scalar, got {info}")


@operator(
    "relax.vision.all_class_non_max_suppression",
    infer_nms,
    te=lambda *tensors: topi.vision.all_class_non_max_suppression(*tensors[:5]),
    kernel="all_class_non_max_suppression",
    numpy=reference.non_max_suppression,
)
def all_class_non_max_suppression(
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Expr,
    iou_threshold: Expr,
    score_threshold: Expr,
    output_format: str = "onnx",
) -> None:
    """The boxes (y1, x1, y2, x2) to keep for every batch and class: rows (batch, class, box).

    The second result is the number of rows that count; those after it are zeros.
    """


def _check_regions(call: Call) -> None:
    """Raise unless regions have five columns and are pooled to at least one bin."""
    size, rois = call.attrs["pooled_size"], dims_of(tensor(call, 1))
    if any((constant_value(extent) or 0) < 1 for extent in size):
        fail(call, f"pooled_size: expected numbers of 1 or more, got {size}")
    if rois is not None and differ(rois[1], int64(5)):
        fail(call, f"rois: expected (regions, 5), got {show_dims(rois)}")


def infer_roi_align(call: Call) -> TensorStructInfo:
    """(regions, channels, pooled height, pooled width) in the layout of the data."""
    attrs = call.attrs
    layout = parse_layout(attrs["layout"], "NCHW", f"{call.op.name}: layout")
    info, rois = check_rank(call, 0, 4), check_rank(call, 1, 2)
    dtype = common_dtype(call, [info, rois])
    check_float(call, info)
    if attrs["mode"] not in ("avg", "max", "max_neighbour"):
        fail(call, f"mode: expected avg, max or max_neighbour, got {attrs['mode']!r}")
    _check_regions(call)
    dims, its = dims_of(info), dims_of(rois)
    if dims is None or its is None:
        return result(None, dtype, 4, info.vdevice)
    channels = layout.to_canonical(dims, "NCHW")[1]
    extents = [its[0], channels, *[int64(size) for size in attrs["pooled_size"]]]
    return result(layout.from_canonical(extents, "NCHW"), dtype, vdevice=info.vdevice)


@operator(
    "relax.vision.roi_align", infer_roi_align, te=topi.vision.roi_align, numpy=reference.roi_align
)
def roi_align(
    data: Expr,
    rois: Expr,
    pooled_size: Ints,
    spatial_scale: float,
    sample_ratio: int = -1,
    aligned: bool = False,
    layout: str = "NCHW",
    mode: str = "avg",
) -> Replacements:
    """Regions (batch index, x1, y1, x2, y2) of the data, pooled to a fixed size.

    ``mode``: each bin gives the mean of its samples (avg), their maximum (max), or the maximum of
    the weighted neighbours of its samples (max_neighbour, which ONNX calls max).
    """
    return {"pooled_size": each(pooled_size, 2, "pooled_size")}


def infer_roi_pool(call: Call) -> TensorStructInfo:
    """(regions, channels, pooled height, pooled width)."""
    info, rois = check_rank(call, 0, 4), check_rank(call, 1, 2)
    dtype = common_dtype(call, [info, rois])
    check_float(call, info)
    _check_regions(call)
    dims, its = dims_of(info), dims_of(rois)
    if dims is None or its is None:
        return result(None, dtype, 4, info.vdevice)
    bins = [int64(size) for size in call.attrs["pooled_size"]]
    return result([its[0], dims[1], *bins], dtype, vdevice=info.vdevice)


@operator(
    "relax.vision.roi_pool", infer_roi_pool, te=topi.vision.roi_pool, numpy=reference.roi_pool
)
def roi_pool(data: Expr, rois: Expr, pooled_size: Ints, spatial_scale: float = 1.0) -> Replacements:
    """The largest element in each bin of regions (batch index, x1, y1, x2, y2), edges rounded."""
    return {"pooled_size": each(pooled_size, 2, "pooled_size")}
