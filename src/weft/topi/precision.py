"""Element-wise functions computed in a wider type, for 16-bit floats or for accuracy."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr
from weft.tir import op as tir_op

Number = PrimExpr | float
Scalar = Callable[..., PrimExpr]
"""A function from expressions and Python numbers to an expression."""


def in_wide_float(function: Scalar) -> Scalar:
    """The function with its 16-bit arguments in float32 and its result rounded once."""

    def computed(*values: Number) -> PrimExpr:
        dtype = next(value.dtype for value in values if isinstance(value, PrimExpr))
        if dtype.is_float and dtype.bits < 32:
            return tir_op.cast(dtype, function(*[_widened(value, "float32") for value in values]))
        return function(*values)

    return computed


def in_double(function: Scalar) -> Scalar:
    """The function computed in float64 and rounded once, for formulas that lose digits."""

    def computed(*values: Number) -> PrimExpr:
        dtype = next(value.dtype for value in values if isinstance(value, PrimExpr))
        return tir_op.cast(dtype, function(*[_widened(value, "float64") for value in values]))

    return computed


def _widened(value: Number, dtype: str) -> Number:
    return tir_op.cast(dtype, value) if isinstance(value, PrimExpr) else value
