"""Element-wise operators of two and more tensors, with torch's promotion of data types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr, PrimValue, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.dtypes import result_dtype
from weft.relax.frontend.torch.operators.pointwise import (
    as_bool,
    in_wide_float,
    is_narrow,
)
from weft.relax.frontend.torch.registry import CONVERTERS, converter
from weft.relax.frontend.torch.values import Operand
from weft.support.dtype import DataType

Operator = Callable[..., Expr]

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
    "bitwise_left_shift": op.left_shift, "__lshift__": op.left_shift,
    "bitwise_right_shift": op.right_shift, "__rshift__": op.right_shift,
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
    "fmin": op.fmin, "heaviside": op.heaviside, "hypot": op.hypot, "logaddexp": op.log_add_exp,
    "logaddexp2": op.log_add_exp2, "nextafter": op.nextafter, "special_xlog1py": op.xlog1py,
    "special_xlogy": op.xlogy, "special_zeta": op.zeta, "xlogy": op.xlogy,
}  # fmt: skip
"""Functions of two floats of the result's type."""
INTEGERS: Final[dict[str, Operator]] = {"fmax": op.maximum, "fmin": op.minimum}
"""What some of them are of integers."""


def _register_tables() -> None:
    for name, (function, boolean) in ARITHMETIC.items():
        _register(name, _arithmetic(function, boolean))
    for table, make in ((BITS, _bits), (COMPARISONS, _comparison), (LOGIC, _logic)):
        for name, function in table.items():
            _register(name, make(function))
    for name, function in FLOATS.items():
        _register(name, _of_floats(name, function))


def _register(name: str, convert: Operator) -> None:
    for overload in (*OVERLOADS, "default", "out", "other_scalar", "self_scalar"):
        CONVERTERS[f"aten.{name}.{overload}"] = convert


def _arithmetic(function: Operator, boolean: Operator) -> Operator:
    def convert(context: Context, self: Operand, other: Operand) -> Expr:
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


def _of_floats(name: str, function: Operator) -> Operator:
    def convert(context: Context, self: Operand, other: Operand, out: Expr | None = None) -> Expr:
        is_float = DataType(context.dtype).is_float
        chosen = function if is_float else INTEGERS.get(name, function)
        return chosen(*[context.term(item, context.dtype) for item in (self, other)])

    return convert


_register_tables()


@converter("aten.add.Tensor", "aten.add.Scalar")
def add(context: Context, self: Expr, other: Operand, alpha: Operand = 1) -> Expr:
    """``self + alpha * other``; of booleans "or"."""
    left, right = context.promoted(self, other)
    if context.dtype == "bool":
        return op.logical_or(left, right) if alpha else left
    return plus_multiple(context, op.add, left, right, alpha)


@converter("aten.sub.Tensor", "aten.sub.Scalar", "aten.subtract.Tensor", "aten.subtract.Scalar")
def sub(context: Context, self: Expr, other: Operand, alpha: Operand = 1) -> Expr:
    """``self - alpha * other``."""
    left, right = context.promoted(self, other)
    return plus_multiple(context, op.subtract, left, right, alpha)


