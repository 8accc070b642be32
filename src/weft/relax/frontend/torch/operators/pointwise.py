"""What converters of element-wise operators share: numbers as operands, 16-bit floats."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Expr, PrimValue
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.values import Operand, Scalar
from weft.support.dtype import DataType
from weft.tir import op as tir_op


def in_wide_float(context: Context, function: Callable[..., Expr], *operands: Operand) -> Expr:
    """``function`` of operands in the result's type; of 16-bit floats in float32, rounded once.

    Operands are tensors, numbers and symbolic numbers.
    """
    dtype = context.dtype
    wide = "float32" if is_narrow(dtype) else dtype
    result = context.emit(function(*[context.operand(item, wide) for item in operands]))
    return context.cast(result, dtype)


def is_narrow(dtype: str) -> bool:
    """Whether the type is a float of 16 bits, which torch computes with in float32."""
    kind = DataType(dtype)
    return bool(kind.is_float and kind.bits == 16)


def number(value: Scalar | PrimValue, dtype: str | DataType) -> PrimExpr:
    """A number, or a symbolic one, as an expression of a type."""
    if isinstance(value, PrimValue):
        value = value.value
    if isinstance(value, PrimExpr):
        return tir_op.cast(str(dtype), value)
    return tir_op.const(value, str(DataType(str(dtype))))


def nowhere(context: Context) -> Expr:
    """False everywhere."""
    return op.zeros(context.shape, "bool")


def as_bool(context: Context, tensor: Expr) -> Expr:
    """Whether elements are not 0."""
    return context.cast(tensor, "bool")
