"""Random numbers. They are drawn at import, by numpy's generator and the node's seed: a model that
runs twice gives the same numbers twice, as an ONNX node with a seed does.

In the body of a Loop or Scan that is written out, each step draws on. Where the steps, or how many
numbers there are, are not known, the program draws (``weft.random.seed`` sets its generator; the
node's seed does not count there).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr, ExternFunc, PrimValue
from weft.relax.frontend.onnx.checks import first_output
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Dim, Value
from weft.relax.struct_info import TensorStructInfo
from weft.tir import op as tir


def _generator(context: Context, seed: float | None) -> np.random.Generator:
    if seed is None:
        return np.random.default_rng()
    key = (first_output(context.node), seed)
    generators = context.translator.generators
    if key not in generators:
        generators[key] = np.random.default_rng(int(np.float32(seed).view("uint32")))
    return generators[key]


def _numbers(
    context: Context,
    kind: str,
    ends: tuple[float, float],
    shape: Sequence[Dim],
    how: tuple[str, float | None],
) -> Value:
    """Numbers of a distribution, "uniform" or "normal"; ``how`` is (data type, seed)."""
    dtype, seed = how
    sizes = [dim for dim in shape if isinstance(dim, int)]
    if not context.translator.is_looping and len(sizes) == len(shape):
        drawn = getattr(_generator(context, seed), kind)(*ends, sizes)
        return context.constant(drawn.astype(dtype))
    stream = tir.const(next(context.translator.draws), "int64")
    args = [PrimValue(stream), *[PrimValue(tir.const(end, "float64")) for end in ends]]
    info = TensorStructInfo(list(shape), dtype)
    return context.value(op.call_dps_packed(ExternFunc(f"weft.random.{kind}"), args, info))


@converter("RandomUniform")
def random_uniform(
    context: Context,
    *,
    shape: Sequence[int],
    low: float = 0.0,
    high: float = 1.0,
    dtype: int = 1,
    seed: float | None = None,
) -> Value:
    """Numbers between low and high."""
    return _numbers(context, "uniform", (low, high), shape, (context.storage(dtype), seed))


@converter("RandomNormal")
def random_normal(
    context: Context,
    *,
    shape: Sequence[int],
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: int = 1,
    seed: float | None = None,
) -> Value:
    """Normally distributed numbers."""
    return _numbers(context, "normal", (mean, scale), shape, (context.storage(dtype), seed))


@converter("RandomUniformLike")
def random_uniform_like(
    context: Context,
    x: Value,
    *,
    low: float = 0.0,
    high: float = 1.0,
    dtype: int | None = None,
    seed: float | None = None,
) -> Value:
    """Numbers between low and high, in the shape (and type) of a tensor."""
    kind = context.storage(dtype or x.elem or 1)
    return _numbers(context, "uniform", (low, high), context.shape(x, "input"), (kind, seed))


@converter("RandomNormalLike")
def random_normal_like(
    context: Context,
    x: Value,
    *,
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: int | None = None,
    seed: float | None = None,
) -> Value:
    """Normally distributed numbers, in the shape (and type) of a tensor."""
    kind = context.storage(dtype or x.elem or 1)
    return _numbers(context, "normal", (mean, scale), context.shape(x, "input"), (kind, seed))


@converter("Bernoulli", since=15)
def bernoulli(
    context: Context, x: Value, *, dtype: int | None = None, seed: float | None = None
) -> Expr:
    """1 with the probability that x says, else 0."""
    shape = context.shape(x, "input")
    drawn = _numbers(context, "uniform", (0.0, 1.0), shape, (x.dtype, seed))
    hit = context.emit(op.less(drawn.expr, x.expr))
    return context.emit(op.astype(hit, context.storage(dtype or x.elem or 1)))


@converter("Multinomial", since=7)
def multinomial(
    context: Context, x: Value, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None
) -> Expr:
    """Classes drawn by unnormalized log probabilities, row by row: the largest x + Gumbel noise."""
    batch, classes = context.shape(x, "input")
    emit, shape = context.emit, [batch, sample_size, classes]
    drawn = _numbers(context, "uniform", (0.0, 1.0), shape, ("float64", seed)).expr
    rest = emit(op.negative(emit(op.log(emit(op.negative(emit(op.log(drawn))))))))
    noise = emit(op.astype(rest, x.dtype))  # Gumbel's distribution
    logits = emit(op.expand_dims(x.expr, [1]))
    noisy = emit(op.add(logits, noise))
    return context.emit(op.astype(context.emit(op.argmax(noisy, 2)), context.storage(dtype)))
