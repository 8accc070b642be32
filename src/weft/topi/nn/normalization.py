"""Normalisations. Sums of 16-bit floats are taken in float32 (see weft.topi.moments)."""

from __future__ import annotations

from weft.ir.expr import IntImm, PrimExpr, as_prim_expr
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Axes,
    Point,
    Shape,
    compute_ax,
    const_int,
    may_be_equal,
    normalize_axes,
    normalize_axis,
    product,
    shape_text,
)
from weft.topi.math import identity
from weft.topi.moments import Moments, wide


def _check_parameter(what: str, tensor: Tensor | None, shape: Shape) -> None:
    if tensor is None:
        return
    fits = tensor.ndim == len(shape) and not [
        1 for a, b in zip(tensor.shape, shape, strict=True) if not may_be_equal(a, b)
    ]
    if not fits:
        raise IRValueError(
            f"{what}: expected the shape {shape_text(shape)}, got {shape_text(tensor.shape)}"
        )


def _affine(value: PrimExpr, gamma: Tensor | None, beta: Tensor | None, point: Point) -> PrimExpr:
    if gamma is not None:
        value = value * op.cast(value.dtype, gamma(*point))
    return value if beta is None else value + op.cast(value.dtype, beta(*point))


def layer_norm(
    data: Tensor, gamma: Tensor | None, beta: Tensor | None, axis: Axes, epsilon: float = 1e-5
) -> Tensor:
    """The data normalised over ``axis``, times gamma, plus beta (both of the shape of the axes)."""
    axes = normalize_axes(axis, data.ndim, "layer_norm")
    shape = [data.shape[i] for i in axes]
    _check_parameter("layer_norm: gamma", gamma, shape)
    _check_parameter("layer_norm: beta", beta, shape)
    moments = Moments(data, axes, data.op.name)

    def element(*point: PrimExpr) -> PrimExpr:
        value = moments.normalized(point, epsilon)
        result = _affine(value, gamma, beta, [point[i] for i in axes])
        return op.cast(data.dtype, result)

    return compute_ax(data.shape, element, "T_layer_norm", tag=tag.INJECTIVE)


def group_norm(
    data: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    num_groups: int,
    channel_axis: int,
    axes: Axes,
    epsilon: float = 1e-5,
) -> Tensor:
    """The data normalised over ``axes`` and each group of channels; gamma, beta per channel."""
    channel = normalize_axis(channel_axis, data.ndim, "group_norm")
    spatial = normalize_axes(axes, data.ndim, "group_norm")
    groups = const_int(num_groups, "group_norm: num_groups")
    channels = data.shape[channel]
    if channel in spatial:
        raise IRValueError(f"group_norm: axes {tuple(spatial)} hold the channel axis {channel}")
    if groups < 1 or (isinstance(channels, IntImm) and channels.value % groups):
        raise IRValueError(f"group_norm: {channels} channels do not divide into {groups} groups")
    _check_parameter("group_norm: gamma", gamma, [channels])
    _check_parameter("group_norm: beta", beta, [channels])
    width = op.floordiv(channels, groups)
    grouped = compute_ax(
        [*data.shape[:channel], groups, width, *data.shape[channel + 1 :]],
        lambda *i: data(*i[:channel], i[channel] * width + i[channel + 1], *i[channel + 2 :]),
        "T_reshape",
        tag=tag.INJECTIVE,
    )
    reduced = [channel + 1, *[axis + (axis > channel) for axis in spatial]]
    moments = Moments(grouped, sorted(reduced), data.op.name)

    def element(*point: PrimExpr) -> PrimExpr:
        index = point[channel]
        inside = (op.floordiv(index, width), op.floormod(index, width))
        value = moments.normalized((*point[:channel], *inside, *point[channel + 1 :]), epsilon)
        return op.cast(data.dtype, _affine(value, gamma, beta, [index]))

    return compute_ax(data.shape, element, "T_group_norm", tag=tag.INJECTIVE)


def instance_norm(
    data: Tensor,
    gamma: Tensor | None,
    beta: Tensor | None,
    channel_axis: int,
    axis: Axes,
    epsilon: float = 1e-5,
) -> Tensor:
    """The data normalised over ``axis`` for each sample and channel; gamma, beta per channel."""
    channel = normalize_axis(channel_axis, data.ndim, "instance_norm")
    axes = normalize_axes(axis, data.ndim, "instance_norm")
    _check_parameter("instance_norm: gamma", gamma, [data.shape[channel]])
    _check_parameter("instance_norm: beta", beta, [data.shape[channel]])
    moments = Moments(data, axes, data.op.name)

    def element(*point: PrimExpr) -> PrimExpr:
        value = moments.normalized(point, epsilon)
        return op.cast(data.dtype, _affine(value, gamma, beta, [point[channel]]))

    return compute_ax(data.shape, element, "T_instance_norm", tag=tag.INJECTIVE)


