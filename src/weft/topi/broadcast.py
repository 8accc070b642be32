"""Binary operators with numpy's broadcasting, comparisons and logic.

Operands are tensors, expressions or Python numbers; a number takes the other operand's dtype (an
int tensor and a float give float32). Two scalars give an expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast, overload

from weft.ir.expr import ExprLike, Extent, IntImm, PrimExpr
from weft.support.errors import IRTypeError, IRValueError
from weft.te.tensor import Operand, Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Extents,
    as_sequence,
    broadcast_indices,
    broadcast_shape,
    compute_ax,
    operand,
    shape_text,
)
from weft.topi.integers import integer_power

Binary = Callable[[PrimExpr, PrimExpr], PrimExpr]


class TensorOperator(Protocol):
    """An operator that gives a tensor where an operand is one, and of two scalars a scalar."""

    @overload
    def __call__(self, lhs: Tensor, rhs: Operand) -> Tensor: ...
    @overload
    def __call__(self, lhs: Operand, rhs: Tensor) -> Tensor: ...
    @overload
    def __call__(self, lhs: ExprLike, rhs: ExprLike) -> PrimExpr: ...


def by_operands(function: Callable[[Operand, Operand], Tensor | PrimExpr]) -> TensorOperator:
    """The function itself, typed by its operands: it ends in :func:`binary`."""
    return cast("TensorOperator", function)


def broadcast_to(data: Tensor, shape: Extents) -> Tensor:
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


def _differ(mine: Extent, its: Extent) -> bool:
    return isinstance(mine, IntImm) and isinstance(its, IntImm) and int(mine) != int(its)


def binary(name: str, lhs: Operand, rhs: Operand, function: Binary) -> Tensor | PrimExpr:
    """``function`` of every pair of elements of two operands that broadcast."""
    a = operand(lhs, rhs if isinstance(rhs, Tensor | PrimExpr) else None)
    b = operand(rhs, a)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return function(a, b)
    block = f"T_{name}"
    if not isinstance(b, Tensor):
        assert isinstance(a, Tensor)  # one of them is
        return compute_ax(a.shape, lambda *i: function(a(*i), b), block, tag=tag.ELEMWISE)
    if not isinstance(a, Tensor):
        return compute_ax(b.shape, lambda *i: function(a, b(*i)), block, tag=tag.ELEMWISE)
    shape = broadcast_shape(a.shape, b.shape, name)

    def element(*indices: PrimExpr) -> PrimExpr:
        left = a(*broadcast_indices(a.shape, shape, indices))
        return function(left, b(*broadcast_indices(b.shape, shape, indices)))

    return compute_ax(shape, element, block, tag=tag.BROADCAST)


@by_operands
def add(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """lhs + rhs."""
    return binary("add", lhs, rhs, op.add)


@by_operands
def subtract(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """lhs - rhs."""
    return binary("subtract", lhs, rhs, op.subtract)


@by_operands
def multiply(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """lhs * rhs."""
    return binary("multiply", lhs, rhs, op.multiply)


@by_operands
def divide(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """lhs / rhs; integers truncate towards zero."""
    return binary("divide", lhs, rhs, op.div)


@by_operands
def floor_divide(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """floor(lhs / rhs)."""
    return binary("floor_divide", lhs, rhs, _floor_divide)


def _floor_divide(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    return op.floordiv(x, y) if x.dtype.is_integral else op.floor(op.div(x, y))


@by_operands
def trunc_divide(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """lhs / rhs rounded towards zero."""
    return binary("trunc_divide", lhs, rhs, _trunc_divide)


def _trunc_divide(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    return op.truncdiv(x, y) if x.dtype.is_integral else op.trunc(op.div(x, y))


@by_operands
def mod(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """The remainder with the sign of lhs."""
    return binary("mod", lhs, rhs, _mod)


def _mod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    return op.truncmod(x, y) if x.dtype.is_integral else op.fmod(x, y)


@by_operands
def floor_mod(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """The remainder with the sign of rhs; of floats exact, also where the quotient is large."""
    return binary("floor_mod", lhs, rhs, _floor_mod)


def _floor_mod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    if x.dtype.is_integral:
        return op.floormod(x, y)
    rest, zero = op.fmod(x, y), op.const(0, x.dtype)
    apart = op.not_equal(op.less(rest, zero), op.less(y, zero))
    apart = op.logical_and(op.not_equal(rest, zero), apart)
    return op.select(apart, op.add(rest, y), rest)


@by_operands
def maximum(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """The larger; NaN if either is."""
    return binary("maximum", lhs, rhs, op.maximum)


@by_operands
def minimum(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """The smaller; NaN if either is."""
    return binary("minimum", lhs, rhs, op.minimum)


@by_operands
def power(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Lhs to the power rhs; of integers modulo their type."""
    if any(isinstance(item, Tensor) and item.dtype.is_integral for item in (lhs, rhs)):
        return integer_power(lhs, rhs)
    return binary("power", lhs, rhs, op.power)


