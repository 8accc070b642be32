"""Normalisations: over batches, layers, groups and instances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir.expr import Extent
from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter

Affine = tuple[Expr | None, Expr | None]
"""The weight and the bias of a normalisation; None where it has none."""
Statistics = tuple[Expr, Expr]
"""The mean and the variance."""


def filled(context: Context, shape: Sequence[Extent], value: float, dtype: str) -> Expr:
    """A tensor of one number; a constant where its extents are."""
    numbers = [extent for extent in shape if isinstance(extent, int)]
    if len(numbers) == len(shape):
        return const(np.full(numbers, value, "float64"), dtype)
    return context.emit(op.full(list(shape), context.operand(value, dtype), dtype))


def affine(
    context: Context, weight: Expr | None, bias: Expr | None, shape: Sequence[Extent], dtype: str
) -> tuple[Expr, Expr]:
    """Scale and shift in a data type; ones and zeros where they are None."""
    return (
        filled(context, shape, 1, dtype) if weight is None else context.cast(weight, dtype),
        filled(context, shape, 0, dtype) if bias is None else context.cast(bias, dtype),
    )


def as_column(vector: Expr, rank: int) -> Expr:
    """A vector along dimension 1 of tensors of that rank."""
    return op.reshape(vector, [1, -1, *[1] * (rank - 2)])


# Batches


@converter("aten._native_batch_norm_legit_no_training.default")
def batch_norm_inference(
    context: Context,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr,
    running_var: Expr,
    momentum: float,
    eps: float,
) -> list[Expr]:
    """Normalisation by the running statistics; torch's other two results have no elements."""
    stats = running_mean, running_var
    output = _by_running(context, input, (weight, bias), stats, momentum, eps)
    return [output, *(op.zeros(shape, dtype) for shape, dtype in context.results[1:])]


def flattened(context: Context, tensor: Expr) -> Expr:
    """A tensor as a vector."""
    return context.emit(op.reshape(context.emit(tensor), [-1]))


def _by_running(
    context: Context,
    data: Expr,
    scales: Affine,
    moving: tuple[Expr, Expr],
    momentum: float,
    eps: float,
) -> Expr:
    dtype = context.dtype_of(data)
    gamma, beta = affine(context, *scales, [context.dims(data)[1]], dtype)
    mean, variance = (context.cast(value, dtype) for value in moving)
    return context.emit(
        TupleGetItem(
            context.emit(
                op.nn.batch_norm(
                    data,
                    gamma,
                    beta,
                    mean,
                    variance,
                    axis=1,
                    epsilon=eps,
                    momentum=momentum,
                    training=False,
                )
            ),
            0,
        )
    )


@converter(
    "aten._native_batch_norm_legit_functional.default", "aten.native_batch_norm.default",
    "aten._native_batch_norm_legit.no_stats", "aten.batch_norm.default",
    "aten._native_batch_norm_legit.default", "aten.cudnn_batch_norm.default",
)  # fmt: skip
def batch_norm(
    context: Context,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    *rest: Expr | float | None,
) -> Expr | list[Expr]:
    """Batch normalisation: by the batch's own statistics, which move the running ones, or by them.

    The rest is (running mean, running variance, training, momentum, epsilon), or without the
    running statistics. Results after the output: mean, 1 / deviation, new running statistics.
    """
    options, stats = (rest[2:5], _statistics(rest[:2])) if len(rest) > 3 else (rest, None)
    training, momentum, eps = [item for item in options if isinstance(item, int | float)]
    single = len(context.results) == 1 and not isinstance(context.node.meta["val"], list | tuple)
    if not training and stats is not None:
        output = _by_running(context, input, (weight, bias), stats, momentum, eps)
        saved = [op.zeros(shape, dtype) for shape, dtype in context.results[1:3]]
        return output if single else [output, *saved, *stats][: len(context.results)]
    parts = _by_batch(context, input, (weight, bias), stats, (momentum, eps))
    pairs = zip(parts, context.results, strict=False)
    results = [context.cast(context.emit(item), dtype) for item, (_, dtype) in pairs]
    return results[0] if single else results


def _statistics(given: Sequence[Expr | float | None]) -> Statistics | None:
    """The running statistics, where a model keeps them."""
    if given[0] is None:
        return None
    mean, variance = [expect(item, Expr) for item in given]
    return mean, variance


def _by_batch(
    context: Context,
    data: Expr,
    scales: Affine,
    stats: Statistics | None,
    factors: tuple[float, float],
) -> list[Expr]:
    """Output, mean, 1 / deviation, new running mean, new running (unbiased) variance."""
    momentum, eps = factors
    rank = context.rank(data)
    several = len(context.results) > 1
    dtype = context.results[1][1] if several else context.dtype
    data = context.cast(data, dtype)
    axes = [axis for axis in range(rank) if axis != 1]
    mean = context.emit(op.mean(data, axes, keepdims=True))
    centred = context.emit(op.subtract(data, mean))
    variance = context.emit(op.mean(op.multiply(centred, centred), axes, keepdims=True))
    scale = context.emit(op.rsqrt(op.add(variance, context.operand(eps, dtype))))
    output = op.multiply(centred, scale)
    if scales[0] is not None:
        output = op.multiply(output, as_column(context.cast(scales[0], dtype), rank))
    if scales[1] is not None:
        output = op.add(output, as_column(context.cast(scales[1], dtype), rank))
    results = [context.emit(output), *(flattened(context, item) for item in (mean, scale))]
    if stats is None:
        return results
    count: Extent = 1
    for axis in axes:
        count = count * context.dims(data)[axis]
    unbiased = op.multiply(variance, _bessel(context, count, dtype))
    return results + [
        _moved(context, old, flattened(context, new), momentum)
        for old, new in zip(stats, (mean, unbiased), strict=True)
    ]


