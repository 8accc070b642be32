"""Binary operators with numpy's broadcasting, comparisons and logic.

Operands are tensors, expressions or Python numbers; a number takes the other operand's dtype (an
int tensor and a float give float32). Two scalars give an expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.expr import PrimExpr
from weft.support.errors import IRTypeError, IRValueError
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    as_sequence,
    broadcast_indices,
    broadcast_shape,
    compute_ax,
    operand,
    shape_text,
)

Binary = Callable[[Any, Any], PrimExpr]


def broadcast_to(data: Tensor, shape: Any) -> Tensor:
    """``data`` broadcast to ``shape``; raises IRValueError if it does not fit."""
    target = as_sequence(shape)
    common = broadcast_shape(data.shape, target, "broadcast_to")
    grown = [1 for mine, its in zip(common, target, strict=False) if _differ(mine, its)]
    if len(common) != len(target) or grown:
        raise IRValueError(
            f"broadcast_to: {shape_text(data.shape)} does not broadcast to {shape_text(target)}"
        )
    return compute_ax(
        target, lambda *i: data(*broadcast_indices(data.shape, target, i)), "T_broadcast_to",
        tag=tag.BROADCAST,
    )  # fmt: skip


def _differ(mine: Any, its: Any) -> bool:
    return op.is_const_int(mine) and op.is_const_int(its) and int(mine) != int(its)


def binary(name: str, lhs: Any, rhs: Any, function: Binary) -> Any:
    """``function`` of every pair of elements of two operands that broadcast."""
    a = operand(lhs, rhs if isinstance(rhs, Tensor | PrimExpr) else None)
    b = operand(rhs, a)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return function(a, b)
    block = f"T_{name}"
    if not isinstance(b, Tensor):
        return compute_ax(a.shape, lambda *i: function(a(*i), b), block, tag=tag.ELEMWISE)
    if not isinstance(a, Tensor):
        return compute_ax(b.shape, lambda *i: function(a, b(*i)), block, tag=tag.ELEMWISE)
    shape = broadcast_shape(a.shape, b.shape, name)

    def element(*indices: Any) -> Any:
        left = a(*broadcast_indices(a.shape, shape, indices))
        return function(left, b(*broadcast_indices(b.shape, shape, indices)))

    return compute_ax(shape, element, block, tag=tag.BROADCAST)


def add(lhs: Any, rhs: Any) -> Any:
    """lhs + rhs."""
    return binary("add", lhs, rhs, op.add)


def subtract(lhs: Any, rhs: Any) -> Any:
    """lhs - rhs."""
    return binary("subtract", lhs, rhs, op.subtract)


def multiply(lhs: Any, rhs: Any) -> Any:
    """lhs * rhs."""
    return binary("multiply", lhs, rhs, op.multiply)


def divide(lhs: Any, rhs: Any) -> Any:
    """lhs / rhs; integers truncate towards zero."""
    return binary("divide", lhs, rhs, op.div)


def floor_divide(lhs: Any, rhs: Any) -> Any:
    """floor(lhs / rhs)."""
    return binary("floor_divide", lhs, rhs, _floor_divide)


def _floor_divide(a: Any, b: Any) -> PrimExpr:
    x, y = op.match_types(a, b)
    return op.floordiv(x, y) if x.dtype.is_integral else op.floor(op.div(x, y))


def trunc_divide(lhs: Any, rhs: Any) -> Any:
    """lhs / rhs rounded towards zero."""
    return binary("trunc_divide", lhs, rhs, _trunc_divide)


def _trunc_divide(a: Any, b: Any) -> PrimExpr:
    x, y = op.match_types(a, b)
    return op.truncdiv(x, y) if x.dtype.is_integral else op.trunc(op.div(x, y))


def mod(lhs: Any, rhs: Any) -> Any:
    """The remainder with the sign of lhs."""
    return binary("mod", lhs, rhs, _mod)


def _mod(a: Any, b: Any) -> PrimExpr:
    x, y = op.match_types(a, b)
    return op.truncmod(x, y) if x.dtype.is_integral else op.fmod(x, y)


def floor_mod(lhs: Any, rhs: Any) -> Any:
    """The remainder with the sign of rhs; of floats exact, also where the quotient is large."""
    return binary("floor_mod", lhs, rhs, _floor_mod)


def _floor_mod(a: Any, b: Any) -> PrimExpr:
    x, y = op.match_types(a, b)
    if x.dtype.is_integral:
        return op.floormod(x, y)
    rest, zero = op.fmod(x, y), op.const(0, x.dtype)
    apart = op.not_equal(op.less(rest, zero), op.less(y, zero))
    apart = op.logical_and(op.not_equal(rest, zero), apart)
    return op.select(apart, op.add(rest, y), rest)


def maximum(lhs: Any, rhs: Any) -> Any:
    """The larger; NaN if either is."""
    return binary("maximum", lhs, rhs, op.maximum)


def minimum(lhs: Any, rhs: Any) -> Any:
    """The smaller; NaN if either is."""
    return binary("minimum", lhs, rhs, op.minimum)


def power(lhs: Any, rhs: Any) -> Any:
    """Lhs to the power rhs."""
    return binary("power", lhs, rhs, op.power)


def atan2(lhs: Any, rhs: Any) -> Any:
    """The angle of the point (rhs, lhs)."""
    return binary("atan2", lhs, rhs, op.atan2)


def log_add_exp(lhs: Any, rhs: Any) -> Any:
    """log(exp(lhs) + exp(rhs)), without overflow."""
    return binary("log_add_exp", lhs, rhs, _log_add_exp)


def _log_add_exp(a: Any, b: Any) -> PrimExpr:
    x, y = op.match_types(a, b)
    top = op.maximum(x, y)
    shift = op.select(op.isfinite(top), top, op.const(0, top.dtype))  # inf - inf would be NaN
    total = op.add(op.exp(op.subtract(x, shift)), op.exp(op.subtract(y, shift)))
    return op.add(shift, op.log(total))


def left_shift(lhs: Any, rhs: Any) -> Any:
    """Lhs shifted left by rhs bits."""
    return binary("left_shift", lhs, rhs, op.left_shift)


def right_shift(lhs: Any, rhs: Any) -> Any:
    """Lhs shifted right by rhs bits."""
    return binary("right_shift", lhs, rhs, op.right_shift)


def greater(lhs: Any, rhs: Any) -> Any:
    """Whether lhs > rhs (bool)."""
    return binary("greater", lhs, rhs, op.greater)


def less(lhs: Any, rhs: Any) -> Any:
    """Whether lhs < rhs (bool)."""
    return binary("less", lhs, rhs, op.less)


def equal(lhs: Any, rhs: Any) -> Any:
    """Whether lhs equals rhs (bool)."""
    return binary("equal", lhs, rhs, op.equal)


def not_equal(lhs: Any, rhs: Any) -> Any:
    """Whether lhs differs from rhs (bool)."""
    return binary("not_equal", lhs, rhs, op.not_equal)


def greater_equal(lhs: Any, rhs: Any) -> Any:
    """Whether lhs >= rhs (bool)."""
    return binary("greater_equal", lhs, rhs, op.greater_equal)


def less_equal(lhs: Any, rhs: Any) -> Any:
    """Whether lhs <= rhs (bool)."""
    return binary("less_equal", lhs, rhs, op.less_equal)


def logical_and(lhs: Any, rhs: Any) -> Any:
    """Lhs and rhs (bool)."""
    return binary("logical_and", lhs, rhs, op.logical_and)


def logical_or(lhs: Any, rhs: Any) -> Any:
    """Lhs or rhs (bool)."""
    return binary("logical_or", lhs, rhs, op.logical_or)


def logical_xor(lhs: Any, rhs: Any) -> Any:
    """Either lhs or rhs, not both (bool)."""
    return binary("logical_xor", lhs, rhs, _logical_xor)


def _logical_xor(a: Any, b: Any) -> PrimExpr:
    if not (a.dtype.is_bool and b.dtype.is_bool):
        raise IRTypeError(f"logical_xor: expected booleans, got {a.dtype} and {b.dtype}")
    different: PrimExpr = op.not_equal(a, b)
    return different


def bitwise_and(lhs: Any, rhs: Any) -> Any:
    """The bits set in both."""
    return binary("bitwise_and", lhs, rhs, op.bitwise_and)


def bitwise_or(lhs: Any, rhs: Any) -> Any:
    """The bits set in either."""
    return binary("bitwise_or", lhs, rhs, op.bitwise_or)


def bitwise_xor(lhs: Any, rhs: Any) -> Any:
    """The bits set in one only."""
    return binary("bitwise_xor", lhs, rhs, op.bitwise_xor)
