"""Unary element-wise operators."""

from __future__ import annotations

from typing import Any

from weft.relax.expr import Call, Expr
from weft.relax.op.definition import Prim, elementwise
from weft.relax.op.infer import VOID, same_as_float_input, same_as_input, tensor, with_dtype
from weft.relax.struct_info import TensorStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError


def infer_integral(call: Call) -> TensorStructInfo:
    """As the input, which must be of integers or booleans."""
    info = tensor(call, 0)
    if info.dtype != VOID and not DataType(info.dtype).is_integral:
        raise IRTypeError(f"{call.op.name}: expected integers or booleans, got {info.dtype}")
    return info


def infer_logical(call: Call) -> TensorStructInfo:
    """As the input, which must be boolean."""
    info = tensor(call, 0)
    if info.dtype not in (VOID, "bool"):
        raise IRTypeError(f"{call.op.name}: expected booleans, got {info.dtype}")
    return info


def infer_predicate(call: Call) -> TensorStructInfo:
    """Booleans of the input's shape."""
    return with_dtype(same_as_float_input(call), "bool")


def infer_clip(call: Call) -> TensorStructInfo:
    """As the input."""
    return tensor(call, 0)


@elementwise("relax.clip", infer_clip)
def clip(x: Expr, min: Prim, max: Prim) -> Any:  # noqa: A002 - TVM's names
    """The value limited to [min, max]."""


@elementwise("relax.abs", same_as_input)
def abs(x: Expr) -> Any:  # noqa: A001 - TVM's name
    """The absolute value."""


@elementwise("relax.acos", same_as_float_input)
def acos(x: Expr) -> Any:
    """The inverse cosine."""


@elementwise("relax.acosh", same_as_float_input)
def acosh(x: Expr) -> Any:
    """The inverse hyperbolic cosine."""


@elementwise("relax.asin", same_as_float_input)
def asin(x: Expr) -> Any:
    """The inverse sine."""


@elementwise("relax.asinh", same_as_float_input)
def asinh(x: Expr) -> Any:
    """The inverse hyperbolic sine."""


@elementwise("relax.atan", same_as_float_input)
def atan(x: Expr) -> Any:
    """The inverse tangent."""


@elementwise("relax.atanh", same_as_float_input)
def atanh(x: Expr) -> Any:
    """The inverse hyperbolic tangent."""


@elementwise("relax.bitwise_not", infer_integral)
def bitwise_not(x: Expr) -> Any:
    """The bitwise complement."""


@elementwise("relax.ceil", same_as_input)
def ceil(x: Expr) -> Any:
    """The smallest integer not below."""


@elementwise("relax.cos", same_as_float_input)
def cos(x: Expr) -> Any:
    """The cosine."""


@elementwise("relax.cosh", same_as_float_input)
def cosh(x: Expr) -> Any:
    """The hyperbolic cosine."""


@elementwise("relax.erf", same_as_float_input)
def erf(x: Expr) -> Any:
    """The error function."""


@elementwise("relax.exp", same_as_float_input)
def exp(x: Expr) -> Any:
    """The exponential."""


@elementwise("relax.floor", same_as_input)
def floor(x: Expr) -> Any:
    """The largest integer not above."""


@elementwise("relax.log", same_as_float_input)
def log(x: Expr) -> Any:
    """The natural logarithm."""


@elementwise("relax.logical_not", infer_logical)
def logical_not(x: Expr) -> Any:
    """The logical complement."""


@elementwise("relax.negative", same_as_input)
def negative(x: Expr) -> Any:
    """The negation."""


@elementwise("relax.round", same_as_input)
def round(x: Expr) -> Any:  # noqa: A001 - TVM's name
    """The nearest integer, halves to even."""


@elementwise("relax.rsqrt", same_as_float_input)
def rsqrt(x: Expr) -> Any:
    """The reciprocal of the square root."""


@elementwise("relax.sigmoid", same_as_float_input)
def sigmoid(x: Expr) -> Any:
    """1 / (1 + exp(-x))."""


@elementwise("relax.sign", same_as_input)
def sign(x: Expr) -> Any:
    """-1, 0 or 1 by the sign."""


@elementwise("relax.sin", same_as_float_input)
def sin(x: Expr) -> Any:
    """The sine."""


@elementwise("relax.sinh", same_as_float_input)
def sinh(x: Expr) -> Any:
    """The hyperbolic sine."""


@elementwise("relax.sqrt", same_as_float_input)
def sqrt(x: Expr) -> Any:
    """The square root."""


@elementwise("relax.square", same_as_input)
def square(x: Expr) -> Any:
    """x * x."""


@elementwise("relax.tan", same_as_float_input)
def tan(x: Expr) -> Any:
    """The tangent."""


@elementwise("relax.tanh", same_as_float_input)
def tanh(x: Expr) -> Any:
    """The hyperbolic tangent."""


@elementwise("relax.trunc", same_as_input)
def trunc(x: Expr) -> Any:
    """The integer part."""


@elementwise("relax.isfinite", infer_predicate)
def isfinite(x: Expr) -> Any:
    """Whether finite."""


@elementwise("relax.isinf", infer_predicate)
def isinf(x: Expr) -> Any:
    """Whether infinite."""


@elementwise("relax.isnan", infer_predicate)
def isnan(x: Expr) -> Any:
    """Whether NaN."""
