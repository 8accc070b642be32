"""Non-maximum suppression for every batch and class: ONNX's NonMaxSuppression, as loops.

Boxes are visited by decreasing score; a box is kept unless its intersection over union with a kept
box exceeds a threshold.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr
from weft.support.errors import IRValueError
from weft.te.operation import as_list, extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.ir_builder import BufferVar, IRBuilder
from weft.tir.stmt import Stmt
from weft.topi.extents import may_be_equal, shape_text
from weft.topi.simplify import simplified
from weft.topi.sort import argsort


def _first(buffer: BufferVar) -> PrimExpr:
    """The element of a scalar or of a vector of length 1."""
    return buffer[0]


def _overlap(boxes: BufferVar, batch: PrimExpr, first: PrimExpr, second: PrimExpr) -> PrimExpr:
    """Intersection over union of two boxes, given by any two opposite corners; 0 if empty."""

    def edges(box: PrimExpr, axis: int) -> tuple[PrimExpr, PrimExpr]:
        corner, opposite = boxes[batch, box, axis], boxes[batch, box, axis + 2]
        return op.minimum(corner, opposite), op.maximum(corner, opposite)

    widths, its_widths, shared_widths = [], [], []
    for axis in (0, 1):
        (low, high), (its_low, its_high) = edges(first, axis), edges(second, axis)
        reach = op.minimum(high, its_high) - op.maximum(low, its_low)
        shared_widths.append(op.maximum(reach, op.const(0, low.dtype)))
        widths.append(high - low)
        its_widths.append(its_high - its_low)
    shared = shared_widths[0] * shared_widths[1]
    union = widths[0] * widths[1] + its_widths[0] * its_widths[1] - shared
    zero = op.const(0, union.dtype)
    safe = op.select(union > zero, union, op.const(1, union.dtype))
    return op.select(union > zero, op.div(shared, safe), zero)


def _mark_suppressed(
    ib: IRBuilder, state: BufferVar, indices: BufferVar, overlaps: Callable[[PrimExpr], PrimExpr]
) -> None:
    """Set ``state[2]`` to whether the box overlaps a kept box of this class too much."""
    state[2] = op.const(0, "int64")
    with ib.for_range(0, state[1] - state[0], "k") as k:
        kept = ib.let("kept", indices[state[0] + k, 2])
        with ib.if_scope(overlaps(kept)):
            state[2] = op.const(1, "int64")


def _check(boxes: Tensor, scores: Tensor) -> None:
    fits = boxes.ndim == 3 and scores.ndim == 3 and may_be_equal(boxes.shape[2], 4)
    if (
        not fits
        or not may_be_equal(boxes.shape[0], scores.shape[0])
        or not may_be_equal(boxes.shape[1], scores.shape[2])
    ):
        raise IRValueError(
            "all_class_non_max_suppression: expected boxes (batch, n, 4) and scores (batch, "
            f"classes, n), got {shape_text(boxes.shape)} and {shape_text(scores.shape)}"
        )


def all_class_non_max_suppression(
    boxes: Tensor, scores: Tensor, max_output_boxes_per_class: Tensor, iou_threshold: Tensor,
    score_threshold: Tensor,
) -> list[Tensor]:  # fmt: skip
    """[indices (batch * classes * n, 3) int64, the number of valid rows (1,) int64].

    A row is (batch, class, box); batches and classes are in order, boxes by decreasing score. Rows
    that are not valid are zeros. The last three tensors hold one element each.
    """
    _check(boxes, scores)
    order = argsort(scores, axis=2, is_ascend=False, dtype="int64")
    batches, classes, count = scores.shape
    rows = simplified(batches * classes * count)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        box, score, ranks, most, overlap, least = [ib.buffer_ptr(item) for item in ins]
        indices, total = [ib.buffer_ptr(item) for item in outs]
        state = ib.allocate("int64", [3], "state")  # rows before the class, all, is suppressed
        state[1] = op.const(0, "int64")
        with ib.for_range(0, rows, "row") as row, ib.for_range(0, 3, "column") as column:
            indices[row, column] = op.const(0, "int64")
        with ib.for_range(0, batches, "b") as b, ib.for_range(0, classes, "c") as c:
            state[0] = state[1]
            with ib.for_range(0, count, "i") as i:
                candidate = ib.let("candidate", ranks[b, c, i])
                wanted = op.logical_and(
                    op.greater(score[b, c, candidate], _first(least)),
                    op.less(state[1] - state[0], op.cast("int64", _first(most))),
                )
                with ib.if_scope(wanted):
                    _mark_suppressed(
                        ib, state, indices,
                        lambda kept: _overlap(box, b, candidate, kept) > _first(overlap),
                    )  # fmt: skip
                    with ib.if_scope(op.equal(state[2], 0)):
                        for column, value in enumerate((b, c, candidate)):
                            indices[state[1], column] = op.cast("int64", value)
                        state[1] = state[1] + 1
        total[0] = state[1]
        return ib.get()

    inputs = [boxes, scores, order, max_output_boxes_per_class, iou_threshold, score_threshold]
    targets = [decl_buffer([rows, 3], "int64", "indices"), decl_buffer([1], "int64", "total")]
    return as_list(extern(
        [[rows, 3], [1]], inputs, body, name="non_max_suppression", dtype=["int64", "int64"],
        in_buffers=[decl_buffer(item.shape, item.dtype, item.op.name) for item in inputs],
        out_buffers=targets, tag="non_max_suppression",
    ))  # fmt: skip
