"""Activations of neural networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.pointwise import in_wide_float
from weft.relax.frontend.torch.operators.views import axis_of
from weft.relax.frontend.torch.registry import CONVERTERS, converter
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError

PLAIN: Final[dict[str, Callable[[Expr], Expr]]] = {
    "relu6": op.nn.relu6, "selu": op.nn.selu, "silu": op.nn.silu,
    "mish": op.nn.mish, "hardswish": op.nn.hardswish, "hardsigmoid": op.nn.hardsigmoid,
    "log_sigmoid": op.nn.log_sigmoid,
}  # fmt: skip
"""Functions of the tensor alone."""


def _plain(function: Callable[[Expr], Expr]) -> Callable[..., Expr]:
    return lambda context, self: function(self)


for _name, _function in PLAIN.items():
    CONVERTERS[f"aten.{_name}.default"] = _plain(_function)


@converter("aten.gelu.default")
def gelu(context: Context, self: Expr, approximate: str = "none") -> Expr:
    """x times the normal distribution's function of x, or its approximation by tanh."""
    return op.nn.gelu_tanh(self) if approximate == "tanh" else op.nn.gelu(self)


@converter("aten.hardtanh.default")
def hardtanh(context: Context, self: Expr, min_val: float = -1, max_val: float = 1) -> Expr:
    """Limited to an interval."""
    as_number = float if DataType(context.dtype).is_float else int
    return op.clip(self, as_number(min_val), as_number(max_val))


@converter("aten.rrelu_with_noise.default", "aten.rrelu_with_noise_functional.default")
def rrelu(
    context: Context,
    self: Expr,
    noise: Expr,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    *_: object,
) -> Expr | list[Expr]:
    """x, below 0 times the mean of the slopes: what inference does."""
    if training:
        raise UnsupportedError(
            "rrelu: training draws slopes at random; call model.eval() before it is captured"
        )
    activated = op.nn.leakyrelu(self, (lower + upper) / 2)
    return [activated, noise] if len(context.results) == 2 else activated


@converter("aten.leaky_relu.default")
def leaky_relu(context: Context, self: Expr, negative_slope: float = 0.01) -> Expr:
    """x, below 0 times the slope."""
    return op.nn.leakyrelu(self, float(negative_slope))


@converter("aten.elu.default")
def elu(
    context: Context, self: Expr, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> Expr:
    """``scale * x``, below 0 ``scale * alpha * (exp(input_scale * x) - 1)``."""
    if (scale, input_scale) == (1, 1):
        return op.nn.elu(self, float(alpha))

    def function(x: Expr) -> Expr:
        kind, emit = context.dtype_of(x), context.emit
        inner = emit(op.multiply(x, const(input_scale, kind)))
        below = emit(op.multiply(emit(op.expm1(inner)), const(alpha * scale, kind)))
        above = emit(op.multiply(x, const(scale, kind)))
        return op.where(emit(op.greater(x, const(0, kind))), above, below)

    return in_wide_float(context, function, self)


@converter("aten.celu.default")
def celu(context: Context, self: Expr, alpha: float = 1.0) -> Expr:
    """x, below 0 ``alpha * (exp(x / alpha) - 1)``."""
    return op.nn.celu(self, float(alpha))


@converter("aten.softplus.default")
def softplus(context: Context, self: Expr, beta: float = 1, threshold: float = 20) -> Expr:
    """``log(1 + exp(beta x)) / beta``, x where ``beta x`` exceeds the threshold."""
    return op.nn.softplus(self, float(beta), float(threshold))


@converter("aten.softshrink.default")
def softshrink(context: Context, self: Expr, lambd: float = 0.5) -> Expr:
    """x drawn towards 0 by lambd."""
    return op.nn.softshrink(self, float(lambd))


@converter("aten.hardshrink.default")
def hardshrink(context: Context, self: Expr, lambd: float = 0.5) -> Expr:
    """x, 0 where it is within lambd of 0."""
    return op.nn.hardshrink(self, float(lambd))


@converter("aten.threshold.default")
def threshold(context: Context, self: Expr, threshold: float, value: float) -> Expr:
    """The value where x is at most the threshold, else x: NaN stays NaN."""
    number = context.operand
    is_low = op.less_equal(self, number(threshold, context.dtype))
    return op.where(is_low, number(value, context.dtype), self)


@converter("aten.log_sigmoid_forward.default")
def log_sigmoid_forward(context: Context, self: Expr) -> list[Expr]:
    """The logarithm of the sigmoid, and ``exp(-|x|)``, which torch keeps for the gradient."""
    return [op.nn.log_sigmoid(self), op.exp(op.negative(op.abs(self)))]


@converter("aten._prelu_kernel.default", "aten.prelu.default")
def prelu(context: Context, self: Expr, weight: Expr) -> Expr:
    """x, below 0 times a learnt slope, one for each channel (dimension 1) or for all."""
    rank, slopes = context.rank(self), context.rank(weight)
    if rank > 1 and slopes == 1:
        weight = op.reshape(weight, [1, -1, *[1] * (rank - 2)])
    elif slopes > rank:
        weight = op.reshape(weight, [1] * rank)
    zero = context.operand(0, context.dtype)
    return op.where(op.greater(self, zero), self, op.multiply(self, weight))


@converter("aten.glu.default")
def glu(context: Context, self: Expr, dim: int = -1) -> Expr:
    """The first half times the sigmoid of the second."""
    axis = axis_of(dim, context.rank(self))
    halves = context.emit(op.split(self, 2, axis))
    wide = "float32" if DataType(context.dtype).bits < 32 else None
    first, second = [context.cast(context.emit(halves[number]), wide) for number in (0, 1)]
    return context.cast(op.multiply(first, op.sigmoid(second)), context.dtype)


@converter("aten.softmax.int", "aten._softmax.default")
def softmax(context: Context, self: Expr, dim: int, dtype: str | None = None) -> Expr:
    """Exponentials, divided by their sum along a dimension."""
    return _along(context, self, dim, op.nn.softmax)


@converter("aten._safe_softmax.default")
def safe_softmax(context: Context, self: Expr, dim: int, dtype: str | None = None) -> Expr:
    """softmax; zeros where nothing but -inf stands along the dimension."""
    weights = context.emit(_along(context, self, dim, op.nn.softmax))
    dims, given = context.dims(self), context.dtype_of(self)
    if not dims:
        return weights
    top = op.max(self, [axis_of(dim, len(dims))], keepdims=True)
    blind = op.equal(top, context.operand(float("-inf"), given))
    return op.where(blind, context.operand(0, context.dtype), weights)


@converter("aten.log_softmax.int", "aten._log_softmax.default")
def log_softmax(context: Context, self: Expr, dim: int, dtype: str | None = None) -> Expr:
    """The logarithm of softmax."""
    return _along(context, self, dim, op.nn.log_softmax)


def _along(context: Context, tensor: Expr, dim: int, function: Callable[..., Expr]) -> Expr:
    rank = context.rank(tensor)
    tensor = context.cast(tensor, context.dtype)
    if rank:
        return function(tensor, axis_of(dim, rank))
    return op.reshape(function(op.reshape(tensor, [1]), 0), [])
