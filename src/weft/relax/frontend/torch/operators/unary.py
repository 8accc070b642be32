"""Element-wise operators of one tensor, by tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.ir.expr import FloatImm, IntImm
from weft.relax import op
from weft.relax.expr import Expr, PrimValue, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.dtypes import held_number
from weft.relax.frontend.torch.operators.pointwise import (
    in_wide_float,
    nowhere,
    number,
)
from weft.relax.frontend.torch.registry import CONVERTERS, converter
from weft.relax.frontend.torch.values import Operand
from weft.support.dtype import DataType
from weft.tir import op as tir_op

FLOAT_OPERATORS: Final[dict[str, Callable[..., Expr]]] = {
    "acos": op.acos, "acosh": op.acosh, "asin": op.asin, "asinh": op.asinh, "atan": op.atan,
    "atanh": op.atanh, "cos": op.cos, "cosh": op.cosh, "erf": op.erf, "exp": op.exp, "log": op.log,
    "rsqrt": op.rsqrt, "sigmoid": op.sigmoid, "sin": op.sin, "sinh": op.sinh, "sqrt": op.sqrt,
    "tan": op.tan, "tanh": op.tanh, "deg2rad": op.deg2rad, "digamma": op.digamma, "erfc": op.erfc,
    "erfinv": op.erfinv, "exp2": op.exp2, "expm1": op.expm1, "i0": op.i0,
    "lgamma": op.lgamma, "log10": op.log10, "log1p": op.log1p, "log2": op.log2,
    "rad2deg": op.rad2deg, "reciprocal": op.reciprocal, "sinc": op.sinc, "special_entr": op.entr,
    "special_erfcx": op.erfcx, "special_i0e": op.i0e, "special_i1": op.i1, "special_i1e": op.i1e,
    "special_modified_bessel_i0": op.i0, "special_modified_bessel_i1": op.i1,
    "special_log_ndtr": op.log_ndtr, "special_ndtr": op.ndtr, "special_ndtri": op.ndtri,
}  # fmt: skip
"""Functions of real numbers with an operator: integers are cast to the result's type first."""


INTEGER_KEEPING: Final[dict[str, Callable[..., Expr]]] = {
    "ceil": op.ceil, "floor": op.floor, "round": op.round, "trunc": op.trunc, "fix": op.trunc,
}  # fmt: skip
"""Functions that are the identity of integers."""
SAME_TYPE: Final[dict[str, Callable[..., Expr]]] = {
    "neg": op.negative, "negative": op.negative, "sgn": op.sign, "sign": op.sign,
    "square": op.square,
}  # fmt: skip
"""Functions that keep the data type."""
PREDICATES: Final[dict[str, tuple[Callable[..., Expr], bool]]] = {
    "isfinite": (op.isfinite, True), "isinf": (op.isinf, False), "isnan": (op.isnan, False),
}  # fmt: skip
"""Tests of floats, and what they give for integers."""


def _register_tables() -> None:
    for name, function in FLOAT_OPERATORS.items():
        CONVERTERS[f"aten.{name}.default"] = _float_operator(function)
    for name, function in INTEGER_KEEPING.items():
        CONVERTERS[f"aten.{name}.default"] = _integer_keeping(function)
    for name, function in SAME_TYPE.items():
        CONVERTERS[f"aten.{name}.default"] = _same_type(function)
    for name, (function, otherwise) in PREDICATES.items():
        CONVERTERS[f"aten.{name}.default"] = _predicate(function, otherwise)


def _float_operator(function: Callable[..., Expr]) -> Callable[..., Expr]:
    return lambda context, self: function(context.cast(self, context.dtype))


def _integer_keeping(function: Callable[..., Expr]) -> Callable[..., Expr]:
    return lambda context, self: function(self) if is_float(context, self) else self


def _same_type(function: Callable[..., Expr]) -> Callable[..., Expr]:
    return lambda context, self: self if context.dtype == "bool" else function(self)


def _predicate(function: Callable[..., Expr], otherwise: bool) -> Callable[..., Expr]:
    def convert(context: Context, self: Expr) -> Expr:
        if is_float(context, self):
            return function(self)
        return op.full(context.shape, const(otherwise, "bool"), "bool")

    return convert


_register_tables()