def _bessel(context: Context, count: Extent, dtype: str) -> Expr:
    if isinstance(count, int):
        return context.operand(count / max(count - 1, 1), dtype)
    total, unit = context.operand(count, dtype), context.operand(1, dtype)
    return op.divide(op.divide(total, unit), op.subtract(op.multiply(total, unit), unit))


def _moved(context: Context, old: Expr, new: Expr, momentum: float) -> Expr:
    dtype = context.dtype_of(old)
    kept = op.multiply(old, context.operand(1 - momentum, dtype))
    share = op.multiply(op.astype(new, dtype), context.operand(momentum, dtype))
    return op.add(kept, share)


# Layers


@converter("aten.layer_norm.default")
def layer_norm(
    context: Context,
    input: Expr,
    normalized_shape: Sequence[Extent],
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Expr:
    """Normalisation over the last dimensions of each sample."""
    count = len(normalized_shape)
    gamma, beta = affine(context, weight, bias, normalized_shape, context.dtype)
    return op.nn.layer_norm(input, gamma, beta, axes=list(range(-count, 0)), epsilon=eps)


@converter("aten.native_layer_norm.default")
def native_layer_norm(
    context: Context,
    input: Expr,
    normalized_shape: Sequence[Extent],
    weight: Expr | None,
    bias: Expr | None,
    eps: float,
) -> list[Expr | None]:
    """(output, mean, 1 / deviation)."""
    output = layer_norm(context, input, normalized_shape, weight, bias, eps)
    axes = list(range(-len(normalized_shape), 0))
    mean, scale = statistics(context, input, axes, eps)
    return [output, mean, scale]


def statistics(
    context: Context, data: Expr, axes: Sequence[int], eps: float
) -> tuple[Expr | None, Expr | None]:
    """Mean and 1 / deviation as the second and third result; None where nothing reads them."""
    if not (context.is_read(1) or context.is_read(2)):
        return None, None
    wide = context.cast(data, context.results[1][1])
    mean = context.emit(op.mean(wide, list(axes), keepdims=True))
    variance = op.variance(wide, list(axes), keepdims=True)
    scale = op.rsqrt(op.add(variance, context.operand(eps, context.results[2][1])))
    shapes = [shape for shape, _ in context.results[1:]]
    return op.reshape(mean, shapes[0]), op.reshape(scale, shapes[1])


@converter("aten.rms_norm.default", "aten._fused_rms_norm.default")
def rms_norm(
    context: Context,
    input: Expr,
    normalized_shape: Sequence[Extent],
    weight: Expr | None = None,
    eps: float | None = None,
) -> Expr | list[Expr | None]:
    """Division by the root of the mean square over the last dimensions."""
    dtype = context.dtype
    if eps is None:  # that of the type in which torch computes: float32 for 16-bit floats
        eps = 2.0**-52 if dtype == "float64" else 2.0**-23
    axes = list(range(-len(normalized_shape), 0))
    scale = filled(context, normalized_shape, 1, dtype) if weight is None else weight
    output = op.nn.rms_norm(context.cast(input, dtype), context.cast(scale, dtype), axes, eps)
    if len(context.results) == 1:
        return output
    return [output, _root_mean_square(context, input, axes, eps)]


def _root_mean_square(context: Context, data: Expr, axes: Sequence[int], eps: float) -> Expr | None:
    if not context.is_read(1):
        return None
    shape, dtype = context.results[1]
    wide = context.cast(data, dtype)
    square = op.mean(op.multiply(wide, wide), list(axes), keepdims=True)
    return op.reshape(op.rsqrt(op.add(square, context.operand(eps, dtype))), shape)


# Groups and instances


@converter("aten.group_norm.default")
def group_norm(
    context: Context,
    input: Expr,
    num_groups: int,
    weight: Expr | None = None,
    bias: Expr | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Expr:
    """Normalisation over groups of channels of each sample."""
    dims = context.dims(input)
    gamma, beta = affine(context, weight, bias, [dims[1]], context.dtype)
    return op.nn.group_norm(
        input,
        gamma,
        beta,
        num_groups=num_groups,
        channel_axis=1,
        axes=list(range(2, len(dims))),
        epsilon=eps,
    )


@converter("aten.native_group_norm.default")
def native_group_norm(
    context: Context,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    N: Extent,
    C: Extent,
    HxW: Extent,
    group: int,
    eps: float,
) -> list[Expr | None]:
    """(output, mean, 1 / deviation) of each sample's groups."""
    output = group_norm(context, input, group, weight, bias, eps)
    flat = op.reshape(input, [N, group, C // group * HxW])
    mean, scale = statistics(context, context.emit(flat), [2], eps)
    return [output, mean, scale]


@converter("aten.instance_norm.default")
def instance_norm(
    context: Context,
    input: Expr,
    weight: Expr | None,
    bias: Expr | None,
    running_mean: Expr,
    running_var: Expr,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Expr:
    """Normalisation over the space of each sample and channel, or by running statistics."""
    if not use_input_stats:
        stats = (running_mean, running_var)
        return _by_running(context, input, (weight, bias), stats, momentum, eps)
    dims = context.dims(input)
    gamma, beta = affine(context, weight, bias, [dims[1]], context.dtype)
    axes = list(range(2, len(dims)))
    return op.nn.instance_norm(input, gamma, beta, channel_axis=1, axes=axes, epsilon=eps)
