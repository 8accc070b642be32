"""What models of ai.onnx.ml do with their scores, and how classifiers name their classes.

Where ONNX does not say what a model of two classes with one score gives, ONNX Runtime's answer is
taken: the pair (1 - s, s) or (-s, s).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.value import TextValue, Value

ML: Final = "ai.onnx.ml"
ONE_SCORE: Final = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
"""Transformations that a model of two classes with one score may ask for."""


def transformed(context: Context, scores: Expr, name: str) -> Expr:
    """Scores (rows, classes) after the transformation that ``post_transform`` names."""
    if name not in _TRANSFORMS:
        context.fail(f"post_transform: expected {', '.join(_TRANSFORMS)}, got {name!r}")
    return _TRANSFORMS[name](context, scores)


def _softmax_zero(context: Context, scores: Expr) -> Expr:
    """A softmax that leaves scores of 0 at 0."""
    emit = context.emit
    largest = emit(op.max(scores, [1], keepdims=True))
    small = emit(op.less(emit(op.abs(scores)), _like(context, scores, 1e-7)))
    powers = emit(op.exp(emit(op.subtract(scores, largest))))
    scaled = emit(op.multiply(scores, emit(op.exp(emit(op.negative(largest))))))
    parts = emit(op.where(small, scaled, powers))
    counted = emit(op.where(small, _like(context, scores, 0.0), powers))
    return emit(op.divide(parts, emit(op.sum(counted, [1], keepdims=True))))


def _probit(context: Context, scores: Expr) -> Expr:
    """The quantile of the normal distribution, by Winitzki's approximation of the inverse erf.

    S. Winitzki, "A handy approximation for the error function and its inverse", 2008, with the
    constant 0.147; ONNX Runtime has the same.
    """
    emit = context.emit

    def scaled(x: Expr, factor: float, more: float = 0.0) -> Expr:
        product = emit(op.multiply(x, _like(context, x, factor)))
        return emit(op.add(product, _like(context, x, more))) if more else product

    x = scaled(scores, 2.0, -1.0)
    log = emit(op.log(scaled(emit(op.multiply(x, x)), -1.0, 1.0)))
    middle = scaled(log, 0.5, 2 / (3.14159 * 0.147))
    square = emit(op.multiply(middle, middle))
    root = emit(op.sqrt(emit(op.subtract(square, scaled(log, 1 / 0.147)))))
    size = emit(op.sqrt(emit(op.subtract(root, middle))))
    return emit(op.multiply(emit(op.sign(x)), scaled(size, 1.41421356)))


_TRANSFORMS: Final[dict[str, Callable[[Context, Expr], Expr]]] = {
    "NONE": lambda context, scores: scores,
    "LOGISTIC": lambda context, scores: context.emit(op.sigmoid(scores)),
    "SOFTMAX": lambda context, scores: context.emit(op.nn.softmax(scores, 1)),
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def _like(context: Context, x: Expr, number: float) -> Expr:
    return context.constant(number, str(x.struct_info.dtype)).expr


def two_scores(context: Context, score: Expr, name: str, *, is_share: bool) -> Expr:
    """(rows, 2) from the one score (rows, 1) of a model of two classes.

    ``is_share`` says that scores are parts of 1, as a forest's are: then the other class has the
    rest, else the opposite.
    """
    if name not in ONE_SCORE:
        context.fail(f"post_transform: expected {', '.join(ONE_SCORE)} for one score, got {name!r}")
    emit = context.emit
    if name == "LOGISTIC":
        pair = emit(op.concat([emit(op.negative(score)), score], 1))
        return emit(op.sigmoid(pair))
    other = emit(op.negative(score))
    if is_share:
        other = emit(op.add(other, _like(context, score, 1.0)))
    return emit(op.concat([other, score], 1))


def above(context: Context, score: Expr, limit: float) -> Expr:
    """The place 0 or 1 of the class: 1 where the score (rows, 1) is above the limit."""
    is_above = context.emit(op.greater(score, _like(context, score, limit)))
    return context.emit(op.astype(context.emit(op.squeeze(is_above, [1])), "int64"))


def greatest(context: Context, scores: Expr) -> Expr:
    """The place of the class with the greatest score, the first of several."""
    return context.emit(op.astype(context.emit(op.argmax(scores, 1)), "int64"))


def class_names(
    context: Context, numbers: Sequence[int] | None, texts: Sequence[str] | None
) -> list[int] | list[str]:
    """The labels of a classifier, numbers or texts."""
    if numbers:
        return list(numbers)
    if not texts:
        context.fail("expected labels of its classes, found none")
    return list(texts)


def labels(
    context: Context, place: Expr, names: Sequence[int] | Sequence[str]
) -> Value | TextValue:
    """The label of the class at each place."""
    texts = [name for name in names if isinstance(name, str)]
    if texts:
        return TextValue(context.value(place), texts)
    if list(names) == list(range(len(names))):
        return context.value(place)
    table = context.constant(np.array(names, "int64")).expr
    return context.value(op.take(table, place, 0))
