"""Element-wise operators of one tensor. The result has the operand's shape and dtype."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr, as_prim_expr
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.support.span import Span
from weft.te.operation import compute
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import compute_ax
from weft.topi.shared import Bindings, sharing

Scalar = Callable[[PrimExpr], PrimExpr]
Bound = PrimExpr | float


def elementwise(x: Tensor, function: Scalar, name: str = "compute") -> Tensor:
    """``function`` of every element. At run time a scalar expression is accepted, too."""
    if not isinstance(x, Tensor):
        return function(as_prim_expr(x))
    return compute(x.shape, lambda *i: function(x(*i)), name, tag=tag.ELEMWISE)


def _row(name: str, function: Scalar, text: str) -> Callable[[Tensor], Tensor]:
    """An operator that applies ``function`` to every element of its operand ``x``."""

    def row(x: Tensor) -> Tensor:
        return elementwise(x, function)

    row.__name__ = row.__qualname__ = name
    row.__doc__ = text
    return row


identity = _row("identity", lambda v: v, "x.")
negative = _row("negative", op.negative, "-x.")
exp = _row("exp", op.exp, "e to the power x.")
erf = _row("erf", op.erf, "The error function of x.")
tanh = _row("tanh", op.tanh, "The hyperbolic tangent of x.")
tan = _row("tan", op.tan, "The tangent of x.")
cos = _row("cos", op.cos, "The cosine of x.")
cosh = _row("cosh", op.cosh, "The hyperbolic cosine of x.")
sin = _row("sin", op.sin, "The sine of x.")
sinh = _row("sinh", op.sinh, "The hyperbolic sine of x.")
acos = _row("acos", op.acos, "The arc cosine of x.")
acosh = _row("acosh", op.acosh, "The inverse hyperbolic cosine of x.")
asin = _row("asin", op.asin, "The arc sine of x.")
asinh = _row("asinh", op.asinh, "The inverse hyperbolic sine of x.")
atan = _row("atan", op.atan, "The arc tangent of x.")
atanh = _row("atanh", op.atanh, "The inverse hyperbolic tangent of x.")
floor = _row("floor", op.floor, "x rounded down.")
ceil = _row("ceil", op.ceil, "x rounded up.")
trunc = _row("trunc", op.trunc, "x rounded towards zero.")
round = _row(  # noqa: A001 - TVM's name
    "round", op.nearbyint, "x rounded to the nearest integer, halves to even."
)
abs = _row("abs", op.abs, "The absolute value of x.")  # noqa: A001 - TVM's name
isnan = _row("isnan", op.isnan, "Whether x is NaN (bool).")
isfinite = _row("isfinite", op.isfinite, "Whether x is neither infinite nor NaN (bool).")
isinf = _row("isinf", op.isinf, "Whether x is infinite (bool).")
log = _row("log", op.log, "The natural logarithm of x.")
log2 = _row("log2", op.log2, "The logarithm of x to base 2.")
log10 = _row("log10", op.log10, "The logarithm of x to base 10.")
sqrt = _row("sqrt", op.sqrt, "The square root of x.")
rsqrt = _row("rsqrt", op.rsqrt, "1 / sqrt(x).")
sigmoid = _row("sigmoid", op.sigmoid, "1 / (1 + exp(-x)).")
square = _row("square", lambda v: v * v, "x * x.")


def bitwise_not(data: Tensor) -> Tensor:
    """An integer with all its bits inverted."""
    return elementwise(data, op.bitwise_not)


def logical_not(data: Tensor) -> Tensor:
    """Not x, of booleans."""
    return elementwise(data, op.logical_not)


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; 0 for NaN."""
    return compute_ax(x.shape, lambda *i: _sign(x(*i)), "T_sign", tag=tag.ELEMWISE)


def _sign(value: PrimExpr) -> PrimExpr:
    zero, unit, minus = (op.const(v, value.dtype) for v in (0, 1, -1 if _signed(value) else 0))
    negative_part = op.select(value < zero, minus, zero)
    return op.select(value > zero, unit, negative_part)


def _signed(value: PrimExpr) -> bool:
    return not (value.dtype.is_uint or value.dtype.is_bool)


def clip(x: Tensor, a_min: Bound | None, a_max: Bound | None) -> Tensor:
    """x limited to [a_min, a_max]; None means no limit."""

    def limited(value: PrimExpr) -> PrimExpr:
        result = value
        if a_max is not None:
            result = op.minimum(result, _limit(a_max, value.dtype))
        if a_min is not None:
            result = op.maximum(result, _limit(a_min, value.dtype))
        return result

    return elementwise(x, limited)


def _limit(bound: Bound, dtype: DataType) -> PrimExpr:
    return op.cast(dtype, bound) if isinstance(bound, PrimExpr) else op.const(bound, dtype)


def cast(x: Tensor, dtype: str, span: Span | None = None) -> Tensor:
    """x converted to ``dtype`` (float to int saturates, NaN becomes 0)."""
    return elementwise(x, lambda v: op.cast(dtype, v, span))


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    """The bits of x as another type of the same width."""
    return elementwise(x, lambda v: op.reinterpret(dtype, v))


def fast_exp(x: Tensor) -> Tensor:
    """exp; weft's is already fast."""
    return exp(x)


def fast_tanh(x: Tensor) -> Tensor:
    """tanh; weft's is already fast."""
    return tanh(x)


def fast_erf(x: Tensor) -> Tensor:
    """erf; weft's is already fast."""
    return erf(x)


def ceil_log2(x: Tensor) -> Tensor:
    """The smallest integer n with 2**n >= x, for a positive integer x."""
    dtype = x.dtype
    if not dtype.is_integral:
        raise IRTypeError(f"ceil_log2: expected an integer, got {dtype}")
    return elementwise(x, _ceil_log2)


def _ceil_log2(x: PrimExpr) -> PrimExpr:
    """Computed in float64. That is exact up to 32 bits; for 64 bits the estimate n may be wrong by
    one, and is corrected by whether ``(x - 1) >> n`` is 0.
    """
    estimate = op.cast(x.dtype, op.ceil(op.log2(op.cast("float64", x))))
    if x.dtype.bits <= 32:
        return estimate
    zero, unit = op.const(0, x.dtype), op.const(1, x.dtype)
    below = op.maximum(estimate, unit) - unit
    by_one_less = op.equal(op.right_shift(x - unit, below), zero)
    more = op.not_equal(op.right_shift(x - unit, estimate), zero)
    return op.select(by_one_less, below, op.select(more, estimate + unit, estimate))


@sharing
def floor_quotient(bind: Bindings, x: PrimExpr, y: PrimExpr) -> PrimExpr:
    """floor(x / y) for floats, from the exact quotient (by the remainder); x / y if y is 0."""
    zero, unit = op.const(0.0, x.dtype), op.const(1.0, x.dtype)
    rest = bind(op.fmod(x, y))
    quotient = bind((x - rest) / y)
    apart = op.not_equal(op.less(rest, zero), op.less(y, zero))
    lower = op.logical_and(op.not_equal(rest, zero), apart)
    quotient = bind(op.select(lower, quotient - unit, quotient))
    below = bind(op.floor(quotient))
    half = op.const(0.5, x.dtype)
    below = op.select(op.greater(quotient - below, half), below + unit, below)
    signed = op.copysign(zero, x / y)
    whole = op.select(op.not_equal(quotient, zero), below, signed)
    return op.select(op.equal(y, zero), x / y, whole)
