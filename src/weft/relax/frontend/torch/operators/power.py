"""Powers: of floats, of integers (exactly, modulo the type), with constant exponents made cheap."""

from __future__ import annotations

from typing import Final

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
