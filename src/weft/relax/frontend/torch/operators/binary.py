"""Element-wise operators of two and more tensors, with torch's promotion of data types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Expr, PrimValue, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.dtypes import result_dtype
from weft.relax.frontend.torch.operators.pointwise import (
    as_bool,
    number,
    pointwise,
)
from weft.relax.frontend.torch.registry import CONVERTERS, converter
from weft.support.dtype import DataType
from weft.tir import op as tir_op
from weft.topi import special
from weft.topi.broadcast import log_add_exp
from weft.topi.integers import gcd as integer_gcd
from weft.topi.precision import in_double, in_wide_float
from weft.topi.shared import Bindings, sharing

Operator = Callable[..., Any]

OVERLOADS: Final = (
    "Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor", "Scalar_Other",
    "Scalar_Self",
)  # fmt: skip

ARITHMETIC: Final[dict[str, tuple[Operator, Operator]]] = {
    "mul": (op.multiply, op.logical_and), "multiply": (op.multiply, op.logical_and),
    "maximum": (op.maximum, op.logical_or), "minimum": (op.minimum, op.logical_and),
}  # fmt: skip
"""Operators of numbers, and what they are of booleans."""
BITS: Final[dict[str, Operator]] = {
    "bitwise_and": op.bitwise_and, "bitwise_or": op.bitwise_or, "bitwise_xor": op.bitwise_xor,
    "__and__": op.bitwise_and, "__or__": op.bitwise_or, "__xor__": op.bitwise_xor,
}  # fmt: skip
COMPARISONS: Final[dict[str, Operator]] = {
    "eq": op.equal, "ge": op.greater_equal, "gt": op.greater, "le": op.less_equal, "lt": op.less,
    "ne": op.not_equal,
}  # fmt: skip
LOGIC: Final[dict[str, Operator]] = {
    "logical_and": op.logical_and, "logical_or": op.logical_or, "logical_xor": op.logical_xor,
}  # fmt: skip


FLOATS: Final[dict[str, Operator]] = {
    "atan2": op.atan2, "arctan2": op.atan2, "copysign": op.copysign, "fmax": op.fmax,
    "fmin": op.fmin, "heaviside": op.heaviside, "hypot": op.hypot, "logaddexp2": op.log_add_exp2,
    "nextafter": op.nextafter, "special_xlog1py": op.xlog1py, "special_xlogy": op.xlogy,
    "xlogy": op.xlogy,
}  # fmt: skip
"""Functions of two floats of the result's type."""
INTEGERS: Final[dict[str, Operator]] = {"fmax": op.maximum, "fmin": op.minimum}
"""What some of them are of integers."""
KERNELS: Final[dict[str, Operator]] = {
    "logaddexp": in_wide_float(log_add_exp), "special_zeta": in_double(special.zeta),
}  # fmt: skip
"""Functions of two elements of the result's type, without an operator."""
SHIFTS: Final[dict[str, Operator]] = {
    "bitwise_left_shift": tir_op.left_shift, "__lshift__": tir_op.left_shift,
    "bitwise_right_shift": tir_op.right_shift, "__rshift__": tir_op.right_shift,
}  # fmt: skip


def _register_tables() -> None:
    for name, (function, boolean) in ARITHMETIC.items():
        _register(name, _arithmetic(function, boolean))
    for table, make in ((BITS, _bits), (COMPARISONS, _comparison), (LOGIC, _logic)):
        for name, function in table.items():
            _register(name, make(function))
    for name, function in FLOATS.items():
        _register(name, _of_floats(name, function))
    for name, function in KERNELS.items():
        _register(name, _kernel(name, function))
    for name, function in SHIFTS.items():
        _register(name, _shift(function))


def _register(name: str, convert: Operator) -> None:
    for overload in (*OVERLOADS, "default", "out", "other_scalar", "self_scalar"):
        CONVERTERS[f"aten.{name}.{overload}"] = convert


def _arithmetic(function: Operator, boolean: Operator) -> Operator:
    def convert(context: Context, self: Any, other: Any) -> Any:
        if context.dtype == "bool":
            return boolean(*context.promoted(self, other))
        return rounded_once(context, function, result_dtype([self, other]), self, other)

    return convert


def _bits(function: Operator) -> Operator:
    return lambda context, self, other: function(*context.promoted(self, other))


