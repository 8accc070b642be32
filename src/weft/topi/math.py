"""Element-wise operators of one tensor. The result has the operand's shape and dtype."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr, as_prim_expr
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.support.span import Span
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import compute_ax, compute_one
from weft.topi.shared import Bindings, sharing

Scalar = Callable[[PrimExpr], PrimExpr]
Bound = PrimExpr | float


def elementwise(x: Tensor, function: Scalar, name: str = "compute") -> Tensor:
    """``function`` of every element; of a scalar expression (not in the types), its value."""
    if not isinstance(x, Tensor):
        return function(as_prim_expr(x))
    return compute_one(x.shape, lambda *i: function(x(*i)), name, tag=tag.ELEMWISE)


def identity(x: Tensor) -> Tensor:
    """x."""
    return elementwise(x, lambda v: v)


def negative(x: Tensor) -> Tensor:
    """-x."""
    return elementwise(x, op.negative)


def exp(x: Tensor) -> Tensor:
    """e to the power x."""
    return elementwise(x, op.exp)


def erf(x: Tensor) -> Tensor:
    """The error function of x."""
    return elementwise(x, op.erf)


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent of x."""
    return elementwise(x, op.tanh)


def tan(x: Tensor) -> Tensor:
    """The tangent of x."""
    return elementwise(x, op.tan)


def cos(x: Tensor) -> Tensor:
    """The cosine of x."""
    return elementwise(x, op.cos)


def cosh(x: Tensor) -> Tensor:
    """The hyperbolic cosine of x."""
    return elementwise(x, op.cosh)


def sin(x: Tensor) -> Tensor:
    """The sine of x."""
    return elementwise(x, op.sin)


def sinh(x: Tensor) -> Tensor:
    """The hyperbolic sine of x."""
    return elementwise(x, op.sinh)


def acos(x: Tensor) -> Tensor:
    """The arc cosine of x."""
    return elementwise(x, op.acos)


def acosh(x: Tensor) -> Tensor:
    """The inverse hyperbolic cosine of x."""
    return elementwise(x, op.acosh)


def asin(x: Tensor) -> Tensor:
    """The arc sine of x."""
    return elementwise(x, op.asin)


def asinh(x: Tensor) -> Tensor:
    """The inverse hyperbolic sine of x."""
    return elementwise(x, op.asinh)


def atan(x: Tensor) -> Tensor:
    """The arc tangent of x."""
    return elementwise(x, op.atan)


def atanh(x: Tensor) -> Tensor:
    """The inverse hyperbolic tangent of x."""
    return elementwise(x, op.atanh)


def floor(x: Tensor) -> Tensor:
    """x rounded down."""
    return elementwise(x, op.floor)


def ceil(x: Tensor) -> Tensor:
    """x rounded up."""
    return elementwise(x, op.ceil)


def trunc(x: Tensor) -> Tensor:
    """x rounded towards zero."""
    return elementwise(x, op.trunc)


def round(x: Tensor) -> Tensor:  # noqa: A001 - TVM's name
    """x rounded to the nearest integer, halves to even."""
    return elementwise(x, op.nearbyint)


def abs(x: Tensor) -> Tensor:  # noqa: A001 - TVM's name
    """The absolute value of x."""
    return elementwise(x, op.abs)


def isnan(x: Tensor) -> Tensor:
    """Whether x is NaN (bool)."""
    return elementwise(x, op.isnan)


def isfinite(x: Tensor) -> Tensor:
    """Whether x is neither infinite nor NaN (bool)."""
    return elementwise(x, op.isfinite)


def isinf(x: Tensor) -> Tensor:
    """Whether x is infinite (bool)."""
    return elementwise(x, op.isinf)


def log(x: Tensor) -> Tensor:
    """The natural logarithm of x."""
    return elementwise(x, op.log)


def log2(x: Tensor) -> Tensor:
    """The logarithm of x to base 2."""
    return elementwise(x, op.log2)


def log10(x: Tensor) -> Tensor:
    """The logarithm of x to base 10."""
    return elementwise(x, op.log10)


def sqrt(x: Tensor) -> Tensor:
    """The square root of x."""
    return elementwise(x, op.sqrt)


def rsqrt(x: Tensor) -> Tensor:
    """1 / sqrt(x)."""
    return elementwise(x, op.rsqrt)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return elementwise(x, op.sigmoid)


def square(x: Tensor) -> Tensor:
    """x * x."""
    return elementwise(x, lambda v: v * v)


def bitwise_not(data: Tensor) -> Tensor:
    """All bits of an integer flipped."""
    return elementwise(data, op.bitwise_not)


def logical_not(data: Tensor) -> Tensor:
    """Not x, of booleans."""
    return elementwise(data, op.logical_not)


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; 0 for NaN."""
    return compute_ax(
        x.shape, lambda *i: _sign(x(*i)), "T_sign", tag=tag.ELEMWISE
    )  # fmt: skip


def _sign(value: PrimExpr) -> PrimExpr:
    zero, unit, minus = (op.const(v, value.dtype) for v in (0, 1, -1 if _signed(value) else 0))
    negative_part = op.select(value < zero, minus, zero)
    return op.select(value > zero, unit, negative_part)


def _signed(value: PrimExpr) -> bool:
    return not (value.dtype.is_uint or value.dtype.is_bool)


def clip(x: Tensor, a_min: Bound | None, a_max: Bound | None) -> Tensor:
    """x limited to [a_min, a_max]; None leaves a side open."""

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
    """By float64, which has not the digits of 64 bits: there the estimate is off by one at most,
    and the bits above 2**n of x - 1 tell.
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
    """The floats' exact quotient rounded down, from the remainder; x / y where y is 0."""
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
