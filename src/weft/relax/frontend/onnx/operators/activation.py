"""Activations, softmax and its kin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.value import Value, as_prim
from weft.relax.ir.shape_arith import product

PLAIN: Final[dict[str, Callable[..., Expr]]] = {
    "Softsign": op.nn.softsign, "Mish": op.nn.mish,
}  # fmt: skip


def _enter_plain(name: str, function: Callable[..., Expr]) -> None:
    @converter(name)
    def convert(context: Context, x: Value) -> Expr:
        return context.emit(function(x.expr))

    convert.__name__ = name.lower()


for _name, _function in PLAIN.items():
    _enter_plain(_name, _function)


@converter("Softplus")
def softplus(context: Context, x: Value) -> Expr:
    """log(1 + exp(x)), as max(x, 0) + log(1 + exp(-|x|)) so that nothing overflows."""
    return context.emit(op.log_add_exp(x.expr, context.constant(0, x.dtype).expr))


@converter("LeakyRelu", ignores=["consumed_inputs"])
def leaky_relu(context: Context, x: Value, *, alpha: float = 0.01) -> Expr:
    """x where it is positive, else alpha * x."""
    return context.emit(op.nn.leakyrelu(x.expr, alpha))


@converter("PRelu", ignores=["consumed_inputs"])
def prelu_until_6(context: Context, x: Value, slope: Value) -> Expr:
    """Until opset 6 one slope a channel (axis 1)."""
    shape = context.shape(slope, "slope")
    if len(shape) == 1 and shape != [1] and context.rank(x, "X") > 1:
        dims = [1, shape[0], *[1] * (context.rank(x, "X") - 2)]
        return _prelu(context, x.expr, context.emit(op.reshape(slope.expr, dims)))
    return _prelu(context, x.expr, slope.expr)


@converter("PRelu", since=7)
def prelu(context: Context, x: Value, slope: Value) -> Expr:
    """x where it is positive, else slope * x; the slope broadcasts."""
    return _prelu(context, x.expr, slope.expr)


def _prelu(context: Context, x: Expr, slope: Expr) -> Expr:
    zero = context.constant(0, str(x.struct_info.dtype)).expr
    below = context.emit(op.multiply(slope, x))
    return context.emit(op.where(context.emit(op.less(x, zero)), below, x))


@converter("Elu", ignores=["consumed_inputs"])
def elu(context: Context, x: Value, *, alpha: float = 1.0) -> Expr:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return context.emit(op.nn.elu(x.expr, alpha))


@converter("Celu", since=12)
def celu(context: Context, x: Value, *, alpha: float = 1.0) -> Expr:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return context.emit(op.nn.celu(x.expr, alpha))


@converter("Selu", ignores=["consumed_inputs"])
def selu(
    context: Context,
    x: Value,
    *,
    alpha: float = 1.6732632423543772,
    gamma: float = 1.0507009873554805,
) -> Expr:
    """gamma * elu(x, alpha)."""
    inner = context.emit(op.nn.elu(x.expr, alpha))
    return context.emit(op.multiply(context.constant(gamma, x.dtype).expr, inner))


@converter("ThresholdedRelu", since=10)
def thresholded_relu(context: Context, x: Value, *, alpha: float = 1.0) -> Expr:
    """x where it is above alpha, else 0."""
    above = context.emit(op.greater(x.expr, context.constant(alpha, x.dtype).expr))
    return context.emit(op.where(above, x.expr, context.constant(0, x.dtype).expr))


@converter("HardSigmoid", ignores=["consumed_inputs"])
def hard_sigmoid(context: Context, x: Value, *, alpha: float = 0.2, beta: float = 0.5) -> Expr:
    """alpha * x + beta between 0 and 1."""
    scaled = context.emit(op.multiply(x.expr, context.constant(alpha, x.dtype).expr))
    moved = context.emit(op.add(scaled, context.constant(beta, x.dtype).expr))
    return context.emit(op.clip(moved, 0, 1))


@converter("HardSwish", since=14)
def hard_swish(context: Context, x: Value) -> Expr:
    """x * hard_sigmoid(x) of slope 1/6."""
    gate = hard_sigmoid(context, x, alpha=1 / 6, beta=0.5)
    return context.emit(op.multiply(x.expr, gate))


@converter("Swish", since=24)
def swish(context: Context, x: Value, *, alpha: float = 1.0) -> Expr:
    """x * sigmoid(alpha * x)."""
    scaled = context.emit(op.multiply(x.expr, context.constant(alpha, x.dtype).expr))
    return context.emit(op.multiply(x.expr, context.emit(op.sigmoid(scaled))))


@converter("Gelu", since=20)
def gelu(context: Context, x: Value, *, approximate: str = "none") -> Expr:
    """x * Phi(x), exact or with tanh."""
    if approximate not in ("none", "tanh"):
        context.fail(f"approximate: expected none or tanh, got {approximate!r}")
    return context.emit((op.nn.gelu_tanh if approximate == "tanh" else op.nn.gelu)(x.expr))


@converter("Shrink", since=9)
def shrink(context: Context, x: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Expr:
    """x + bias below -lambd, x - bias above lambd, 0 between."""
    zero, shift, bound = (context.constant(v, x.dtype).expr for v in (0, bias, lambd))
    low = context.emit(op.less(x.expr, context.emit(op.negative(bound))))
    high = context.emit(op.greater(x.expr, bound))
    upper = context.emit(op.where(high, context.emit(op.subtract(x.expr, shift)), zero))
    return context.emit(op.where(low, context.emit(op.add(x.expr, shift)), upper))


def _as_matrix(context: Context, x: Value, axis: int) -> tuple[Expr, Sequence[PrimExpr]]:
    shape = [as_prim(dim) for dim in context.shape(x, "input")]
    place = 0 if len(shape) <= 1 else context.axis(x, axis)
    flat = [product(shape[:place]), product(shape[place:])]
    return context.emit(op.reshape(x.expr, flat)), shape


def _hardmax(context: Context, x: Expr, axis: int) -> Expr:
    info = x.struct_info
    place = context.emit(op.argmax(x, axis, True))
    size = info.shape.values[axis]
    steps = context.emit(op.arange(0, size, 1, "int64"))
    dims = [1] * info.ndim
    dims[axis] = size
    steps = context.emit(op.reshape(steps, dims))
    hit = context.emit(op.equal(steps, context.emit(op.astype(place, "int64"))))
    return context.emit(op.astype(hit, info.dtype))


def _softmax(context: Context, x: Expr, axis: int) -> Expr:
    return context.emit(op.nn.softmax(x, axis))


def _log_softmax(context: Context, x: Expr, axis: int) -> Expr:
    return context.emit(op.nn.log_softmax(x, axis))


def _enter_normalized(name: str, function: Callable[[Context, Expr, int], Expr]) -> None:
    @converter(name)
    def flat(context: Context, x: Value, *, axis: int = 1) -> Expr:
        matrix, shape = _as_matrix(context, x, axis)
        return context.emit(op.reshape(function(context, matrix, 1), shape))

    @converter(name, since=13)
    def along(context: Context, x: Value, *, axis: int = -1) -> Expr:
        return function(context, x.expr, context.axis(x, axis))

    flat.__name__ = along.__name__ = name.lower()


for _name, _along in (("Softmax", _softmax), ("LogSoftmax", _log_softmax), ("Hardmax", _hardmax)):
    _enter_normalized(_name, _along)


# Those of com.microsoft, some of a sum with a bias


def added(context: Context, x: Expr, bias: Value | None) -> Expr:
    """With a bias, where there is one."""
    return x if bias is None else context.emit(op.add(x, bias.expr))


@converter("Gelu", domain=MICROSOFT)
@converter("BiasGelu", domain=MICROSOFT)
def biased_gelu(context: Context, x: Value, bias: Value | None = None) -> Expr:
    """x * Phi(x), of x with a bias."""
    return context.emit(op.nn.gelu(added(context, x.expr, bias)))


@converter("FastGelu", domain=MICROSOFT)
def fast_gelu(context: Context, x: Value, bias: Value | None = None) -> Expr:
    """The approximation of x * Phi(x) with tanh."""
    return context.emit(op.nn.gelu_tanh(added(context, x.expr, bias)))


@converter("QuickGelu", domain=MICROSOFT)
def quick_gelu(context: Context, x: Value, *, alpha: float = 1.702) -> Expr:
    """x * sigmoid(alpha * x)."""
    return swish(context, x, alpha=alpha)


OF_EXPERTS: Final[Mapping[str, Callable[[Expr], Expr]]] = {
    "relu": op.nn.relu, "gelu": op.nn.gelu_tanh, "silu": op.nn.silu, "identity": lambda x: x,
}  # fmt: skip
"""Activations by their names in mixtures of experts."""
