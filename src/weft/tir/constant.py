"""Constants of TensorIR, casts, and the common type of two operands.

Promotion follows TVM 0.20: a scalar is broadcast to a vector's lanes; int and float give float; the
wider type wins; int and uint of the same width give uint.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.ir.expr import ExprLike, FloatImm, IntImm, PrimExpr, as_prim_expr, integer_range
from weft.ir.node import Array
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.support.span import Span
from weft.tir import expr as nodes
from weft.tir.intrinsic import (  # noqa: A004 - TVM's names
    vscale,
)


def const(value: Any, dtype: str | None = None, span: Span | None = None) -> PrimExpr:
    """A constant of ``dtype`` (int32, float32, bool by the Python type if None).

    A vector dtype gives a Broadcast. Raises IRValueError if an int does not fit.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if dtype is None:
        return as_prim_expr(value)
    data_type = DataType(dtype)
    if data_type.lanes != 1 or data_type.is_scalable:
        return nodes.Broadcast(const(value, data_type.element), lanes_of(data_type))
    if data_type.is_float:
        return FloatImm(data_type, float(value), span)
    if data_type.is_handle:
        return nodes.Cast(data_type, IntImm(DataType("uint64"), int(value)))
    return IntImm(data_type, int(value), span)


def convert(value: ExprLike, span: Span | None = None) -> Any:
    """A node from a Python value; lists become Arrays."""
    if isinstance(value, (list, tuple)):
        return Array([convert(item) for item in value])
    return as_prim_expr(value)


def min_value(dtype: str, span: Span | None = None) -> PrimExpr:
    """The smallest finite value of a type."""
    data_type = DataType(dtype)
    if data_type.is_float:
        return FloatImm(data_type, -_float_max(data_type), span)
    return IntImm(data_type, integer_range(data_type)[0], span)


def max_value(dtype: str, span: Span | None = None) -> PrimExpr:
    """The largest finite value of a type."""
    data_type = DataType(dtype)
    if data_type.is_float:
        return FloatImm(data_type, _float_max(data_type), span)
    return IntImm(data_type, integer_range(data_type)[1], span)


def infinity(dtype: str, span: Span | None = None) -> PrimExpr:
    """Positive infinity of a floating-point type."""
    return FloatImm(DataType(dtype), math.inf, span)


def _float_max(dtype: DataType) -> float:
    if dtype.kind == "float":
        return float(np.finfo(dtype.numpy).max)
    import ml_dtypes  # noqa: PLC0415 - loaded only for the types that need it

    return float(ml_dtypes.finfo(dtype.numpy).max)


def cast(dtype: str, value: ExprLike, span: Span | None = None) -> PrimExpr:
    """``value`` converted to ``dtype``: itself if it has that type, folded if it is constant."""
    expr, target = as_prim_expr(value), DataType(dtype)
    source = expr.dtype
    if source is target:
        return expr
    if _is_scalar(source) and not _is_scalar(target):
        return nodes.Broadcast(cast(target.element, expr), lanes_of(target))
    if isinstance(expr, nodes.Broadcast) and source.lanes == target.lanes:
        return nodes.Broadcast(cast(target.element, expr.value), expr.lanes)
    if isinstance(expr, IntImm) and not target.is_handle:
        if target.is_float:
            return FloatImm(target, float(expr.value), span)
        return IntImm(target, wrap(expr.value, target), span)
    if isinstance(expr, FloatImm) and target.is_float:
        return FloatImm(target, expr.value, span)
    if isinstance(expr, FloatImm) and target.is_integral:
        return IntImm(target, saturate(expr.value, target), span)
    return nodes.Cast(target, expr, span)


def lanes_of(dtype: DataType) -> PrimExpr:
    """The number of lanes of a type as an expression; ``vscale * n`` for a scalable vector."""
    count = IntImm(DataType("int32"), dtype.lanes)
    return nodes.Mul(vscale(), count) if dtype.is_scalable else count


def _is_scalar(dtype: DataType) -> bool:
    return dtype.lanes == 1 and not dtype.is_scalable


def wrap(value: int, dtype: DataType) -> int:
    """``value`` modulo 2**bits in the range of an integer type; bool is ``value != 0``."""
    if dtype.is_bool:
        return int(value != 0)
    low, high = integer_range(dtype)
    return (value - low) % (high - low + 1) + low


def saturate(value: float, dtype: DataType) -> int:
    """A float as an integer: truncated, clamped to the range; NaN gives 0; bool: value != 0."""
    if dtype.is_bool:
        return int(value != 0)
    if math.isnan(value):
        return 0
    low, high = integer_range(dtype)
    return low if value <= low else high if value >= high else int(value)


def match_types(lhs: ExprLike, rhs: ExprLike) -> tuple[PrimExpr, PrimExpr]:
    """Both operands converted to their common type; IRTypeError if there is none."""
    a = lhs if isinstance(lhs, PrimExpr) else as_prim_expr(lhs)
    b = rhs if isinstance(rhs, PrimExpr) else as_prim_expr(rhs)
    if a.dtype is b.dtype:
        return a, b
    common = _common_type(a.dtype, b.dtype)
    return cast(common, a), cast(common, b)


def _common_type(a: DataType, b: DataType) -> DataType:
    lanes, scalable = a.lanes, a.is_scalable
    if lanes == 1 and not scalable:
        lanes, scalable = b.lanes, b.is_scalable
    elif (b.lanes != 1 or b.is_scalable) and (b.lanes, b.is_scalable) != (lanes, scalable):
        raise IRTypeError(f"cannot match the types {a} and {b}: their lanes differ")
    left, right = a.element, b.element
    if left is right:
        element = left
    elif left.is_handle or right.is_handle:
        raise IRTypeError(f"cannot match the types {a} and {b}")
    elif left.is_float != right.is_float:
        element = left if left.is_float else right
    elif left.bits != right.bits and left.kind == right.kind:
        element = left if left.bits > right.bits else right
    elif left.is_float:
        element = left if left.bits > right.bits else right
        if left.bits == right.bits:
            raise IRTypeError(f"cannot match the types {a} and {b}: cast one explicitly")
    else:
        unsigned, signed = (left, right) if left.kind == "uint" else (right, left)
        element = unsigned if unsigned.bits >= signed.bits else signed
    return element if lanes == 1 and not scalable else element.with_lanes(lanes, scalable)


def is_const_int(expr: object, value: int | None = None) -> bool:
    """Whether ``expr`` is an integer constant, and equals ``value`` if that is given."""
    return isinstance(expr, IntImm) and (value is None or expr.value == value)