def _comparison(function: Operator) -> Operator:
    return lambda context, self, other: function(*context.promoted(self, other))


def _logic(function: Operator) -> Operator:
    return lambda context, self, other: function(as_bool(context, self), as_bool(context, other))


def _kernel(name: str, function: Operator) -> Operator:
    return lambda context, self, other, out=None: pointwise(
        context, name, function, *[context.operand(item, context.dtype) for item in (self, other)]
    )


def _of_floats(name: str, function: Operator) -> Operator:
    def convert(context: Context, self: Any, other: Any, out: Any = None) -> Any:
        is_float = DataType(context.dtype).is_float
        chosen = function if is_float else INTEGERS.get(name, function)
        return chosen(*[context.operand(item, context.dtype) for item in (self, other)])

    return convert


def _shift(function: Operator) -> Operator:
    """A shift by the width or more leaves nothing but copies of the sign."""
    left = function is tir_op.left_shift

    def shifted(x: PrimExpr, by: PrimExpr) -> PrimExpr:
        width = tir_op.const(x.dtype.bits, x.dtype)
        zero = tir_op.const(0, x.dtype)
        inside = tir_op.logical_and(tir_op.less_equal(zero, by), tir_op.less(by, width))
        by = tir_op.select(inside, by, zero)
        if left or x.dtype.is_uint:
            outside = zero
        else:
            outside = tir_op.right_shift(x, width - tir_op.const(1, x.dtype))
        made: PrimExpr = tir_op.select(inside, function(x, by), outside)
        return made

    return lambda context, self, other: pointwise(
        context, "shift", shifted, *context.promoted(self, other)
    )


_register_tables()


@converter("aten.add.Tensor", "aten.add.Scalar")
def add(context: Context, self: Expr, other: Any, alpha: Any = 1) -> Any:
    """``self + alpha * other``; of booleans "or"."""
    left, right = context.promoted(self, other)
    if context.dtype == "bool":
        return op.logical_or(left, right) if alpha else left
    return plus_multiple(context, op.add, left, right, alpha)


@converter("aten.sub.Tensor", "aten.sub.Scalar", "aten.subtract.Tensor", "aten.subtract.Scalar")
def sub(context: Context, self: Expr, other: Any, alpha: Any = 1) -> Any:
    """``self - alpha * other``."""
    left, right = context.promoted(self, other)
    return plus_multiple(context, op.subtract, left, right, alpha)


