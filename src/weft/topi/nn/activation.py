"""Activations: element-wise functions of neural networks."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr
from weft.support.errors import IRValueError
from weft.te.operation import compute
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.intrinsic import expm1
from weft.tir.intrinsic import gelu as gelu_of
from weft.tir.intrinsic import gelu_tanh as gelu_tanh_of
from weft.tir.intrinsic import silu as silu_of
from weft.topi import tag
from weft.topi.extents import (
    compute_ax,
    is_const,
    may_be_equal,
    normalize_axis,
    shape_text,
)
from weft.topi.math import elementwise

__all__ = [
    "bias_add", "celu", "elu", "gelu", "gelu_tanh", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "leaky_relu", "log_sigmoid", "mish", "prelu", "relu", "relu6",
    "scale_shift_nchw", "scale_shift_nchwc", "scale_shift_nhwc", "selu", "silu", "softplus",
    "softshrink", "softsign", "tanhshrink",
]  # fmt: skip


def _const(value: float, like: PrimExpr) -> PrimExpr:
    return op.const(value, like.dtype)


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return elementwise(x, lambda v: op.maximum(v, _const(0, v)))


def relu6(x: Tensor) -> Tensor:
    """min(max(x, 0), 6)."""
    return elementwise(x, lambda v: op.minimum(op.maximum(v, _const(0, v)), _const(6, v)))


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """x where it is positive, else alpha * x."""

    def leaky(value: PrimExpr) -> PrimExpr:
        slope = _const(alpha, value)
        return op.select(op.greater(value, _const(0, value)), value, value * slope)

    return _in_float32(x, leaky)


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where it is positive, else slope[channel] * x; ``axis`` is the axis of channels.

    A slope of one element is used for every channel.
    """
    place = normalize_axis(axis, x.ndim, "prelu")
    is_shared = slope.ndim == 1 and is_const(slope.shape[0], 1)
    if slope.ndim != 1 or not (is_shared or may_be_equal(slope.shape[0], x.shape[place])):
        raise IRValueError(
            f"prelu: expected a slope of shape ({x.shape[place]},), got {shape_text(slope.shape)}"
        )

    def channelwise(*indices: PrimExpr) -> PrimExpr:
        value = x(*indices)
        positive = op.greater(value, _const(0, value))
        return op.select(positive, value, value * slope(0 if is_shared else indices[place]))

    return compute(x.shape, channelwise)


def _in_float32(x: Tensor, function: Callable[[PrimExpr], PrimExpr]) -> Tensor:
    """``function`` of every element; for float16 and bfloat16 in float32, rounded once."""

    def curve(value: PrimExpr) -> PrimExpr:
        if not value.dtype.is_float or value.dtype.bits >= 32:
            return function(value)
        return op.cast(value.dtype, function(op.cast("float32", value)))

    return elementwise(x, curve)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1)."""

    def curve(value: PrimExpr) -> PrimExpr:
        below = _const(alpha, value) * expm1(value)
        return op.select(op.greater(value, _const(0, value)), value, below)

    return _in_float32(x, curve)


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""

    def curve(value: PrimExpr) -> PrimExpr:
        below = _const(alpha, value) * expm1(op.div(value, _const(alpha, value)))
        return op.select(op.greater(value, _const(0, value)), value, below)

    return _in_float32(x, curve)


def selu(x: Tensor) -> Tensor:
    """The scaled elu with its two fixed constants."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805

    def curve(value: PrimExpr) -> PrimExpr:
        above, below = _const(scale, value) * value, _const(scale * alpha, value) * expm1(value)
        return op.select(value > _const(0, value), above, below)

    return _in_float32(x, curve)


def gelu(x: Tensor) -> Tensor:
    """x * (1 + erf(x / sqrt 2)) / 2, without cancellation for negative x."""
    return elementwise(x, gelu_of)


def gelu_tanh(x: Tensor) -> Tensor:
    """gelu approximated by tanh."""
    return elementwise(x, gelu_tanh_of)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return elementwise(x, silu_of)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""

    def curve(value: PrimExpr) -> PrimExpr:
        scaled = value * _const(beta, value)
        rest = op.log1p(op.exp(-op.abs(scaled)))
        smooth = op.div(op.maximum(scaled, _const(0, value)) + rest, _const(beta, value))
        return op.select(scaled > _const(threshold, value), value, smooth)

    return _in_float32(x, curve)


