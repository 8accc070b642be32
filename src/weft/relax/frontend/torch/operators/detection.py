"""Operators of torchvision that detectors need: boxes that overlap no better one, regions."""

from __future__ import annotations

from typing import Final

from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.relax.struct_info import ShapeStructInfo
from weft.tir.expr import Var

_ALL: Final = 2**31 - 1
"""More boxes than there are: no limit."""
_LOWEST: Final = float("-inf")


@converter("torchvision.nms.default")
def nms(context: Context, dets: Expr, scores: Expr, iou_threshold: float) -> Expr:
    """The boxes that overlap no better one by more than a share, best first; data tells how many.

    ``R.vision.all_class_non_max_suppression`` takes y before x, which overlaps do not depend on.
    """
    kind, emit = context.dtype_of(dets), context.emit
    boxes = emit(op.expand_dims(dets, [0]))
    of_classes = emit(op.expand_dims(context.cast(scores, kind), [0, 1]))
    selected = emit(
        op.vision.all_class_non_max_suppression(
            boxes,
            of_classes,
            const(_ALL, "int64"),
            const(iou_threshold, "float32"),
            const(_LOWEST, "float32"),
        )
    )
    rows, count = (emit(TupleGetItem(selected, index)) for index in range(2))
    extent = Var("num_kept", "int64")
    shape = emit(op.tensor_to_shape(count))
    context.builder.match_cast(shape, ShapeStructInfo([extent]))
    kept = op.strided_slice(rows, [0, 1], [0, 2], [extent, 3], assume_inbound=True)
    return op.reshape(kept, [extent])


@converter("torchvision.roi_align.default")
def roi_align(
    context: Context,
    input: Expr,
    rois: Expr,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Expr:
    """Regions (image, x1, y1, x2, y2) of the images, each pooled to a fixed size."""
    return op.vision.roi_align(
        input, rois, (pooled_height, pooled_width), spatial_scale, sampling_ratio, aligned
    )
