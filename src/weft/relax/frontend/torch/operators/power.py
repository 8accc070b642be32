"""Powers: of floats, of integers (exactly, modulo the type), with constant exponents made cheap."""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.pointwise import number, pointwise
from weft.relax.frontend.torch.registry import converter
from weft.support.dtype import DataType
from weft.tir import op as tir_op
from weft.topi.integers import integer_power
from weft.topi.precision import in_wide_float
from weft.topi.shared import Bindings, sharing

MULTIPLIED: Final = 16
"""Constant exponents up to this are chains of products."""


@converter("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def pow_(context: Context, self: Any, exponent: Any) -> Any:
    """``self ** exponent`` in the type that torch promotes to."""
    kind = DataType(context.dtype)
    base = context.operand(self, context.dtype)
    if isinstance(exponent, int | float):
        return _constant_power(context, base, exponent)
    power = context.operand(exponent, context.dtype)
    if kind.is_float:
        return op.power(base, power)
    return context.emit(context.builder.call_te(integer_power, base, power))


@converter("aten.float_power.Tensor_Scalar", "aten.float_power.Tensor_Tensor",
           "aten.float_power.Scalar")  # fmt: skip
def float_power(context: Context, self: Any, exponent: Any) -> Any:
    """``self ** exponent`` in float64."""
    return pow_(context, self, exponent)


def _constant_power(context: Context, base: Expr, exponent: float) -> Any:
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
        power = context.operand(exponent, context.dtype)
        return context.emit(context.builder.call_te(integer_power, base, power))
    whole = float(exponent).is_integer()
    if whole and abs(exponent) <= MULTIPLIED:
        kernel = in_wide_float(lambda x: _product(x, int(exponent)))
        return pointwise(context, "power", kernel, base)
    held = float(const(exponent, context.dtype).data.numpy())  # as in torch, of 16 bits too
    return pointwise(
        context, "power", in_wide_float(lambda x: tir_op.power(x, number(held, x.dtype))), base
    )


@sharing
def _product(bind: Bindings, x: PrimExpr, exponent: int) -> PrimExpr:
    """x to a whole power by squaring."""
    if exponent < 0 and x.dtype.is_float:
        return tir_op.const(1.0, x.dtype) / _product(x, -exponent)
    result: PrimExpr | None = None
    while exponent:
        if exponent & 1:
            result = x if result is None else result * x
        x = bind(x * x)
        exponent >>= 1
    return tir_op.const(1, x.dtype) if result is None else result
