"""Powers: of floats, of integers (exactly, modulo the type), with constant exponents made cheap."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.pointwise import in_wide_float
from weft.relax.frontend.torch.registry import converter
from weft.relax.frontend.torch.values import Operand
from weft.support.dtype import DataType

MULTIPLIED: Final = 16
"""Constant exponents up to this are chains of products."""


@converter("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def pow_(context: Context, self: Operand, exponent: Operand) -> Expr:
    """``self ** exponent`` in the type that torch promotes to."""
    base = context.term(self, context.dtype)
    if isinstance(exponent, int | float):
        return _constant_power(context, base, exponent)
    power = context.operand(exponent, context.dtype)
    return op.power(base, power)


@converter("aten.float_power.Tensor_Scalar", "aten.float_power.Tensor_Tensor",
           "aten.float_power.Scalar")  # fmt: skip
def float_power(context: Context, self: Operand, exponent: Operand) -> Expr:
    """``self ** exponent`` in float64."""
    return pow_(context, self, exponent)


def _constant_power(context: Context, base: Expr, exponent: float) -> Expr:
    kind = DataType(context.dtype)
    if exponent == 1:
        return base
    if exponent == 2:
        return op.multiply(base, base)
    if kind.is_float and exponent == 0.5:
        return op.sqrt(base)
    if kind.is_float and exponent == -0.5:
        return op.rsqrt(base)
    if kind.is_integral and abs(exponent) > MULTIPLIED:
        return op.power(base, context.operand(exponent, context.dtype))
    if float(exponent).is_integer() and abs(exponent) <= MULTIPLIED:
        return in_wide_float(context, lambda x: _product(context, x, int(exponent)), base)
    held = float(const(exponent, context.dtype).data.numpy())  # as in torch, of 16 bits too
    return in_wide_float(context, op.power, base, held)


def _product(context: Context, x: Expr, exponent: int) -> Expr:
    """x to a whole power by squaring."""
    if exponent < 0:
        unit = const(1, context.dtype_of(x))
        return context.emit(op.divide(unit, _product(context, x, -exponent)))
    result: Expr | None = None
    while exponent:
        if exponent & 1:
            result = x if result is None else context.emit(op.multiply(result, x))
        exponent >>= 1
        x = context.emit(op.multiply(x, x)) if exponent else x
    return context.emit(op.ones_like(x)) if result is None else result


@converter("aten.ldexp.Tensor")
def ldexp(context: Context, self: Expr, other: Expr) -> Expr:
    """``self * 2 ** other``: rounded once for a float and an integer, else a product, as in torch.

    A product has the infinite power of 2 ** 128 in float32, even where self is small.
    """
    is_float = DataType(context.dtype_of(other)).is_float
    if not is_float and DataType(context.dtype_of(self)).is_float:
        return _scaled_exactly(context, self, context.cast(other, "int64"))
    base = const(2.0, context.dtype_of(other) if is_float else "float32")
    power = op.power(base, context.cast(other, context.dtype_of(base)))
    return op.multiply(*context.promoted(self, context.emit(power)))


def _scaled_exactly(context: Context, x: Expr, exponent: Expr) -> Expr:
    """x * 2 ** exponent in float64, by three powers that are normal numbers, as C libraries do.

    A step down leaves the 53 bits of a fraction, so a subnormal result is rounded once.
    """
    emit, result = context.emit, context.cast(x, "float64")

    def number(value: int) -> Expr:
        return const(value, "int64")

    def times_power(value: Expr, power: Expr) -> Expr:
        bits = op.left_shift(op.add(power, number(1023)), number(52))
        return emit(op.multiply(value, emit(op.bitcast(emit(bits), "float64"))))

    for _ in range(2):
        up = op.where(op.greater(exponent, number(1023)), number(1023), number(0))
        step = emit(op.where(op.less(exponent, number(-1022)), number(-969), up))
        result, exponent = times_power(result, step), emit(op.subtract(exponent, step))
    last = emit(op.maximum(op.minimum(exponent, number(1023)), number(-1022)))
    return context.cast(times_power(result, last), context.dtype)


_FRACTION: Final = {"float32": ("int32", 23, 8), "float64": ("int64", 52, 11)}
"""Wide float -> the integer of its width, bits of the fraction, bits of the exponent."""
_LIFT: Final = 64
"""Subnormal numbers times two to this power are normal."""


@converter("aten.frexp.Tensor")
def frexp(context: Context, self: Expr) -> tuple[Expr, Expr]:
    """Fractions in [0.5, 1) and exponents of two; 0, infinity and NaN have the exponent 0."""
    emit, (dtype, width) = context.emit, (context.dtype, context.results[1][1])
    wide = "float64" if dtype == "float64" else "float32"
    whole, fraction, bits = _FRACTION[wide]
    mask, half = (1 << bits) - 1, (1 << (bits - 1)) - 2
    x = context.cast(self, wide)
    is_small = emit(op.less(op.abs(x), const(float(np.finfo(wide).tiny), wide)))
    normal = emit(op.where(is_small, op.multiply(x, const(2.0**_LIFT, wide)), x))
    pattern = emit(op.bitcast(normal, whole))
    biased = op.bitwise_and(op.right_shift(pattern, const(fraction, whole)), const(mask, whole))
    lift = op.where(is_small, const(half + _LIFT, whole), const(half, whole))
    exponent = emit(op.subtract(biased, lift))
    kept = op.bitwise_and(pattern, const(~(mask << fraction), whole))
    scaled = emit(op.bitcast(op.bitwise_or(kept, const(half << fraction, whole)), wide))
    is_number = emit(op.logical_and(op.isfinite(x), op.not_equal(x, const(0.0, wide))))
    exponent = emit(op.where(is_number, exponent, const(0, whole)))
    return context.cast(emit(op.where(is_number, scaled, x)), dtype), context.cast(exponent, width)
