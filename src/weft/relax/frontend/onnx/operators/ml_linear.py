"""ai.onnx.ml: linear models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.ml_features import as_rows
from weft.relax.frontend.onnx.operators.ml_scores import (
    ML,
    above,
    class_names,
    greatest,
    labels,
    transformed,
    two_scores,
)
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import TextValue, Value


@converter("LinearRegressor", domain=ML)
def linear_regressor(
    context: Context,
    x: Value,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    targets: int = 1,
    post_transform: str = "NONE",
) -> Expr:
    """x @ coefficients + intercepts for each target."""
    scores = _linear(context, x, coefficients, intercepts, targets)
    return transformed(context, scores, post_transform)


@converter("LinearClassifier", domain=ML, ignores=["multi_class"])
def linear_classifier(
    context: Context,
    x: Value,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    post_transform: str = "NONE",
) -> list[Value | TextValue | Expr]:
    """The class with the greatest score, and the scores of all classes."""
    names = class_names(context, classlabels_ints, classlabels_strings)
    width = context.extent(context.value(as_rows(context, x)), 1, "X")
    count = len(coefficients) // max(width, 1)
    if count not in (1, len(names)) or count * width != len(coefficients):
        context.fail(
            f"coefficients: expected {len(names)} rows of {width} numbers, got "
            f"{len(coefficients)} numbers"
        )
    scores = _linear(context, x, coefficients, intercepts, count)
    if count == 1 and len(names) == 2:
        place = above(context, scores, 0.0)
        pair = two_scores(context, scores, post_transform, is_share=True)
        return [labels(context, place, names), pair]
    place = greatest(context, scores)
    return [labels(context, place, names), transformed(context, scores, post_transform)]


def _linear(
    context: Context,
    x: Value,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None,
    count: int,
) -> Expr:
    """Scores (rows, count) in float32."""
    rows = context.as_type(as_rows(context, x), "float32")
    if len(coefficients) % count or (intercepts and len(intercepts) != count):
        context.fail(
            f"expected coefficients and intercepts for {count} targets, got {len(coefficients)} "
            f"and {len(intercepts or [])}"
        )
    weights = np.array(coefficients, "float32").reshape(count, -1).T
    scores = context.emit(op.matmul(rows, context.constant(np.ascontiguousarray(weights)).expr))
    if intercepts:
        scores = context.emit(
            op.add(scores, context.constant(np.array(intercepts, "float32")).expr)
        )
    return scores
