"""Activations: element-wise functions of neural networks."""

from __future__ import annotations

import math
from typing import Any

from weft.ir.expr import PrimExpr
from weft.support.errors import IRValueError
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    compute_ax,
    compute_one,
    is_const,
    may_be_equal,
    normalize_axis,
    shape_text,
)
from weft.topi.math import elementwise


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

    def leaky(value: PrimExpr) -> Any:
        slope = _const(alpha, value)
        return op.select(op.greater(value, _const(0, value)), value, value * slope)

    return elementwise(x, leaky)


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where it is positive, else slope[channel] * x; ``axis`` is the channels'.

    A slope of one element is every channel's.
    """
    place = normalize_axis(axis, x.ndim, "prelu")
    is_shared = slope.ndim == 1 and is_const(slope.shape[0], 1)
    if slope.ndim != 1 or not (is_shared or may_be_equal(slope.shape[0], x.shape[place])):
        raise IRValueError(
            f"prelu: expected a slope of shape ({x.shape[place]},), got {shape_text(slope.shape)}"
        )

    def channelwise(*indices: Any) -> Any:
        value = x(*indices)
        positive = op.greater(value, _const(0, value))
        return op.select(positive, value, value * slope(0 if is_shared else indices[place]))

    return compute_one(x.shape, channelwise)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1)."""

    def curve(value: PrimExpr) -> Any:
        below = _const(alpha, value) * (op.exp(value) - _const(1, value))
        return op.select(op.greater(value, _const(0, value)), value, below)

    return elementwise(x, curve)


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x / alpha) - 1)."""

    def curve(value: PrimExpr) -> Any:
        grown = op.exp(op.div(value, _const(alpha, value)))
        below = _const(alpha, value) * (grown - _const(1, value))
        return op.select(op.greater(value, _const(0, value)), value, below)

    return elementwise(x, curve)


def selu(x: Tensor) -> Tensor:
    """The scaled elu with its fixed two constants."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805

    def curve(value: PrimExpr) -> Any:
        below = _const(alpha, value) * (op.exp(value) - _const(1, value))
        return _const(scale, value) * op.select(value > _const(0, value), value, below)

    return elementwise(x, curve)


def gelu(x: Tensor) -> Tensor:
    """x * (1 + erf(x / sqrt 2)) / 2."""

    def curve(value: PrimExpr) -> Any:
        inner = op.erf(value * _const(math.sqrt(0.5), value))
        return value * (_const(0.5, value) + inner * _const(0.5, value))

    return elementwise(x, curve)


def gelu_tanh(x: Tensor) -> Tensor:
    """gelu approximated by tanh."""

    def curve(value: PrimExpr) -> Any:
        cube = _const(0.044715, value) * value * value * value
        inner = op.tanh(_const(math.sqrt(2 / math.pi), value) * (value + cube))
        return _const(0.5, value) * value * (_const(1, value) + inner)

    return elementwise(x, curve)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x)."""
    return elementwise(x, lambda v: v * op.sigmoid(v))


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""

    def curve(value: PrimExpr) -> Any:
        scaled = value * _const(beta, value)
        smooth = op.log(_const(1, value) + op.exp(scaled)) * _const(1 / beta, value)
        return op.select(scaled > _const(threshold, value), value, smooth)

    return elementwise(x, curve)


def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return elementwise(x, lambda v: op.div(v, _const(1, v) + op.abs(v)))


def hardsigmoid(x: Tensor) -> Tensor:
    """clip(x + 3, 0, 6) / 6."""
    return elementwise(x, _hardsigmoid)


def _hardsigmoid(value: PrimExpr) -> PrimExpr:
    moved = value + _const(3, value)
    limited = op.minimum(op.maximum(moved, _const(0, value)), _const(6, value))
    return op.div(limited, _const(6, value))


def hardswish(x: Tensor) -> Tensor:
    """x * hardsigmoid(x)."""
    return elementwise(x, lambda v: v * _hardsigmoid(v))


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x limited to [min_val, max_val]."""
    return elementwise(
        x, lambda v: op.maximum(op.minimum(v, _const(max_val, v)), _const(min_val, v))
    )


def mish(x: Tensor) -> Tensor:
    """x * tanh(log(1 + exp(x)))."""
    return elementwise(x, lambda v: v * op.tanh(op.log(_const(1, v) + op.exp(v))))


def log_sigmoid(x: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x))) as min(x, 0) - log(1 + exp(-|x|)), which does not overflow."""

    def curve(value: PrimExpr) -> Any:
        rest = op.log(_const(1, value) + op.exp(-op.abs(value)))
        return op.minimum(value, _const(0, value)) - rest

    return elementwise(x, curve)


def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x where |x| > lambd, else 0."""

    def curve(value: PrimExpr) -> Any:
        small = op.less_equal(op.abs(value), _const(lambd, value))
        return op.select(small, _const(0, value), value)

    return elementwise(x, curve)


def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x - lambd above lambd, x + lambd below -lambd, else 0."""

    def curve(value: PrimExpr) -> Any:
        edge = _const(lambd, value)
        moved = op.select(op.greater(value, edge), value - edge, value + edge)
        return op.select(op.less_equal(op.abs(value), edge), _const(0, value), moved)

    return elementwise(x, curve)


def tanhshrink(x: Tensor) -> Tensor:
    """x - tanh(x)."""
    return elementwise(x, lambda v: v - op.tanh(v))


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """``bias[channel]`` added; ``axis`` is the channels'."""
    place = normalize_axis(axis, data.ndim, "bias_add")
    if bias.ndim != 1 or not may_be_equal(bias.shape[0], data.shape[place]):
        raise IRValueError(
            f"bias_add: expected a bias of shape ({data.shape[place]},), got "
            f"{shape_text(bias.shape)}"
        )
    return compute_ax(
        data.shape, lambda *i: data(*i) + bias(i[place]), "T_add", tag=tag.BROADCAST
    )


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 - as TVM
    """Input * Scale[c] + Shift[c] of NCHW data (inference batch norm, folded)."""
    return compute_one(
        Input.shape, lambda b, c, i, j: Input(b, c, i, j) * Scale(c) + Shift(c), name="ScaleShift"
    )


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 - as TVM
    """Input * Scale[c] + Shift[c] of NHWC data."""
    return compute_one(
        Input.shape, lambda b, i, j, c: Input(b, i, j, c) * Scale(c) + Shift(c), name="ScaleShift"
    )


def scale_shift_nchwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:  # noqa: N803 - as TVM
    """Input * Scale[c, i] + Shift[c, i] of NCHWc data, whose last axis i splits the channels."""
    return compute_one(
        Input.shape,
        lambda b, cc, i, j, cb: Input(b, cc, i, j, cb) * Scale(cc, cb) + Shift(cc, cb),
        name="ScaleShift",
    )
