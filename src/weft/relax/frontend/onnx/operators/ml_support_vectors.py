"""ai.onnx.ml: support vector machines, in libsvm's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.ml_features import as_rows
from weft.relax.frontend.onnx.operators.ml_scores import (
    ML,
    class_names,
    greatest,
    labels,
    transformed,
    two_scores,
)
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import TextValue, Value

LEAST: float = 1e-7
"""Probabilities of pairs keep so far from 0 and from 1, as in libsvm."""


@dataclass(frozen=True)
class Kernel:
    """What compares an input with a support vector: kernel_type and kernel_params."""

    name: str
    params: Sequence[float]

    def matrix(self, context: Context, rows: Expr, vectors: np.ndarray) -> Expr:
        """The kernel of each row with each vector: (rows, vectors)."""
        emit = context.emit
        gamma, offset, degree = [*self.params, 0.0, 0.0, 0.0][:3]

        def number(value: float) -> Expr:
            return context.constant(value, "float32").expr

        if self.name == "RBF":
            wide = emit(op.expand_dims(rows, [1]))
            apart = emit(op.subtract(wide, context.constant(vectors).expr))
            square = emit(op.sum(emit(op.multiply(apart, apart)), [2]))
            return emit(op.exp(emit(op.multiply(square, number(-gamma)))))
        turned = context.constant(np.ascontiguousarray(vectors.T)).expr
        product = emit(op.matmul(rows, turned))
        if self.name == "LINEAR":
            return product
        scaled = emit(op.add(emit(op.multiply(product, number(gamma))), number(offset)))
        if self.name == "SIGMOID":
            return emit(op.tanh(scaled))
        if self.name != "POLY":
            context.fail(f"kernel_type: expected LINEAR, POLY, RBF or SIGMOID, got {self.name!r}")
        return emit(op.power(scaled, number(degree)))


@converter("SVMRegressor", domain=ML)
def svm_regressor(
    context: Context,
    x: Value,
    *,
    coefficients: Sequence[float],
    kernel_type: str = "LINEAR",
    kernel_params: Sequence[float] | None = None,
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float] | None = None,
    support_vectors: Sequence[float] | None = None,
) -> Expr:
    """The weighted kernels of the support vectors plus rho; without vectors, a linear model."""
    emit = context.emit
    rows = context.as_type(as_rows(context, x), "float32")
    weights = np.array(coefficients, "float32").reshape(-1, 1)
    if n_supports:
        if len(weights) != n_supports or len(support_vectors or []) % n_supports:
            context.fail(f"expected coefficients of {n_supports} vectors, got {len(weights)}")
        vectors = np.array(support_vectors, "float32").reshape(n_supports, -1)
        rows = Kernel(kernel_type, kernel_params or []).matrix(context, rows, vectors)
    scores = emit(op.matmul(rows, context.constant(weights).expr))
    scores = emit(op.add(scores, context.constant(float((rho or [0.0])[0]), "float32").expr))
    if one_class:
        is_inside = emit(op.greater(scores, context.constant(0.0, "float32").expr))
        sides = [context.constant(side, "float32").expr for side in (1.0, -1.0)]
        scores = emit(op.where(is_inside, *sides))
    return transformed(context, scores, post_transform)


@converter("SVMClassifier", domain=ML)
def svm_classifier(
    context: Context,
    x: Value,
    *,
    coefficients: Sequence[float],
    kernel_type: str = "LINEAR",
    kernel_params: Sequence[float] | None = None,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    post_transform: str = "NONE",
    prob_a: Sequence[float] | None = None,
    prob_b: Sequence[float] | None = None,
    rho: Sequence[float] | None = None,
    support_vectors: Sequence[float] | None = None,
    vectors_per_class: Sequence[int] | None = None,
) -> list[Value | TextValue | Expr]:
    """The class that most of the others lose to, and the scores of pairs or probabilities."""
    names = class_names(context, classlabels_ints, classlabels_strings)
    rows = context.as_type(as_rows(context, x), "float32")
    count = len(names)
    if not vectors_per_class:
        weights = np.array(coefficients, "float32").reshape(count, -1).T
        scores = context.emit(op.matmul(rows, context.constant(np.ascontiguousarray(weights)).expr))
        offset = context.constant(float((rho or [0.0])[0]), "float32").expr
        scores = context.emit(op.add(scores, offset))
        place = greatest(context, scores)
        return [labels(context, place, names), transformed(context, scores, post_transform)]
    total = sum(vectors_per_class)
    if len(vectors_per_class) != count or len(coefficients) != (count - 1) * total:
        context.fail(f"expected {count} classes of vectors with {count - 1} coefficients each")
    vectors = np.array(support_vectors or [], "float32").reshape(total, -1)
    kernels = Kernel(kernel_type, kernel_params or []).matrix(context, rows, vectors)
    table = _pair_weights(np.array(coefficients, "float32").reshape(-1, total), vectors_per_class)
    scores = context.emit(op.matmul(kernels, context.constant(table).expr))
    offsets = np.array(rho or [0.0] * table.shape[1], "float32")
    scores = context.emit(op.add(scores, context.constant(offsets).expr))
    place = _voted(context, scores, count)
    if prob_a:
        given = (np.array(prob_a, "float32"), np.array(prob_b or [0.0] * len(prob_a), "float32"))
        shares = _probabilities(context, scores, given, count)
        return [labels(context, place, names), transformed(context, shares, post_transform)]
    if count == 2:
        is_share = post_transform in ("SOFTMAX", "SOFTMAX_ZERO")  # as ONNX Runtime has it
        return [
            labels(context, place, names),
            two_scores(context, scores, post_transform, is_share=is_share),
        ]
    return [labels(context, place, names), transformed(context, scores, post_transform)]


def _pairs(count: int) -> list[tuple[int, int]]:
    """The pairs of classes in the order of rho."""
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


def _pair_weights(coefficients: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """The weight of each vector in the score of each pair: (vectors, pairs).

    A vector of class i has a coefficient for every other class; in the table of libsvm the row
    of class j is j - 1 for vectors of classes before j, and j for those after it.
    """
    ends = np.cumsum([0, *sizes])
    columns = []
    for i, j in _pairs(len(sizes)):
        column = np.zeros(ends[-1], "float32")
        column[ends[i] : ends[i + 1]] = coefficients[j - 1, ends[i] : ends[i + 1]]
        column[ends[j] : ends[j + 1]] = coefficients[i, ends[j] : ends[j + 1]]
        columns.append(column)
    return np.ascontiguousarray(np.stack(columns, 1))


def _voted(context: Context, scores: Expr, count: int) -> Expr:
    """The class with the most votes: a pair votes for its first class if its score is above 0."""
    emit = context.emit
    first, second = np.zeros((2, len(_pairs(count)), count), "float32")
    for number, (i, j) in enumerate(_pairs(count)):
        first[number, i] = second[number, j] = 1
    is_first = emit(op.greater(scores, context.constant(0.0, "float32").expr))
    votes = emit(op.astype(is_first, "float32"))
    turned = emit(op.matmul(votes, context.constant(first - second).expr))
    return greatest(context, emit(op.add(turned, context.constant(second.sum(0)).expr)))


def _probabilities(
    context: Context, scores: Expr, sigmoid: tuple[np.ndarray, np.ndarray], count: int
) -> Expr:
    """Probabilities of classes from scores of pairs: Platt's sigmoid, then pairwise coupling."""
    emit = context.emit
    slopes, offsets = (context.constant(-part).expr for part in sigmoid)
    share = emit(op.sigmoid(emit(op.add(emit(op.multiply(scores, slopes)), offsets))))
    share = emit(op.clip(share, LEAST, 1 - LEAST))
    other = emit(op.subtract(context.constant(1.0, "float32").expr, share))
    both = emit(op.concat([share, other], 1))
    pairs = _pairs(count)
    places = np.zeros((count, count), "int64")
    for number, (i, j) in enumerate(pairs):
        places[i, j], places[j, i] = number, number + len(pairs)
    square = emit(op.take(both, context.constant(places.ravel()).expr, 1))
    rows = context.shape(context.value(square), "X")[0]
    return emit(op.couple_pairs(emit(op.reshape(square, [rows, count, count]))))
