"""Unary element-wise operators."""

from __future__ import annotations

import numpy as np

from weft import topi
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.op.definition import Dtype, Prim, operator
from weft.relax.op.infer import VOID, same_as_float_input, same_as_input, tensor, with_dtype
from weft.relax.op.reference import unary as reference
from weft.relax.op.reference.rule import in_float64, numpy_dtype
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


def infer_bitcast(call: Call) -> TensorStructInfo:
    """The input with another type of as many bits."""
    info, dtype = tensor(call, 0), DataType(call.attrs["dtype"])
    if info.dtype != VOID and DataType(info.dtype).bits != dtype.bits:
        raise IRTypeError(
            f"{call.op.name}: expected a type of as many bits as {info.dtype}, got {dtype}"
        )
    return with_dtype(info, dtype)


@operator(
    "relax.bitcast",
    infer_bitcast,
    te=topi.reinterpret,
    kernel="bitcast",
    numpy=lambda x, dtype: np.asarray(x).view(numpy_dtype(dtype)),
    traits=Trait.ELEMENTWISE,
)
def bitcast(x: Expr, dtype: Dtype) -> None:
    """The bits of each element read as another type of as many bits."""


def infer_clip(call: Call) -> TensorStructInfo:
    """As the input."""
    return tensor(call, 0)


@operator(
    "relax.clip",
    infer_clip,
    te=topi.clip,
    kernel="tir_clip",
    numpy=reference.clip,
    traits=Trait.ELEMENTWISE,
)
def clip(x: Expr, min: Prim, max: Prim) -> None:  # noqa: A002 - TVM's names
    """The value limited to [min, max]."""


@operator(
    "relax.abs",
    same_as_input,
    te=topi.abs,
    kernel="tir_abs",
    numpy=in_float64(np.abs),
    traits=Trait.ELEMENTWISE,
)
def abs(x: Expr) -> None:  # noqa: A001 - TVM's name
    """The absolute value."""


@operator(
    "relax.acos",
    same_as_float_input,
    te=topi.acos,
    kernel="tir_acos",
    numpy=in_float64(np.arccos),
    traits=Trait.ELEMENTWISE,
)
def acos(x: Expr) -> None:
    """The inverse cosine."""


@operator(
    "relax.acosh",
    same_as_float_input,
    te=topi.acosh,
    kernel="tir_acosh",
    numpy=in_float64(np.arccosh),
    traits=Trait.ELEMENTWISE,
)
def acosh(x: Expr) -> None:
    """The inverse hyperbolic cosine."""


@operator(
    "relax.asin",
    same_as_float_input,
    te=topi.asin,
    kernel="tir_asin",
    numpy=in_float64(np.arcsin),
    traits=Trait.ELEMENTWISE,
)
def asin(x: Expr) -> None:
    """The inverse sine."""


@operator(
    "relax.asinh",
    same_as_float_input,
    te=topi.asinh,
    kernel="tir_asinh",
    numpy=in_float64(np.arcsinh),
    traits=Trait.ELEMENTWISE,
)
def asinh(x: Expr) -> None:
    """The inverse hyperbolic sine."""


@operator(
    "relax.atan",
    same_as_float_input,
    te=topi.atan,
    kernel="tir_atan",
    numpy=in_float64(np.arctan),
    traits=Trait.ELEMENTWISE,
)
def atan(x: Expr) -> None:
    """The inverse tangent."""


@operator(
    "relax.atanh",
    same_as_float_input,
    te=topi.atanh,
    kernel="tir_atanh",
    numpy=in_float64(np.arctanh),
    traits=Trait.ELEMENTWISE,
)
def atanh(x: Expr) -> None:
    """The inverse hyperbolic tangent."""


@operator(
    "relax.bitwise_not",
    infer_integral,
    te=topi.bitwise_not,
    kernel="tir_bitwise_not",
    numpy=in_float64(np.invert),
    traits=Trait.ELEMENTWISE,
)
def bitwise_not(x: Expr) -> None:
    """The bitwise complement."""


@operator(
    "relax.ceil",
    same_as_input,
    te=topi.ceil,
    kernel="tir_ceil",
    numpy=reference.whole(np.ceil),
    traits=Trait.ELEMENTWISE,
)
def ceil(x: Expr) -> None:
    """The smallest integer not below."""


@operator(
    "relax.cos",
    same_as_float_input,
    te=topi.cos,
    kernel="tir_cos",
    numpy=in_float64(np.cos),
    traits=Trait.ELEMENTWISE,
)
def cos(x: Expr) -> None:
    """The cosine."""


@operator(
    "relax.cosh",
    same_as_float_input,
    te=topi.cosh,
    kernel="tir_cosh",
    numpy=in_float64(np.cosh),
    traits=Trait.ELEMENTWISE,
)
def cosh(x: Expr) -> None:
    """The hyperbolic cosine."""


@operator(
    "relax.erf",
    same_as_float_input,
    te=topi.erf,
    numpy=in_float64(reference.erf),
    traits=Trait.ELEMENTWISE,
)
def erf(x: Expr) -> None:
    """The error function."""


@operator(
    "relax.exp",
    same_as_float_input,
    te=topi.exp,
    kernel="tir_exp",
    numpy=in_float64(np.exp),
    traits=Trait.ELEMENTWISE,
)
def exp(x: Expr) -> None:
    """The exponential."""


