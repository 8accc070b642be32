"""Losses over classes."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr
from weft.support.errors import IRValueError
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.broadcast import divide, multiply
from weft.topi.extents import Point, Shape, compute_ax, may_be_equal, shape_text
from weft.topi.math import negative
from weft.topi.reduction import sum as reduce_sum

OfTarget = Callable[[PrimExpr], PrimExpr]
"""A function from a target, which is a class, to a value."""


def nll_loss(
    predictions: Tensor, targets: Tensor, weights: Tensor | None, reduction: str, ignore_index: int
) -> Tensor:
    """-weights[target] * predictions[target]: predictions (n, c, ...) or (c,), targets (n, ...).

    Without ``weights``, all are 1. ``reduction`` is none, sum or (weighted) mean; targets equal to
    ``ignore_index`` are left out.
    """
    if reduction not in ("none", "sum", "mean"):
        raise IRValueError(f"nll_loss: expected reduction none, sum or mean, got {reduction!r}")
    batched = predictions.ndim > 1
    outer = [*predictions.shape[:1], *predictions.shape[2:]] if batched else []
    pairs = zip(outer, targets.shape, strict=False)
    if targets.ndim != len(outer) or [1 for a, b in pairs if not may_be_equal(a, b)]:
        raise IRValueError(
            f"nll_loss: predictions {shape_text(predictions.shape)} want targets "
            f"{shape_text(outer)}, got {shape_text(targets.shape)}"
        )

    def picked(point: Point, value: OfTarget) -> PrimExpr:
        target = targets(*point)
        kept = op.not_equal(target, ignore_index)
        return op.if_then_else(kept, value(target), op.const(0, predictions.dtype))

    def loss(*point: PrimExpr) -> PrimExpr:
        def value(target: PrimExpr) -> PrimExpr:
            place = (point[0], target, *point[1:]) if batched else (target,)
            loss_of_target = -predictions(*place)
            return loss_of_target if weights is None else loss_of_target * weights(target)

        return picked(point, value)

    losses = compute_ax(outer, loss, "nll_loss", tag=tag.INJECTIVE)
    if reduction == "none" or not outer:
        if reduction == "mean":
            losses = divide(losses, _weights(outer, picked, weights, predictions))
        return losses
    total = reduce_sum(losses)
    if reduction == "sum":
        return total
    return divide(total, reduce_sum(_weights(outer, picked, weights, predictions)))


def _weights(
    outer: Shape,
    picked: Callable[[Point, OfTarget], PrimExpr],
    weights: Tensor | None,
    predictions: Tensor,
) -> Tensor:
    def value(target: PrimExpr) -> PrimExpr:
        return op.const(1, predictions.dtype) if weights is None else weights(target)

    return compute_ax(outer, lambda *point: picked(point, value), "weight_sum", tag=tag.INJECTIVE)


def cross_entropy_with_logits(predictions: Tensor, labels: Tensor) -> Tensor:
    """-sum(predictions * labels), divided by the batch."""
    loss = negative(reduce_sum(multiply(predictions, labels)))
    if len(predictions.shape) > 1:
        loss = divide(loss, predictions.shape[0].astype(predictions.dtype))
    return loss
