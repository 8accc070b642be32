"""Activations and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft import topi
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, differ
from weft.relax.op.definition import Infer, operator
from weft.relax.op.infer import (
    axis_of,
    check_rank,
    dims_of,
    fail,
    same_as_float_input,
    same_as_input,
)
from weft.relax.op.lowering import TensorExpression, dims
from weft.relax.op.reference.nn import activation as reference
from weft.relax.op.reference.rule import Reference, in_float64
from weft.relax.op.requirements import Required
from weft.relax.struct_info import TensorStructInfo


def infer_softmax(call: Call) -> TensorStructInfo:
    """As the input; the axis must exist."""
    info = same_as_float_input(call)
    axis_of(call, call.attrs["axis"], info.ndim)
    return info


def infer_prelu(call: Call) -> TensorStructInfo:
    """As the input; alpha has one element for each index of the axis, or one."""
    info = same_as_float_input(call)
    alpha = check_rank(call, 1, 1)
    axis = axis_of(call, call.attrs["axis"], info.ndim)
    extents, slopes = dims_of(info), dims_of(alpha)
    if extents is not None and slopes is not None:
        if differ(slopes[0], extents[axis]) and differ(slopes[0], 1):
            fail(call, f"alpha: expected {extents[axis]} elements (axis {axis}), got {slopes[0]}")
    return info


def _slopes(call: Call) -> Required:
    """alpha has one element for each channel of the data, or one."""
    if len(dims(call.args[1])) != 1 or constant_value(dims(call.args[1])[0]) == 1:
        return {}
    return {1: [dims(call.args[0])[call.attrs["axis"]]]}


def infer_celu(call: Call) -> TensorStructInfo:
    """As the input; alpha is a divisor, so it must not be 0."""
    if call.attrs["alpha"] == 0:
        fail(call, "alpha: expected a number other than 0")
    return same_as_float_input(call)


def infer_hardtanh(call: Call) -> TensorStructInfo:
    """As the input; min_val must not exceed max_val."""
    low, high = call.attrs["min_val"], call.attrs["max_val"]
    if low > high:
        fail(call, f"expected min_val <= max_val, got {low} and {high}")
    return same_as_float_input(call)


def _row(
    name: str,
    te: TensorExpression,
    numpy: Reference,
    text: str,
    infer: Infer = same_as_float_input,
    traits: Trait = Trait.FOLLOWS,
) -> Callable[..., Call]:
    """The row of ``relax.nn.<name>(data)``, an element-wise function without attributes."""

    def body(data: Expr) -> None:  # noqa: ARG001 - the signature of the operator
        return None

    body.__name__, body.__doc__ = name, text
    row = operator(f"relax.nn.{name}", infer, te=te, numpy=numpy, traits=traits | Trait.ELEMENTWISE)
    return row(body)


relu = _row(
    "relu", topi.nn.relu, in_float64(lambda x: np.maximum(x, x.dtype.type(0))),
    "max(x, 0).", same_as_input,
)  # fmt: skip
relu6 = _row("relu6", topi.nn.relu6, reference.relu6, "min(max(x, 0), 6).", same_as_input)
gelu = _row(
    "gelu", topi.nn.gelu, in_float64(lambda x: x * 0.5 * reference.erfc(-x / math.sqrt(2))),
    "x * Phi(x), where Phi is the cumulative distribution of the standard normal distribution.",
)  # fmt: skip
gelu_tanh = _row("gelu_tanh", topi.nn.gelu_tanh, reference.gelu_tanh, "gelu, approximated by tanh.")
selu = _row("selu", topi.nn.selu, reference.selu, "The scaled exponential linear unit.")
silu = _row("silu", topi.nn.silu, reference.silu, "x * sigmoid(x).")
mish = _row(
    "mish", topi.nn.mish, in_float64(lambda x: x * np.tanh(np.logaddexp(0, x))),
    "x * tanh(log(1 + exp(x))).",
)  # fmt: skip
softsign = _row(
    "softsign", topi.nn.softsign, in_float64(lambda x: x / (1 + np.abs(x))), "x / (1 + abs(x))."
)
log_sigmoid = _row(
    "log_sigmoid", topi.nn.log_sigmoid, in_float64(lambda x: -np.logaddexp(0, -x)),
    "The logarithm of sigmoid(x), without overflow.", traits=Trait.NONE,
)  # fmt: skip
hardsigmoid = _row(
    "hardsigmoid", topi.nn.hardsigmoid, reference.hardsigmoid, "min(max(x + 3, 0), 6) / 6."
)
hardswish = _row(
    "hardswish", topi.nn.hardswish, in_float64(lambda x: x * reference.hardsigmoid(x)),
    "x * hardsigmoid(x).",
)  # fmt: skip
tanhshrink = _row(
    "tanhshrink", topi.nn.tanhshrink, in_float64(lambda x: x - np.tanh(x)), "x - tanh(x)."
)


@operator(
    "relax.nn.leakyrelu",
    same_as_float_input,
    te=topi.nn.leaky_relu,
    numpy=in_float64(lambda x, alpha: np.where(x > 0, x, x * alpha)),
    traits=Trait.ELEMENTWISE | Trait.FOLLOWS,
)
def leakyrelu(data: Expr, alpha: float = 0.01) -> None:
    """x where x > 0, else alpha * x."""


@operator("relax.nn.prelu", infer_prelu, te=topi.nn.prelu, numpy=reference.prelu, requires=_slopes)
def prelu(data: Expr, alpha: Expr, axis: int = 1) -> None:
    """x where x > 0, else alpha * x with one alpha for each index of ``axis``."""


@operator(
    "relax.nn.softplus",
    same_as_float_input,
    te=topi.nn.softplus,
    numpy=reference.softplus,
    traits=Trait.ELEMENTWISE,
)
def softplus(data: Expr, beta: float = 1.0, threshold: float = 20.0) -> None:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""


@operator(
    "relax.nn.elu",
    same_as_float_input,
    te=topi.nn.elu,
    numpy=reference.elu,
    traits=Trait.ELEMENTWISE,
)
def elu(data: Expr, alpha: float = 1.0) -> None:
    """x where x > 0, else alpha * (exp(x) - 1)."""


@operator(
    "relax.nn.celu", infer_celu, te=topi.nn.celu, numpy=reference.celu, traits=Trait.ELEMENTWISE
)
def celu(data: Expr, alpha: float = 1.0) -> None:
    """x where x > 0, else alpha * (exp(x / alpha) - 1)."""


@operator(
    "relax.nn.hardtanh",
    infer_hardtanh,
    te=topi.nn.hardtanh,
    numpy=reference.hardtanh,
    traits=Trait.ELEMENTWISE | Trait.FOLLOWS,
)
def hardtanh(data: Expr, min_val: float = -1.0, max_val: float = 1.0) -> None:
    """x limited to [min_val, max_val]."""


@operator(
    "relax.nn.hardshrink",
    same_as_float_input,
    te=topi.nn.hardshrink,
    numpy=reference.hardshrink,
    traits=Trait.ELEMENTWISE,
)
def hardshrink(data: Expr, lambd: float = 0.5) -> None:
    """x where abs(x) > lambd, else 0."""


@operator(
    "relax.nn.softshrink",
    same_as_float_input,
    te=topi.nn.softshrink,
    numpy=reference.softshrink,
    traits=Trait.ELEMENTWISE,
)
def softshrink(data: Expr, lambd: float = 0.5) -> None:
    """x moved towards 0 by lambd, 0 where abs(x) <= lambd."""


@operator(
    "relax.nn.softmax",
    infer_softmax,
    te=topi.nn.softmax,
    numpy=reference.softmax,
    traits=Trait.ALONG_AXIS,
)
def softmax(data: Expr, axis: int = -1) -> None:
    """exp(x) / sum of exp(x) along ``axis``."""


@operator(
    "relax.nn.log_softmax",
    infer_softmax,
    te=topi.nn.log_softmax,
    numpy=reference.log_softmax,
    traits=Trait.ALONG_AXIS,
)
def log_softmax(data: Expr, axis: int = -1) -> None:
    """The logarithm of softmax along ``axis``."""