@converter("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(context: Context, self: Expr, other: Operand, alpha: Operand = 1) -> Expr:
    """``other - alpha * self``."""
    left, right = context.promoted(self, other)
    return plus_multiple(context, op.subtract, right, left, alpha)


def plus_multiple(
    context: Context, function: Operator, start: Expr, end: Expr, alpha: Operand
) -> Expr:
    """``start + alpha * end`` (or minus): 16-bit floats in float32, rounded once.

    As in torch alpha has the narrow type.
    """
    dtype = context.dtype  # ``end`` may be a symbolic number, which has none
    if is_narrow(dtype) and isinstance(alpha, int | float) and alpha != 1:
        factor = const(_as_held(alpha, dtype), "float32")
        return in_wide_float(
            context, lambda x, y: function(x, context.emit(op.multiply(y, factor))), start, end
        )
    return function(start, scaled(context, end, alpha))


def rounded_once(context: Context, function: Operator, dtype: str, *operands: Operand) -> Expr:
    """``function`` of operands of a type; of 16-bit floats and a number in float32, rounded once.

    This is how torch multiplies and divides; before it adds, it rounds the number to 16 bits. Where
    the number is exact in 16 bits, the result is the same without float32.
    """
    if is_narrow(dtype) and _is_rounded(context, dtype, operands):
        wide = function(*[context.operand(value, "float32") for value in operands])
        return op.astype(context.emit(wide), dtype)
    return function(*[context.term(value, dtype) for value in operands])


def _is_rounded(context: Context, dtype: str, operands: Sequence[Operand]) -> bool:
    """Whether an operand is a number that the type cannot hold, or a wider 0-d tensor."""
    for value in operands:
        if isinstance(value, int | float):
            if _as_held(value, dtype) != value:
                return True
        elif isinstance(value, Expr) and not isinstance(value, PrimValue):
            if context.rank(value) == 0 and context.dtype_of(value) in ("float32", "float64"):
                return True
    return False


def _as_held(value: float, dtype: str) -> float:
    """The number, rounded to a data type."""
    with np.errstate(over="ignore"):
        return float(const(value, dtype).data.numpy())


def scaled(context: Context, tensor: Expr, factor: Operand) -> Expr:
    """The tensor times a number; itself for 1."""
    if isinstance(factor, int | float) and factor == 1:
        return tensor
    return context.emit(op.multiply(tensor, context.operand(factor, context.dtype_of(tensor))))


@converter("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor",
           "aten.true_divide.Scalar", "aten.divide.Tensor", "aten.divide.Scalar")  # fmt: skip
def div(context: Context, self: Expr, other: Operand) -> Expr:
    """The quotient of real numbers."""
    return rounded_once(context, op.divide, context.dtype, self, other)


@converter("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.divide.Tensor_mode",
           "aten.divide.Scalar_mode")  # fmt: skip
def div_mode(
    context: Context, self: Expr, other: Operand, rounding_mode: str | None = None
) -> Expr:
    """The quotient: as it is, rounded towards zero ("trunc"), or down ("floor")."""
    if rounding_mode is None:
        return div(context, self, other)
    quotient = _floor_quotient if rounding_mode == "floor" else _truncated_quotient
    dtype = context.dtype
    if is_narrow(dtype) and _is_rounded(context, dtype, [self, other]):
        return in_wide_float(context, partial(quotient, context), self, other)
    return quotient(context, *context.promoted(self, other))


@converter("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(context: Context, self: Expr, other: Operand) -> Expr:
    """The quotient rounded down."""
    return div_mode(context, self, other, "floor")


def _truncated_quotient(context: Context, x: Expr, y: Expr) -> Expr:
    quotient = context.emit(op.divide(x, y))
    return op.trunc(quotient) if DataType(context.dtype_of(quotient)).is_float else quotient


def _floor_quotient(context: Context, x: Expr, y: Expr) -> Expr:
    is_float = DataType(context.dtype).is_float
    return op.exact_floor_divide(x, y) if is_float else op.floor_divide(x, y)


@converter("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(context: Context, self: Operand, other: Operand) -> Expr:
    """The rest with the sign of the divisor."""
    return op.floor_mod(*context.promoted(self, other))


@converter("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(context: Context, self: Expr, other: Operand) -> Expr:
    """The rest with the sign of the dividend."""
    return op.mod(*context.promoted(self, other))


@converter("aten.gcd.default")
def gcd(context: Context, self: Expr, other: Operand) -> Expr:
    """The greatest common divisor."""
    return op.gcd(*context.promoted(self, other))


@converter("aten.lcm.default")
def lcm(context: Context, self: Expr, other: Operand) -> Expr:
    """The least common multiple; 0 if either is 0."""
    x, y = context.promoted(self, other)
    divisor = context.emit(op.gcd(x, y))
    zero, unit = (const(value, context.dtype) for value in (0, 1))
    of_zeros = context.emit(op.equal(divisor, zero))
    part = context.emit(op.divide(x, context.emit(op.where(of_zeros, unit, divisor))))
    multiple = context.emit(op.multiply(part, y))
    return multiple if DataType(context.dtype).is_uint else op.abs(multiple)


@converter("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther",
           "aten.where.Scalar")  # fmt: skip
def where(context: Context, condition: Expr, self: Operand, other: Operand) -> Expr:
    """``self`` where the condition holds, else ``other``."""
    left, right = (context.operand(item, context.dtype) for item in (self, other))
    return op.where(as_bool(context, condition), left, right)


@converter("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(context: Context, self: Expr, mask: Expr, value: Operand) -> Expr:
    """``value`` where the mask holds."""
    filled = context.operand(value, context.dtype)
    return op.where(as_bool(context, mask), filled, context.cast(self, context.dtype))


@converter("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(context: Context, self: Expr, end: Expr, weight: Operand) -> Expr:
    """From ``self`` to ``end`` by ``weight``; beyond 1/2 counted from the end, as PyTorch."""

    def blend(x: Expr, y: Expr, w: Expr) -> Expr:
        emit = context.emit
        way = emit(op.subtract(y, x))
        near = emit(op.add(x, emit(op.multiply(w, way))))
        if isinstance(weight, int | float) and abs(weight) < 0.5:
            return near
        unit, half = (const(value, context.dtype_of(way)) for value in (1.0, 0.5))
        back = emit(op.multiply(way, emit(op.subtract(unit, w))))
        far = emit(op.subtract(y, back))
        if isinstance(weight, int | float):
            return far
        return op.where(emit(op.less(emit(op.abs(w)), half)), near, far)

    return in_wide_float(context, blend, self, end, weight)


@converter("aten.addcmul.default")
def addcmul(context: Context, self: Expr, tensor1: Expr, tensor2: Expr, value: Operand = 1) -> Expr:
    """``self + value * tensor1 * tensor2``."""
    return _plus_scaled(context, op.multiply, value, self, tensor1, tensor2)


@converter("aten.addcdiv.default")
def addcdiv(context: Context, self: Expr, tensor1: Expr, tensor2: Expr, value: Operand = 1) -> Expr:
    """``self + value * tensor1 / tensor2``."""
    return _plus_scaled(context, op.divide, value, self, tensor1, tensor2)


@converter("prims.fma.default")
def fma(context: Context, a: Expr, b: Expr, c: Expr) -> Expr:
    """``a * b + c``, which optimisers of torch.compile contain."""
    return op.add(context.emit(op.multiply(a, b)), c)


def _plus_scaled(context: Context, function: Operator, value: Operand, *tensors: Expr) -> Expr:
    def total(x: Expr, a: Expr, b: Expr) -> Expr:
        return op.add(x, scaled(context, context.emit(function(a, b)), value))

    return in_wide_float(context, total, *tensors)


@converter("aten.isclose.default")
def isclose(
    context: Context,
    self: Expr,
    other: Expr,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Expr:
    """``|self - other| <= atol + rtol * |other|``; equal infinities are close."""
    dtype, emit = result_dtype([self, other]), context.emit
    x, y = (context.operand(item, dtype) for item in (self, other))
    is_float = DataType(dtype).is_float
    equal = emit(op.equal(x, y))
    if not is_float and not rtol and not atol:
        return equal
    if equal_nan and is_float:
        both = emit(op.logical_and(emit(op.isnan(x)), emit(op.isnan(y))))
        equal = emit(op.logical_or(equal, both))
    kind = dtype if is_float else "float64"
    a, b = (context.cast(item, kind) for item in (x, y))
    distance = emit(op.abs(emit(op.subtract(a, b))))
    share = emit(op.abs(emit(op.multiply(const(rtol, kind), b))))
    near = emit(op.less_equal(distance, emit(op.add(const(atol, kind), share))))
    near = emit(op.logical_and(emit(op.isfinite(distance)), near))
    return op.logical_or(equal, near)