def is_float(context: Context, tensor: Expr) -> bool:
    """Whether the elements are floats."""
    return DataType(context.dtype_of(tensor)).is_float


@converter("aten.abs.default", "aten.absolute.default")
def abs_(context: Context, self: Expr) -> Expr:
    """The absolute value."""
    kind = DataType(context.dtype_of(self))
    return self if kind.is_uint or kind.is_bool else op.abs(self)


@converter("aten.positive.default")
def positive(context: Context, self: Expr) -> Expr:
    """The tensor itself."""
    return self


@converter("aten.relu.default")
def relu(context: Context, self: Expr) -> Expr:
    """The larger of x and 0; NaN stays."""
    if is_float(context, self):
        return op.nn.relu(self)
    return op.maximum(self, const(0, context.dtype))


@converter("aten.bitwise_not.default")
def bitwise_not(context: Context, self: Expr) -> Expr:
    """All bits flipped; of booleans the complement."""
    return op.logical_not(self) if context.dtype == "bool" else op.bitwise_not(self)


@converter("aten.logical_not.default")
def logical_not(context: Context, self: Expr) -> Expr:
    """Whether elements are 0."""
    return op.logical_not(context.cast(self, "bool"))


@converter("aten.round.decimals")
def round_decimals(context: Context, self: Expr, decimals: int = 0) -> Expr:
    """Rounded to so many decimal places: scaled by a power of ten and back, as PyTorch."""
    if decimals == 0 or not is_float(context, self):
        return op.round(self) if is_float(context, self) else self
    scale = 10.0 ** abs(decimals)

    def rounded(x: Expr) -> Expr:
        factor = const(scale, context.dtype_of(x))
        there, back = (op.multiply, op.divide) if decimals > 0 else (op.divide, op.multiply)
        return back(context.emit(op.round(context.emit(there(x, factor)))), factor)

    return in_wide_float(context, rounded, self)


@converter("aten.frac.default")
def frac(context: Context, self: Expr) -> Expr:  # noqa: ARG001 - the signature of converters
    """x less its integer part, with the sign of x."""
    return op.frac(self)


@converter("aten.signbit.default")
def signbit(context: Context, self: Expr) -> Expr:
    """Whether the sign is negative, that of -0.0 and of NaN too."""
    kind = DataType(context.dtype_of(self))
    if kind.is_uint or kind.is_bool:
        return nowhere(context)
    zero = const(0, str(kind))
    if not kind.is_float:
        return op.less(self, zero)
    return op.less(context.emit(op.copysign(const(1, str(kind)), self)), zero)


@converter("aten.isposinf.default")
def isposinf(context: Context, self: Expr) -> Expr:
    """Whether infinite and positive."""
    return _infinite(context, self, op.greater)


@converter("aten.isneginf.default")
def isneginf(context: Context, self: Expr) -> Expr:
    """Whether infinite and negative."""
    return _infinite(context, self, op.less)


def _infinite(context: Context, self: Expr, side: Callable[..., Expr]) -> Expr:
    if not is_float(context, self):
        return nowhere(context)
    on_side = context.emit(side(self, const(0, context.dtype_of(self))))
    return op.logical_and(context.emit(op.isinf(self)), on_side)