@converter("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(context: Context, self: Expr, other: Any, alpha: Any = 1) -> Any:
    """``other - alpha * self``."""
    left, right = context.promoted(self, other)
    return plus_multiple(context, op.subtract, right, left, alpha)


def plus_multiple(context: Context, function: Operator, start: Expr, end: Expr, alpha: Any) -> Any:
    """``start + alpha * end`` (or minus): 16-bit floats in float32, rounded once.

    As in torch alpha has the narrow type.
    """
    dtype = context.dtype  # ``end`` may be a symbolic number, which has none
    if is_narrow(dtype) and isinstance(alpha, int | float) and alpha != 1:
        factor = tir_op.const(_as_held(alpha, dtype), "float32")
        step = tir_op.add if function is op.add else tir_op.subtract
        return pointwise(
            context, "plus_multiple", in_wide_float(lambda x, y: step(x, y * factor)), start, end
        )
    return function(start, scaled(context, end, alpha))


def rounded_once(context: Context, function: Operator, dtype: str, *operands: Any) -> Any:
    """``function`` of operands in a type; a number beside 16-bit floats is a float32.

    So torch multiplies and divides; it adds the number that the narrow type has.

    Where the narrow type has the number, the result is the same without going to float32.
    """
    if is_narrow(dtype) and _is_rounded(context, dtype, operands):
        wide = function(*[context.operand(value, "float32") for value in operands])
        return op.astype(context.emit(wide), dtype)
    return function(*[context.operand(value, dtype) for value in operands])


def is_narrow(dtype: str) -> bool:
    """Whether the type is a float of 16 bits, which torch computes with in float32."""
    kind = DataType(dtype)
    return bool(kind.is_float and kind.bits == 16)


def _is_rounded(context: Context, dtype: str, operands: Sequence[Any]) -> bool:
    """Whether one is a number, or a tensor of no dimensions, that the type may not have."""
    for value in operands:
        if isinstance(value, int | float):
            if _as_held(value, dtype) != value:
                return True
        elif isinstance(value, Expr) and not isinstance(value, PrimValue):
            if context.rank(value) == 0 and context.dtype_of(value) in ("float32", "float64"):
                return True
    return False


def _as_held(value: float, dtype: str) -> float:
    """A number as a type holds it."""
    with np.errstate(over="ignore"):
        return float(const(value, dtype).data.numpy())


def scaled(context: Context, tensor: Expr, factor: Any) -> Expr:
    """The tensor times a number; itself for 1."""
    if isinstance(factor, int | float) and factor == 1:
        return tensor
    made: Expr = context.emit(
        op.multiply(tensor, context.operand(factor, context.dtype_of(tensor)))
    )
    return made


@converter("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor",
           "aten.true_divide.Scalar", "aten.divide.Tensor", "aten.divide.Scalar")  # fmt: skip
def div(context: Context, self: Expr, other: Any) -> Any:
    """The quotient of real numbers."""
    return rounded_once(context, op.divide, context.dtype, self, other)


@converter("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.divide.Tensor_mode",
           "aten.divide.Scalar_mode")  # fmt: skip
def div_mode(context: Context, self: Expr, other: Any, rounding_mode: str | None = None) -> Any:
    """The quotient: as it is, rounded towards zero ("trunc"), or down ("floor")."""
    if rounding_mode is None:
        return div(context, self, other)
    kernel = _floor_quotient if rounding_mode == "floor" else _truncated_quotient
    dtype = context.dtype
    if is_narrow(dtype) and _is_rounded(context, dtype, [self, other]):
        wide = [context.operand(value, "float32") for value in (self, other)]
        return pointwise(context, f"div_{rounding_mode}", kernel, *wide, dtype=dtype)
    operands = context.promoted(self, other)
    return pointwise(context, f"div_{rounding_mode}", kernel, *operands)


@converter("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(context: Context, self: Expr, other: Any) -> Any:
    """The quotient rounded down."""
    return div_mode(context, self, other, "floor")


def _truncated_quotient(x: PrimExpr, y: PrimExpr) -> PrimExpr:
    made: PrimExpr = tir_op.trunc(x / y) if x.dtype.is_float else tir_op.truncdiv(x, y)
    return made


@sharing
def _floor_quotient(bind: Bindings, x: PrimExpr, y: PrimExpr) -> PrimExpr:
    """Of floats from the exact remainder, as Python's ``//``; x / y where y is 0."""
    if not x.dtype.is_float:
        made: PrimExpr = tir_op.floordiv(x, y)
        return made
    zero, one = tir_op.const(0.0, x.dtype), tir_op.const(1.0, x.dtype)
    rest = bind(tir_op.fmod(x, y))
    quotient = bind((x - rest) / y)
    apart = tir_op.not_equal(tir_op.less(rest, zero), tir_op.less(y, zero))
    lower = tir_op.logical_and(tir_op.not_equal(rest, zero), apart)
    quotient = bind(tir_op.select(lower, quotient - one, quotient))
    below = bind(tir_op.floor(quotient))
    half = tir_op.const(0.5, x.dtype)
    below = tir_op.select(tir_op.greater(quotient - below, half), below + one, below)
    signed = tir_op.copysign(zero, x / y)
    whole = tir_op.select(tir_op.not_equal(quotient, zero), below, signed)
    found: PrimExpr = tir_op.select(tir_op.equal(y, zero), x / y, whole)
    return found


@converter("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(context: Context, self: Any, other: Any) -> Any:
    """The rest with the sign of the divisor."""
    return op.floor_mod(*context.promoted(self, other))


@converter("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(context: Context, self: Expr, other: Any) -> Any:
    """The rest with the sign of the dividend."""
    return op.mod(*context.promoted(self, other))


@converter("aten.gcd.default")
def gcd(context: Context, self: Expr, other: Any) -> Any:
    """The greatest common divisor."""
    return context.emit(context.builder.call_te(integer_gcd, *context.promoted(self, other)))


@converter("aten.lcm.default")
def lcm(context: Context, self: Expr, other: Any) -> Any:
    """The least common multiple; 0 if either is 0."""

    def kernel(x: PrimExpr, y: PrimExpr, divisor: PrimExpr) -> PrimExpr:
        zero, one = tir_op.const(0, x.dtype), tir_op.const(1, x.dtype)
        none = tir_op.equal(divisor, zero)
        part = tir_op.truncdiv(x, tir_op.select(none, one, divisor))
        made: PrimExpr = tir_op.select(none, zero, tir_op.abs(part * y))
        return made

    operands = context.promoted(self, other)
    divisor = context.emit(context.builder.call_te(integer_gcd, *operands))
    return pointwise(context, "lcm", kernel, *operands, divisor)


@converter("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther",
           "aten.where.Scalar")  # fmt: skip
def where(context: Context, condition: Expr, self: Any, other: Any) -> Any:
    """``self`` where the condition holds, else ``other``."""
    left, right = (context.operand(item, context.dtype) for item in (self, other))
    return op.where(as_bool(context, condition), left, right)


@converter("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(context: Context, self: Expr, mask: Expr, value: Any) -> Any:
    """``value`` where the mask holds."""
    filled = context.operand(value, context.dtype)
    return op.where(as_bool(context, mask), filled, context.cast(self, context.dtype))


@converter("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(context: Context, self: Expr, end: Expr, weight: Any) -> Any:
    """From ``self`` to ``end`` by ``weight``; beyond 1/2 counted from the end, as PyTorch."""
    is_number = isinstance(weight, int | float)

    def kernel(x: PrimExpr, y: PrimExpr, given: PrimExpr | None = None) -> PrimExpr:
        w = number(weight, x.dtype) if given is None else given
        half, one = tir_op.const(0.5, x.dtype), tir_op.const(1.0, x.dtype)
        near = x + w * (y - x)
        made: PrimExpr = tir_op.select(
            tir_op.less(tir_op.abs(w), half), near, y - (y - x) * (one - w)
        )
        return made

    tensors = (self, end) if is_number else (self, end, weight)
    operands = [context.operand(item, context.dtype) for item in tensors]
    return pointwise(context, "lerp", in_wide_float(kernel), *operands)


@converter("aten.addcmul.default")
def addcmul(context: Context, self: Expr, tensor1: Expr, tensor2: Expr, value: Any = 1) -> Any:
    """``self + value * tensor1 * tensor2``."""
    return _fused(context, "addcmul", value, (self, tensor1, tensor2), lambda a, b: a * b)


@converter("aten.addcdiv.default")
def addcdiv(context: Context, self: Expr, tensor1: Expr, tensor2: Expr, value: Any = 1) -> Any:
    """``self + value * tensor1 / tensor2``."""
    return _fused(context, "addcdiv", value, (self, tensor1, tensor2), lambda a, b: a / b)


def _fused(context: Context, name: str, value: Any, tensors: Any, function: Operator) -> Any:
    def kernel(x: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        made: PrimExpr = x + number(value, x.dtype) * function(a, b)
        return made

    operands = [context.operand(item, context.dtype) for item in tensors]
    return pointwise(context, name, in_wide_float(kernel), *operands)


@converter("aten.isclose.default")
def isclose(
    context: Context, self: Expr, other: Expr, rtol: float = 1e-5, atol: float = 1e-8,
    equal_nan: bool = False,
) -> Any:  # fmt: skip
    """``|self - other| <= atol + rtol * |other|``; equal infinities are close."""

    def kernel(x: PrimExpr, y: PrimExpr) -> PrimExpr:
        equal = tir_op.equal(x, y)
        if not x.dtype.is_float and not rtol and not atol:
            return equal
        if equal_nan and x.dtype.is_float:
            equal = tir_op.logical_or(equal, tir_op.logical_and(tir_op.isnan(x), tir_op.isnan(y)))
        kind = "float64" if x.dtype.is_integral else str(x.dtype)
        a, b = tir_op.cast(kind, x), tir_op.cast(kind, y)
        distance = tir_op.abs(a - b)
        near = tir_op.less_equal(
            distance, tir_op.const(atol, kind) + tir_op.abs(tir_op.const(rtol, kind) * b)
        )
        near = tir_op.logical_and(tir_op.isfinite(distance), near)
        made: PrimExpr = tir_op.logical_or(equal, near)
        return made

    dtype = result_dtype([self, other])
    operands = [context.operand(item, dtype) for item in (self, other)]
    return pointwise(context, "isclose", kernel, *operands)
