"""Random numbers. They are drawn at import, by numpy's generator and the node's seed: a model that
runs twice gives the same numbers twice, as an ONNX node with a seed does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value


def _generator(seed: float | None) -> np.random.Generator:
    return np.random.default_rng(None if seed is None else int(np.float32(seed).view("uint32")))


@converter("RandomUniform")
def random_uniform(
    context: Context, *, shape: Sequence[int], low: float = 0.0, high: float = 1.0,
    dtype: int = 1, seed: float | None = None,
) -> Value:  # fmt: skip
    """Numbers between low and high."""
    drawn = _generator(seed).uniform(low, high, list(shape))
    return context.constant(drawn.astype(context.storage(dtype)))


@converter("RandomNormal")
def random_normal(
    context: Context, *, shape: Sequence[int], mean: float = 0.0, scale: float = 1.0,
    dtype: int = 1, seed: float | None = None,
) -> Value:  # fmt: skip
    """Normally distributed numbers."""
    drawn = _generator(seed).normal(mean, scale, list(shape))
    return context.constant(drawn.astype(context.storage(dtype)))


@converter("RandomUniformLike")
def random_uniform_like(
    context: Context, x: Value, *, low: float = 0.0, high: float = 1.0, dtype: int | None = None,
    seed: float | None = None,
) -> Value:  # fmt: skip
    """Numbers between low and high, in the shape (and type) of a tensor."""
    shape = context.numbers(x, "input")
    return random_uniform(
        context, shape=shape, low=low, high=high, dtype=dtype or x.elem or 1, seed=seed
    )


@converter("RandomNormalLike")
def random_normal_like(
    context: Context, x: Value, *, mean: float = 0.0, scale: float = 1.0,
    dtype: int | None = None, seed: float | None = None,
) -> Value:  # fmt: skip
    """Normally distributed numbers, in the shape (and type) of a tensor."""
    shape = context.numbers(x, "input")
    return random_normal(
        context, shape=shape, mean=mean, scale=scale, dtype=dtype or x.elem or 1, seed=seed
    )


@converter("Bernoulli", since=15)
def bernoulli(
    context: Context, x: Value, *, dtype: int | None = None, seed: float | None = None
) -> Expr:
    """1 with the probability that x says, else 0."""
    shape = context.numbers(x, "input")
    drawn = context.constant(_generator(seed).uniform(0, 1, shape).astype(x.dtype))
    hit = context.emit(op.less(drawn.expr, x.expr))
    return context.emit(op.astype(hit, context.storage(dtype or x.elem or 1)))


@converter("Multinomial", since=7)
def multinomial(
    context: Context, x: Value, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Expr:
    """Classes drawn by unnormalized log probabilities, row by row: the largest x + Gumbel noise."""
    batch, classes = context.numbers(x, "input")
    noise = _generator(seed).gumbel(size=(batch, sample_size, classes)).astype(x.dtype)
    logits = context.emit(op.expand_dims(x.expr, [1]))
    noisy = context.emit(op.add(logits, context.constant(noise).expr))
    return context.emit(op.astype(context.emit(op.argmax(noisy, 2)), context.storage(dtype)))