def rms_norm(data: Tensor, weight: Tensor, axis: Axes, epsilon: float = 1e-5) -> Tensor:
    """x * weight / sqrt(mean(x * x) + epsilon) over ``axis``."""
    axes = normalize_axes(axis, data.ndim, "rms_norm")
    _check_parameter("rms_norm: weight", weight, [data.shape[i] for i in axes])
    dtype = wide(data.dtype)
    ks = [reduce_axis((0, data.shape[i]), name=f"k{i}") for i in axes]
    outer_shape = [extent for i, extent in enumerate(data.shape) if i not in axes]

    def square_sum(*outer: PrimExpr) -> PrimExpr:
        remaining = list(outer)
        source = [
            ks[axes.index(i)].var if i in axes else remaining.pop(0) for i in range(data.ndim)
        ]
        value = op.cast(dtype, data(*source))
        return te_reduction.sum(value * value, axis=ks)

    total = compute_ax(outer_shape, square_sum, "T_multiply_red", tag=tag.COMM_REDUCE)
    count = op.cast(dtype, as_prim_expr(product([data.shape[i] for i in axes])))
    inverse = compute_ax(
        outer_shape,
        lambda *i: op.rsqrt(op.div(total(*i), count) + op.const(epsilon, dtype)),
        "rsqrt",
        tag=tag.INJECTIVE,
    )

    def element(*point: PrimExpr) -> PrimExpr:
        outer = [index for i, index in enumerate(point) if i not in axes]
        value = inverse(*outer) * op.cast(dtype, data(*point))
        return op.cast(data.dtype, _affine(value, weight, None, [point[i] for i in axes]))

    return compute_ax(data.shape, element, "T_rms_norm", tag=tag.INJECTIVE)


def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> list[Tensor]:
    """The data normalised by the moving statistics of every channel (inference).

    Returns ``[out, moving_mean, moving_var]``. With ``training=True`` the statistics of the batch
    are used instead, and the moving ones are updated by ``momentum`` (0.1).
    """
    place = normalize_axis(1 if axis is None else axis, data.ndim, "batch_norm")
    small = 1e-5 if epsilon is None else epsilon
    parameters = {"gamma": gamma, "beta": beta, "mean": moving_mean, "variance": moving_var}
    for name, tensor in parameters.items():
        _check_parameter(f"batch_norm: {name}", tensor, [data.shape[place]])
    mean, variance = moving_mean, moving_var
    if training:
        mean, variance = _batch_statistics(data, place)

    def element(*point: PrimExpr) -> PrimExpr:
        channel = point[place]
        deviation = op.sqrt(variance(channel) + op.const(small, variance.dtype))
        value = op.div(data(*point) - mean(channel), deviation)
        use_scale, use_center = scale is not False, center is not False
        return _affine(value, gamma if use_scale else None, beta if use_center else None, [channel])

    out = compute_ax(data.shape, element, "T_batch_norm", tag=tag.BROADCAST)
    if not training:
        return [out, identity(moving_mean), identity(moving_var)]
    rate = 0.1 if momentum is None else momentum
    moved = [_moving(old, new, rate) for old, new in ((moving_mean, mean), (moving_var, variance))]
    return [out, *moved]


def _batch_statistics(data: Tensor, place: int) -> tuple[Tensor, Tensor]:
    moments = Moments(data, [i for i in range(data.ndim) if i != place], data.op.name)
    mean = compute_ax(moments.outer_shape, lambda *i: moments.mean(i), "T_divide")
    variance = compute_ax(moments.outer_shape, lambda *i: moments.variance(i), "T_subtract")
    return mean, variance


def _moving(old: Tensor, new: Tensor, rate: float) -> Tensor:
    keep, take = op.const(1 - rate, old.dtype), op.const(rate, old.dtype)
    return compute_ax(old.shape, lambda *i: keep * old(*i) + take * new(*i), "T_add")


def lrn(
    data: Tensor,
    size: int,
    axis: int = 1,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 2.0,
) -> Tensor:
    """data / (bias + alpha / size * sum of squares of ``size`` neighbours) ** beta.

    Half of the neighbours are before; if the size is even, one more is after (as in ONNX).
    """
    place = normalize_axis(axis, data.ndim, "lrn")
    if size < 1:
        raise IRValueError(f"lrn: expected a positive size, got {size}")
    window = reduce_axis((0, size), name="rxs")
    half = (size - 1) // 2

    def squares(*point: PrimExpr) -> PrimExpr:
        moved = point[place] + window.var - half
        inside = op.logical_and(op.less_equal(0, moved), op.less(moved, data.shape[place]))
        value: PrimExpr = data(*point[:place], moved, *point[place + 1 :])
        value = op.if_then_else(inside, value, op.const(0, data.dtype))
        return te_reduction.sum(value * value, axis=window)

    total = compute_ax(data.shape, squares, "tensor")

    def element(*point: PrimExpr) -> PrimExpr:
        scale = op.const(bias, data.dtype) + op.const(alpha / size, data.dtype) * total(*point)
        return op.div(data(*point), op.power(scale, op.const(beta, data.dtype)))

    return compute_ax(data.shape, element, "T_lrn", tag=tag.BROADCAST)