@by_operands
def atan2(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """The angle of the point (rhs, lhs)."""
    return binary("atan2", lhs, rhs, op.atan2)


@by_operands
def log_add_exp(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """log(exp(lhs) + exp(rhs)), without overflow."""
    return binary("log_add_exp", lhs, rhs, _log_add_exp)


def _log_add_exp(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    top = op.maximum(x, y)
    shift = op.select(op.isfinite(top), top, op.const(0, top.dtype))  # inf - inf would be NaN
    total = op.add(op.exp(op.subtract(x, shift)), op.exp(op.subtract(y, shift)))
    return op.add(shift, op.log(total))


@by_operands
def left_shift(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Lhs shifted left by rhs bits."""
    return binary("left_shift", lhs, rhs, op.left_shift)


@by_operands
def right_shift(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Lhs shifted right by rhs bits."""
    return binary("right_shift", lhs, rhs, op.right_shift)


@by_operands
def greater(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Whether lhs > rhs (bool)."""
    return binary("greater", lhs, rhs, op.greater)


@by_operands
def less(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Whether lhs < rhs (bool)."""
    return binary("less", lhs, rhs, op.less)


@by_operands
def equal(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Whether lhs equals rhs (bool)."""
    return binary("equal", lhs, rhs, op.equal)


@by_operands
def not_equal(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Whether lhs differs from rhs (bool)."""
    return binary("not_equal", lhs, rhs, op.not_equal)


@by_operands
def greater_equal(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Whether lhs >= rhs (bool)."""
    return binary("greater_equal", lhs, rhs, op.greater_equal)


@by_operands
def less_equal(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Whether lhs <= rhs (bool)."""
    return binary("less_equal", lhs, rhs, op.less_equal)


@by_operands
def logical_and(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Lhs and rhs (bool)."""
    return binary("logical_and", lhs, rhs, op.logical_and)


@by_operands
def logical_or(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Lhs or rhs (bool)."""
    return binary("logical_or", lhs, rhs, op.logical_or)


@by_operands
def logical_xor(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Either lhs or rhs, not both (bool)."""
    return binary("logical_xor", lhs, rhs, _logical_xor)


def _logical_xor(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if not (a.dtype.is_bool and b.dtype.is_bool):
        raise IRTypeError(f"logical_xor: expected booleans, got {a.dtype} and {b.dtype}")
    return op.not_equal(a, b)


@by_operands
def bitwise_and(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """The bits set in both."""
    return binary("bitwise_and", lhs, rhs, op.bitwise_and)


@by_operands
def bitwise_or(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """The bits set in either."""
    return binary("bitwise_or", lhs, rhs, op.bitwise_or)


@by_operands
def bitwise_xor(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """The bits set in one only."""
    return binary("bitwise_xor", lhs, rhs, op.bitwise_xor)