@operator(
    "relax.floor",
    same_as_input,
    te=topi.floor,
    kernel="tir_floor",
    numpy=reference.whole(np.floor),
    traits=Trait.ELEMENTWISE,
)
def floor(x: Expr) -> None:
    """The largest integer not above."""


@operator(
    "relax.log",
    same_as_float_input,
    te=topi.log,
    kernel="tir_log",
    numpy=in_float64(np.log),
    traits=Trait.ELEMENTWISE,
)
def log(x: Expr) -> None:
    """The natural logarithm."""


@operator(
    "relax.logical_not",
    infer_logical,
    te=topi.logical_not,
    kernel="tir_logical_not",
    numpy=in_float64(np.logical_not),
    traits=Trait.ELEMENTWISE,
)
def logical_not(x: Expr) -> None:
    """The logical complement."""


@operator(
    "relax.negative",
    same_as_input,
    te=topi.negative,
    kernel="tir_negative",
    numpy=in_float64(np.negative),
    traits=Trait.ELEMENTWISE | Trait.EXACT,
)
def negative(x: Expr) -> None:
    """The negation."""


@operator(
    "relax.round",
    same_as_input,
    te=topi.round,
    kernel="tir_round",
    numpy=reference.whole(np.round),
    traits=Trait.ELEMENTWISE,
)
def round(x: Expr) -> None:  # noqa: A001 - TVM's name
    """The nearest integer, halves to even."""


@operator(
    "relax.rsqrt",
    same_as_float_input,
    te=topi.rsqrt,
    kernel="tir_rsqrt",
    numpy=in_float64(lambda x: 1 / np.sqrt(x)),
    traits=Trait.ELEMENTWISE,
)
def rsqrt(x: Expr) -> None:
    """The reciprocal of the square root."""


@operator(
    "relax.sigmoid",
    same_as_float_input,
    te=topi.sigmoid,
    kernel="tir_sigmoid",
    numpy=in_float64(reference.sigmoid),
    traits=Trait.ELEMENTWISE,
)
def sigmoid(x: Expr) -> None:
    """1 / (1 + exp(-x))."""


@operator(
    "relax.sign",
    same_as_input,
    te=topi.sign,
    kernel="tir_sign",
    numpy=reference.sign,
    traits=Trait.ELEMENTWISE,
)
def sign(x: Expr) -> None:
    """-1, 0 or 1 by the sign."""


@operator(
    "relax.sin",
    same_as_float_input,
    te=topi.sin,
    kernel="tir_sin",
    numpy=in_float64(np.sin),
    traits=Trait.ELEMENTWISE,
)
def sin(x: Expr) -> None:
    """The sine."""


@operator(
    "relax.sinh",
    same_as_float_input,
    te=topi.sinh,
    kernel="tir_sinh",
    numpy=in_float64(np.sinh),
    traits=Trait.ELEMENTWISE,
)
def sinh(x: Expr) -> None:
    """The hyperbolic sine."""


@operator(
    "relax.sqrt",
    same_as_float_input,
    te=topi.sqrt,
    kernel="tir_sqrt",
    numpy=in_float64(np.sqrt),
    traits=Trait.ELEMENTWISE | Trait.EXACT,
)
def sqrt(x: Expr) -> None:
    """The square root."""


@operator(
    "relax.square",
    same_as_input,
    te=lambda x: topi.multiply(x, x),
    kernel="tir_square",
    numpy=in_float64(np.square),
    traits=Trait.ELEMENTWISE,
)
def square(x: Expr) -> None:
    """x * x."""


@operator(
    "relax.tan",
    same_as_float_input,
    te=topi.tan,
    kernel="tir_tan",
    numpy=in_float64(np.tan),
    traits=Trait.ELEMENTWISE,
)
def tan(x: Expr) -> None:
    """The tangent."""


@operator(
    "relax.tanh",
    same_as_float_input,
    te=topi.tanh,
    kernel="tir_tanh",
    numpy=in_float64(np.tanh),
    traits=Trait.ELEMENTWISE,
)
def tanh(x: Expr) -> None:
    """The hyperbolic tangent."""


@operator(
    "relax.trunc",
    same_as_input,
    te=topi.trunc,
    numpy=reference.whole(np.trunc),
    traits=Trait.ELEMENTWISE,
)
def trunc(x: Expr) -> None:
    """The integer part."""


@operator(
    "relax.isfinite",
    infer_predicate,
    te=topi.isfinite,
    numpy=in_float64(np.isfinite),
    traits=Trait.ELEMENTWISE,
)
def isfinite(x: Expr) -> None:
    """Whether finite."""


@operator(
    "relax.isinf",
    infer_predicate,
    te=topi.isinf,
    numpy=in_float64(np.isinf),
    traits=Trait.ELEMENTWISE,
)
def isinf(x: Expr) -> None:
    """Whether infinite."""


@operator(
    "relax.isnan",
    infer_predicate,
    te=topi.isnan,
    numpy=in_float64(np.isnan),
    traits=Trait.ELEMENTWISE,
)
def isnan(x: Expr) -> None:
    """Whether NaN."""
