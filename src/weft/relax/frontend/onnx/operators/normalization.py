"""Normalizations: batch, instance, layer, group, RMS, Lp, local response; Dropout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import STORAGE
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value


def _per_channel(context: Context, parameter: Expr, rank: int) -> Expr:
    """A parameter for each channel (axis 1), to broadcast with data of ``rank`` dimensions."""
    return context.emit(op.reshape(parameter, [1, -1, *[1] * (rank - 2)]))


def _normalized(context: Context, x: Expr, moments: tuple[Expr, Expr], epsilon: float) -> Expr:
    mean, variance = moments
    emit = context.emit
    kind = str(x.struct_info.dtype)
    spread = emit(op.sqrt(emit(op.add(variance, context.constant(epsilon, kind).expr))))
    return emit(op.divide(emit(op.subtract(x, mean)), spread))


@converter("BatchNormalization", ignores=["consumed_inputs", "is_test", "momentum"])
def batch_norm_inference(
    context: Context,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    spatial: int = 1,
) -> Expr:
    """Until opset 13 without training: normalized by the running mean and variance."""
    if not spatial:
        context.fail("spatial=0 (statistics for each element) is not supported")
    return batch_norm(context, x, scale, bias, mean, variance, epsilon=epsilon)[0]


@converter("BatchNormalization", since=14)
def batch_norm(
    context: Context,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> list[Expr]:
    """Each channel normalized: by running statistics, or (training) by those of the batch."""
    emit, rank = context.emit, context.rank(x, "X")
    parameters = [scale, bias, mean, variance]
    if (
        not training_mode
        and x.dtype in ("float32", "float64")
        and all(value.dtype == x.dtype for value in parameters)
    ):
        # the operator that passes know: it folds into a convolution before it
        exprs = [value.expr for value in parameters]
        return [emit(emit(op.nn.batch_norm(x.expr, *exprs, 1, epsilon, training=False))[0])]
    kind = "float32" if x.dtype in ("float16", "bfloat16") else x.dtype
    data = context.as_type(x.expr, kind)
    running = [context.as_type(value.expr, kind) for value in (mean, variance)]
    results = []
    if training_mode:
        axes = [axis for axis in range(rank) if axis != 1]
        current = [emit(op.mean(data, axes)), emit(op.variance(data, axes))]
        keep = context.constant(momentum, kind).expr
        take = context.constant(1 - momentum, kind).expr
        for old, new, moment in zip(running, current, (mean, variance), strict=True):
            mixed = emit(op.add(emit(op.multiply(old, keep)), emit(op.multiply(new, take))))
            results.append(context.as_type(mixed, moment.dtype))
        running = current
    wide = [_per_channel(context, item, rank) for item in running]
    normal = _normalized(context, data, (wide[0], wide[1]), epsilon)
    factors = [_per_channel(context, context.as_type(v.expr, kind), rank) for v in (scale, bias)]
    scaled = emit(op.add(emit(op.multiply(normal, factors[0])), factors[1]))
    return [context.as_type(scaled, x.dtype), *results]


@converter("InstanceNormalization", ignores=["consumed_inputs"])
def instance_norm(
    context: Context, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5
) -> Expr:
    """Each channel of each batch normalized by its own mean and variance."""
    emit, rank = context.emit, context.rank(x, "input")
    axes = list(range(2, rank))
    moments = (emit(op.mean(x.expr, axes, True)), emit(op.variance(x.expr, axes, True)))
    normal = _normalized(context, x.expr, moments, epsilon)
    factors = [_per_channel(context, value.expr, rank) for value in (scale, bias)]
    return emit(op.add(emit(op.multiply(normal, factors[0])), factors[1]))


@converter("LayerNormalization", since=17)
def layer_norm(
    context: Context,
    x: Value,
    scale: Value,
    bias: Value | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> list[Expr]:
    """The axes from ``axis`` on normalized together; also the mean and 1 / deviation."""
    emit = context.emit
    axes = list(range(context.axis(x, axis), context.rank(x, "X")))
    kind = STORAGE[stash_type]
    alone = not context.wants(1) and not context.wants(2)
    if alone and bias is not None and x.dtype == kind == scale.dtype == bias.dtype:
        if scale.shape == bias.shape == (context.shape(x, "X")[axes[0] :]):
            return [emit(op.nn.layer_norm(x.expr, scale.expr, bias.expr, axes, epsilon))]
    data = context.as_type(x.expr, kind)
    mean = emit(op.mean(data, axes, True))
    variance = emit(op.variance(data, axes, True))
    inverse = emit(op.rsqrt(emit(op.add(variance, context.constant(epsilon, kind).expr))))
    normal = emit(op.multiply(emit(op.subtract(data, mean)), inverse))
    output = emit(op.multiply(context.as_type(normal, x.dtype), scale.expr))
    if bias is not None:
        output = emit(op.add(output, bias.expr))
    return [output, mean, inverse]


@converter("RMSNormalization", since=23)
def rms_norm(
    context: Context,
    x: Value,
    scale: Value,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Expr:
    """Divided by the root of the mean square over the axes from ``axis`` on."""
    emit = context.emit
    axes = list(range(context.axis(x, axis), context.rank(x, "X")))
    kind = STORAGE[stash_type]
    data = context.as_type(x.expr, kind)
    mean = emit(op.mean(emit(op.multiply(data, data)), axes, True))
    inverse = emit(op.rsqrt(emit(op.add(mean, context.constant(epsilon, kind).expr))))
    normal = context.as_type(emit(op.multiply(data, inverse)), scale.dtype)
    return emit(op.multiply(normal, scale.expr))


@converter("GroupNormalization", since=18)
def group_norm_of_groups(
    context: Context,
    x: Value,
    scale: Value,
    bias: Value,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
) -> Expr:
    """In opset 18 scale and bias are for each group."""
    emit = context.emit
    shape = context.shape(x, "X")
    normal = _grouped(context, x, num_groups, (epsilon, x.dtype))
    factors = [emit(op.reshape(value.expr, [1, num_groups, 1])) for value in (scale, bias)]
    scaled = emit(op.add(emit(op.multiply(normal, factors[0])), factors[1]))
    return emit(op.reshape(scaled, shape))


@converter("GroupNormalization", since=21)
def group_norm(
    context: Context,
    x: Value,
    scale: Value,
    bias: Value,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Expr:
    """Groups of channels normalized together; scale and bias are for each channel."""
    emit = context.emit
    shape = context.shape(x, "X")
    grouped = _grouped(context, x, num_groups, (epsilon, STORAGE[stash_type]))
    normal = context.as_type(emit(op.reshape(grouped, shape)), x.dtype)
    factors = [_per_channel(context, value.expr, len(shape)) for value in (scale, bias)]
    return emit(op.add(emit(op.multiply(normal, factors[0])), factors[1]))


def _grouped(context: Context, x: Value, groups: int, options: tuple[float, str]) -> Expr:
    epsilon, kind = options
    emit = context.emit
    shape = context.shape(x, "X")
    data = context.as_type(emit(op.reshape(x.expr, [shape[0], groups, -1])), kind)
    moments = (emit(op.mean(data, [2], True)), emit(op.variance(data, [2], True)))
    return _normalized(context, data, moments, epsilon)


@converter("LpNormalization")
def lp_norm(context: Context, x: Value, *, axis: int = -1, p: int = 2) -> Expr:
    """Divided by the norm along an axis; a norm of zero leaves zeros."""
    emit = context.emit
    place = context.axis(x, axis)
    if p == 1:
        norm = emit(op.sum(emit(op.abs(x.expr)), [place], True))
    elif p == 2:
        norm = emit(op.sqrt(emit(op.sum(emit(op.multiply(x.expr, x.expr)), [place], True))))
    else:
        return context.fail(f"p: expected 1 or 2, got {p}")
    zero, unit = (context.constant(value, x.dtype).expr for value in (0, 1))
    safe = emit(op.where(emit(op.equal(norm, zero)), unit, norm))
    return emit(op.divide(x.expr, safe))


@converter("MeanVarianceNormalization", since=9)
def mean_variance_norm(context: Context, x: Value, *, axes: Sequence[int] = (0, 2, 3)) -> Expr:
    """Less the mean, divided by the deviation (plus 1e-9), over axes."""
    emit = context.emit
    mean = emit(op.mean(x.expr, list(axes), True))
    deviation = emit(op.sqrt(emit(op.variance(x.expr, list(axes), True))))
    divisor = emit(op.add(deviation, context.constant(1e-9, x.dtype).expr))
    return emit(op.divide(emit(op.subtract(x.expr, mean)), divisor))


@converter("LRN")
def local_response_norm(
    context: Context,
    x: Value,
    *,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Expr:
    """Divided by a power of the sum of squares of neighbouring channels.

    Of an even size one channel more is read after than before, as ONNX's text has it (PyTorch
    reads one more before).
    """
    if size < 1:
        context.fail(f"size: expected at least one channel, got {size}")
    return context.emit(op.nn.lrn(x.expr, size, 1, alpha, beta, bias))


@converter("Dropout", ignores=["consumed_inputs", "is_test", "ratio", "seed"])
def dropout_attribute(context: Context, x: Value) -> list[Expr | Value]:
    """Until opset 11 a model for inference only: the data itself, and a mask of ones."""
    shape = context.shape(x, "data")
    kind = "bool" if context.opset >= 10 else x.dtype
    return [x, op.full(shape, context.constant(1, kind).expr, kind)]


@converter("Dropout", since=12)
def dropout(
    context: Context,
    x: Value,
    ratio: Value | None = None,
    training_mode: Value | None = None,
    *,
    seed: int | None = None,
) -> list[Expr | Value]:
    """The data itself; in training mode elements become 0, by numpy's generator and the seed."""
    shape = context.shape(x, "data")
    training = training_mode is not None and bool(context.array(training_mode, "training_mode"))
    rate = 0.5 if ratio is None else None
    if training and rate is None:
        rate = float(context.array(ratio, "ratio"))
    mask = op.full(shape, context.constant(True).expr, "bool")
    if not training or not rate:
        return [x, mask]
    sizes = context.numbers(x, "data")
    kept = np.random.RandomState(seed).uniform(0, 1.0, sizes) >= rate
    scale = context.constant(1 / (1 - rate), x.dtype).expr
    chosen = context.emit(op.multiply(x.expr, context.constant(kept.astype(x.dtype)).expr))
    return [context.emit(op.multiply(chosen, scale)), context.constant(kept)]