@converter("aten.nan_to_num.default")
def nan_to_num(
    context: Context,
    self: Expr,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Expr:
    """NaN and infinities replaced: by 0 and by the largest and lowest number unless given."""
    if not is_float(context, self):
        return self
    largest = _largest(context.dtype_of(self))
    high = largest if posinf is None else posinf
    low = -largest if neginf is None else neginf

    dtype, emit = context.dtype_of(self), context.emit
    ends = [context.operand(number(end, dtype), dtype) for end in (high, low)]
    infinite = emit(op.where(emit(op.greater(self, const(0.0, dtype))), *ends))
    finite = emit(op.where(emit(op.isinf(self)), infinite, self))
    return op.where(emit(op.isnan(self)), const(nan or 0.0, dtype), finite)


def _largest(dtype: str) -> float:
    limit = tir_op.max_value(dtype)
    assert isinstance(limit, IntImm | FloatImm)
    return float(limit.value)


@converter("aten.logit.default")
def logit(context: Context, self: Expr, eps: float | None = None) -> Expr:
    """log(x / (1 - x)) of x limited to [eps, 1 - eps]."""

    def function(x: Expr) -> Expr:
        kind, emit = context.dtype_of(x), context.emit
        unit = const(1.0, kind)
        if eps is not None:
            low = const(eps, kind)
            x = emit(op.minimum(emit(op.maximum(x, low)), emit(op.subtract(unit, low))))
        return op.log(emit(op.divide(x, emit(op.subtract(unit, x)))))

    return in_wide_float(context, function, self)


@converter("aten.polygamma.default", "aten.special_polygamma.default")
def polygamma(context: Context, n: int, self: Expr) -> Expr:
    """The n-th derivative of digamma: a multiple of zeta (AS 6.4.10), computed in float64."""
    if n < 2:
        return (op.trigamma if n else op.digamma)(context.cast(self, context.dtype))
    zeta = context.emit(op.zeta(const(n + 1.0, "float64"), context.cast(self, "float64")))
    factor = math.factorial(n) if n % 2 else -math.factorial(n)
    value = context.emit(op.multiply(zeta, const(float(factor), "float64")))
    return context.cast(value, context.dtype)


@converter("aten.mvlgamma.default")
def mvlgamma(context: Context, self: Expr, p: int) -> Expr:
    """The logarithm of the multivariate gamma function, computed in float64."""
    x = context.cast(self, "float64")
    total: Expr = const(p * (p - 1) / 4 * math.log(math.pi), "float64")
    for j in range(p):
        less = context.emit(op.subtract(x, const(j / 2, "float64")))
        total = context.emit(op.add(total, context.emit(op.lgamma(less))))
    return context.cast(total, context.dtype)


@converter("aten.clamp.default", "aten.clip.default")
def clamp(
    context: Context, self: Expr, min: Operand | None = None, max: Operand | None = None
) -> Expr:
    """x limited to [min, max], in the type that torch promotes to; the maximum wins."""
    return limited(context, context.cast(self, context.dtype), min, max)


@converter("aten.clamp_min.default")
def clamp_min(context: Context, self: Expr, min: Operand) -> Expr:
    """x, at least ``min``."""
    return limited(context, context.cast(self, context.dtype), min, None)


@converter("aten.clamp_max.default")
def clamp_max(context: Context, self: Expr, max: Operand) -> Expr:
    """x, at most ``max``."""
    return limited(context, context.cast(self, context.dtype), None, max)


def limited(context: Context, tensor: Expr, low: Operand | None, high: Operand | None) -> Expr:
    """A tensor within bounds that are numbers or None, of its own type."""
    kind = DataType(context.dtype_of(tensor))
    if isinstance(low, int | float) and isinstance(high, int | float):
        ends = [held_number(bound, str(kind)) for bound in (low, high)]
        if ends[0] <= ends[1]:
            return op.clip(tensor, *[PrimValue(number(end, kind)) for end in ends])
    if isinstance(low, int | float) and high is None:
        return op.maximum(tensor, context.operand(low, str(kind)))
    if isinstance(high, int | float) and low is None:
        return op.minimum(tensor, context.operand(high, str(kind)))

    if low is not None:
        tensor = context.emit(op.maximum(tensor, context.operand(low, str(kind))))
    if high is None:
        return tensor
    return op.minimum(tensor, context.operand(high, str(kind)))


@converter("aten.clamp.Tensor", "aten.clip.Tensor")
def clamp_tensor(
    context: Context, self: Expr, min: Operand | None = None, max: Operand | None = None
) -> Expr:
    """x limited by tensors that broadcast; the maximum wins."""
    result = context.cast(self, context.dtype)
    if min is not None:
        result = context.emit(op.maximum(result, context.operand(min, context.dtype)))
    return result if max is None else op.minimum(result, context.operand(max, context.dtype))


@converter("aten.clamp_min.Tensor")
def clamp_min_tensor(context: Context, self: Expr, min: Operand) -> Expr:
    """x, at least the elements of ``min``."""
    return clamp_tensor(context, self, min)


@converter("aten.clamp_max.Tensor")
def clamp_max_tensor(context: Context, self: Expr, max: Operand) -> Expr:
    """x, at most the elements of ``max``."""
    return clamp_tensor(context, self, None, max)
