"""Unary element-wise operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft import topi
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.op.definition import Dtype, Infer, Prim, operator
from weft.relax.op.infer import VOID, same_as_float_input, same_as_input, tensor, with_dtype
from weft.relax.op.lowering import TensorExpression
from weft.relax.op.reference import unary as reference
from weft.relax.op.reference.rule import Reference, in_float64, numpy_dtype, quiet
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


@operator(
    "relax.clip",
    same_as_input,
    te=topi.clip,
    kernel="tir_clip",
    numpy=reference.clip,
    traits=Trait.ELEMENTWISE | Trait.FOLLOWS,
)
def clip(x: Expr, min: Prim, max: Prim) -> None:  # noqa: A002 - TVM's names
    """The value limited to [min, max]."""


def _unary(
    name: str,
    infer: Infer,
    te: TensorExpression,
    numpy: Reference,
    text: str,
    kernel: str | None = None,
    traits: Trait = Trait.NONE,
) -> Callable[..., Call]:
    """The row of ``relax.<name>(x)``; its PrimFunc is named ``tir_<name>``, as TVM names it."""

    def body(x: Expr) -> None:  # noqa: ARG001 - the signature of the operator
        return None

    body.__name__, body.__doc__ = name, text
    row = operator(
        f"relax.{name}",
        infer,
        te=te,
        kernel=kernel or f"tir_{name}",
        numpy=quiet(numpy) if Trait.EXACT in traits else in_float64(numpy),
        traits=traits | Trait.ELEMENTWISE,
    )
    return row(body)


abs = _unary(  # noqa: A001 - TVM's name
    "abs", same_as_input, topi.abs, np.abs, "The absolute value.", traits=Trait.FOLLOWS
)
acos = _unary("acos", same_as_float_input, topi.acos, np.arccos, "The inverse cosine.")
acosh = _unary(
    "acosh", same_as_float_input, topi.acosh, np.arccosh, "The inverse hyperbolic cosine."
)
asin = _unary("asin", same_as_float_input, topi.asin, np.arcsin, "The inverse sine.")
asinh = _unary("asinh", same_as_float_input, topi.asinh, np.arcsinh, "The inverse hyperbolic sine.")
atan = _unary("atan", same_as_float_input, topi.atan, np.arctan, "The inverse tangent.")
atanh = _unary(
    "atanh", same_as_float_input, topi.atanh, np.arctanh, "The inverse hyperbolic tangent."
)
bitwise_not = _unary(
    "bitwise_not", infer_integral, topi.bitwise_not, np.invert, "The bitwise complement."
)
ceil = _unary(
    "ceil", same_as_input, topi.ceil, reference.whole(np.ceil), "The smallest integer not below."
)
cos = _unary("cos", same_as_float_input, topi.cos, np.cos, "The cosine.")
cosh = _unary("cosh", same_as_float_input, topi.cosh, np.cosh, "The hyperbolic cosine.")
erf = _unary(
    "erf", same_as_float_input, topi.erf, reference.erf, "The error function.", kernel="erf"
)
exp = _unary("exp", same_as_float_input, topi.exp, np.exp, "The exponential.")
floor = _unary(
    "floor", same_as_input, topi.floor, reference.whole(np.floor), "The largest integer not above."
)
log = _unary("log", same_as_float_input, topi.log, np.log, "The natural logarithm.")
logical_not = _unary(
    "logical_not", infer_logical, topi.logical_not, np.logical_not, "The logical complement."
)
negative = _unary(
    "negative",
    same_as_input,
    topi.negative,
    np.negative,
    "The negation.",
    traits=Trait.EXACT | Trait.FOLLOWS,
)
round = _unary(
    "round",
    same_as_input,
    topi.round,
    reference.whole(np.round),
    "The nearest integer, halves to even.",
)  # noqa: A001 - TVM's name
rsqrt = _unary(
    "rsqrt",
    same_as_float_input,
    topi.rsqrt,
    lambda x: 1 / np.sqrt(x),
    "The reciprocal of the square root.",
)
sigmoid = _unary(
    "sigmoid",
    same_as_float_input,
    topi.sigmoid,
    reference.sigmoid,
    "1 / (1 + exp(-x)).",
    traits=Trait.FOLLOWS,
)
sign = _unary("sign", same_as_input, topi.sign, reference.sign, "-1, 0 or 1 by the sign.")
sin = _unary("sin", same_as_float_input, topi.sin, np.sin, "The sine.")
sinh = _unary("sinh", same_as_float_input, topi.sinh, np.sinh, "The hyperbolic sine.")
sqrt = _unary(
    "sqrt", same_as_float_input, topi.sqrt, np.sqrt, "The square root.", traits=Trait.EXACT
)
square = _unary("square", same_as_input, lambda x: topi.multiply(x, x), np.square, "x * x.")
tan = _unary("tan", same_as_float_input, topi.tan, np.tan, "The tangent.")
tanh = _unary(
    "tanh",
    same_as_float_input,
    topi.tanh,
    np.tanh,
    "The hyperbolic tangent.",
    traits=Trait.FOLLOWS,
)
trunc = _unary(
    "trunc",
    same_as_input,
    topi.trunc,
    reference.whole(np.trunc),
    "The integer part.",
    kernel="trunc",
)
isfinite = _unary(
    "isfinite", infer_predicate, topi.isfinite, np.isfinite, "Whether finite.", kernel="isfinite"
)
isinf = _unary("isinf", infer_predicate, topi.isinf, np.isinf, "Whether infinite.", kernel="isinf")
isnan = _unary("isnan", infer_predicate, topi.isnan, np.isnan, "Whether NaN.", kernel="isnan")
