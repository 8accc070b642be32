"""Activations and softmax."""

from __future__ import annotations

from typing import Any

from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import differ
from weft.relax.op.definition import elementwise, operator
from weft.relax.op.infer import (
    axis_of,
    check_rank,
    dims_of,
    fail,
    same_as_float_input,
    same_as_input,
)
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
    dims, alpha_dims = dims_of(info), dims_of(alpha)
    if dims is not None and alpha_dims is not None:
        if differ(alpha_dims[0], dims[axis]) and differ(alpha_dims[0], 1):
            fail(call, f"alpha: expected {dims[axis]} elements (axis {axis}), got {alpha_dims[0]}")
    return info


def infer_celu(call: Call) -> TensorStructInfo:
    """As the input; alpha divides."""
    if call.attrs["alpha"] == 0:
        fail(call, "alpha: expected a number other than 0")
    return same_as_float_input(call)


def infer_hardtanh(call: Call) -> TensorStructInfo:
    """As the input; the limits are in order."""
    low, high = call.attrs["min_val"], call.attrs["max_val"]
    if low > high:
        fail(call, f"expected min_val <= max_val, got {low} and {high}")
    return same_as_float_input(call)


@elementwise("relax.nn.relu", same_as_input)
def relu(data: Expr) -> Any:
    """max(x, 0)."""


@elementwise("relax.nn.relu6", same_as_input)
def relu6(data: Expr) -> Any:
    """min(max(x, 0), 6)."""


@elementwise("relax.nn.leakyrelu", same_as_float_input)
def leakyrelu(data: Expr, alpha: float = 0.01) -> Any:
    """x where x > 0, else alpha * x."""


@operator("relax.nn.prelu", infer_prelu)
def prelu(data: Expr, alpha: Expr, axis: int = 1) -> Any:
    """x where x > 0, else alpha * x with one alpha for each index of ``axis``."""


@elementwise("relax.nn.softplus", same_as_float_input)
def softplus(data: Expr, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold."""


@elementwise("relax.nn.gelu", same_as_float_input)
def gelu(data: Expr) -> Any:
    """x times the cumulative distribution of the normal law at x."""


@elementwise("relax.nn.gelu_tanh", same_as_float_input)
def gelu_tanh(data: Expr) -> Any:
    """gelu by its approximation with tanh."""


@elementwise("relax.nn.selu", same_as_float_input)
def selu(data: Expr) -> Any:
    """The scaled exponential linear unit."""


@elementwise("relax.nn.silu", same_as_float_input)
def silu(data: Expr) -> Any:
    """x * sigmoid(x)."""


@elementwise("relax.nn.elu", same_as_float_input)
def elu(data: Expr, alpha: float = 1.0) -> Any:
    """x where x > 0, else alpha * (exp(x) - 1)."""


@elementwise("relax.nn.celu", infer_celu)
def celu(data: Expr, alpha: float = 1.0) -> Any:
    """x where x > 0, else alpha * (exp(x / alpha) - 1)."""


@elementwise("relax.nn.mish", same_as_float_input)
def mish(data: Expr) -> Any:
    """x * tanh(log(1 + exp(x)))."""


@elementwise("relax.nn.softsign", same_as_float_input)
def softsign(data: Expr) -> Any:
    """x / (1 + abs(x))."""


@elementwise("relax.nn.log_sigmoid", same_as_float_input)
def log_sigmoid(data: Expr) -> Any:
    """The logarithm of sigmoid(x), without overflow."""


@elementwise("relax.nn.hardsigmoid", same_as_float_input)
def hardsigmoid(data: Expr) -> Any:
    """min(max(x + 3, 0), 6) / 6."""


@elementwise("relax.nn.hardswish", same_as_float_input)
def hardswish(data: Expr) -> Any:
    """x * hardsigmoid(x)."""


@elementwise("relax.nn.hardtanh", infer_hardtanh)
def hardtanh(data: Expr, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """x limited to [min_val, max_val]."""


@elementwise("relax.nn.hardshrink", same_as_float_input)
def hardshrink(data: Expr, lambd: float = 0.5) -> Any:
    """x where abs(x) > lambd, else 0."""


@elementwise("relax.nn.softshrink", same_as_float_input)
def softshrink(data: Expr, lambd: float = 0.5) -> Any:
    """x moved towards 0 by lambd, 0 where abs(x) <= lambd."""


@elementwise("relax.nn.tanhshrink", same_as_float_input)
def tanhshrink(data: Expr) -> Any:
    """x - tanh(x)."""


@operator("relax.nn.softmax", infer_softmax, traits=Trait.ALONG_AXIS)
def softmax(data: Expr, axis: int = -1) -> Any:
    """exp(x) / sum of exp(x) along ``axis``."""


@operator("relax.nn.log_softmax", infer_softmax, traits=Trait.ALONG_AXIS)
def log_softmax(data: Expr, axis: int = -1) -> Any:
    """The logarithm of softmax along ``axis``."""