def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return _in_float32(x, lambda v: op.div(v, _const(1, v) + op.abs(v)))


def hardsigmoid(x: Tensor) -> Tensor:
    """clip(x + 3, 0, 6) / 6."""
    return _in_float32(x, _hardsigmoid)


def _hardsigmoid(value: PrimExpr) -> PrimExpr:
    moved = value + _const(3, value)
    limited = op.minimum(op.maximum(moved, _const(0, value)), _const(6, value))
    return op.div(limited, _const(6, value))


def hardswish(x: Tensor) -> Tensor:
    """x * hardsigmoid(x)."""
    return _in_float32(x, lambda v: v * _hardsigmoid(v))


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x limited to [min_val, max_val]."""
    return elementwise(
        x, lambda v: op.maximum(op.minimum(v, _const(max_val, v)), _const(min_val, v))
    )


def mish(x: Tensor) -> Tensor:
    """x * tanh(log(1 + exp(x))), which is x * n / (n + 2) with n = e * (e + 2), e = exp(x).

    For float32 all but e is computed in float64, as five roundings would add up.
    """

    def curve(value: PrimExpr) -> PrimExpr:
        power = op.cast("float64", op.exp(op.minimum(value, _const(20, value))))
        n = power * (power + _const(2, power))
        curved = op.cast("float64", value) * op.div(n, n + _const(2, power))
        # above 20, n / (n + 2) is 1
        return op.select(value > _const(20, value), value, op.cast(value.dtype, curved))

    return _in_float32(x, curve)


def log_sigmoid(x: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x))) as min(x, 0) - log(1 + exp(-|x|)), which does not overflow."""

    def curve(value: PrimExpr) -> PrimExpr:
        rest: PrimExpr = op.log1p(op.exp(-op.abs(value)))
        return op.minimum(value, _const(0, value)) - rest

    return _in_float32(x, curve)


def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, else 0."""

    def curve(value: PrimExpr) -> PrimExpr:
        small = op.less_equal(op.abs(value), _const(lambd, value))
        return op.select(small, _const(0, value), value)

    return elementwise(x, curve)


def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x - lambd above lambd, x + lambd below -lambd, else 0."""

    def curve(value: PrimExpr) -> PrimExpr:
        edge = _const(lambd, value)
        moved = op.select(op.greater(value, edge), value - edge, value + edge)
        return op.select(op.less_equal(op.abs(value), edge), _const(0, value), moved)

    return _in_float32(x, curve)


def tanhshrink(x: Tensor) -> Tensor:
    """x - tanh(x)."""
    return _in_float32(x, lambda v: v - op.tanh(v))


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """data + bias[channel]; ``axis`` is the axis of channels."""
    place = normalize_axis(axis, data.ndim, "bias_add")
    if bias.ndim != 1 or not may_be_equal(bias.shape[0], data.shape[place]):
        raise IRValueError(
            f"bias_add: expected a bias of shape ({data.shape[place]},), got "
            f"{shape_text(bias.shape)}"
        )
    return compute_ax(data.shape, lambda *i: data(*i) + bias(i[place]), "T_add", tag=tag.BROADCAST)


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 - as TVM
    """Input * Scale[c] + Shift[c] of NCHW data (inference batch norm, folded)."""
    return compute(
        Input.shape, lambda b, c, i, j: Input(b, c, i, j) * Scale(c) + Shift(c), name="ScaleShift"
    )


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 - as TVM
    """Input * Scale[c] + Shift[c] of NHWC data."""
    return compute(
        Input.shape, lambda b, i, j, c: Input(b, i, j, c) * Scale(c) + Shift(c), name="ScaleShift"
    )


def scale_shift_nchwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 - as TVM
    """Input * Scale[c, i] + Shift[c, i] of NCHWc data, whose last axis i splits the channels."""
    return compute(
        Input.shape,
        lambda b, cc, i, j, cb: Input(b, cc, i, j, cb) * Scale(cc, cb) + Shift(cc, cb),
        name="ScaleShift",
    )
