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
    """An operator whose result is a tensor if an operand is one, and else a scalar."""

    @overload
    def __call__(self, lhs: Tensor, rhs: Operand) -> Tensor: ...
    @overload
    def __call__(self, lhs: Operand, rhs: Tensor) -> Tensor: ...
    @overload
    def __call__(self, lhs: ExprLike, rhs: ExprLike) -> PrimExpr: ...


def by_operands(function: Callable[[Operand, Operand], Tensor | PrimExpr]) -> TensorOperator:
    """The same function with a type that distinguishes tensors from scalars, as ``binary`` does."""
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
        target,
        lambda *i: data(*broadcast_indices(data.shape, target, i)),
        "T_broadcast_to",
        tag=tag.BROADCAST,
    )


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
        assert isinstance(a, Tensor)  # one of the two is
        return compute_ax(a.shape, lambda *i: function(a(*i), b), block, tag=tag.ELEMWISE)
    if not isinstance(a, Tensor):
        return compute_ax(b.shape, lambda *i: function(a, b(*i)), block, tag=tag.ELEMWISE)
    shape = broadcast_shape(a.shape, b.shape, name)

    def element(*indices: PrimExpr) -> PrimExpr:
        left = a(*broadcast_indices(a.shape, shape, indices))
        return function(left, b(*broadcast_indices(b.shape, shape, indices)))

    return compute_ax(shape, element, block, tag=tag.BROADCAST)


def _floor_divide(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    return op.floordiv(x, y) if x.dtype.is_integral else op.floor(op.div(x, y))


def _trunc_divide(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    return op.truncdiv(x, y) if x.dtype.is_integral else op.trunc(op.div(x, y))


def _mod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    return op.truncmod(x, y) if x.dtype.is_integral else op.fmod(x, y)


def _floor_mod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    if x.dtype.is_integral:
        return op.floormod(x, y)
    rest, zero = op.fmod(x, y), op.const(0, x.dtype)
    apart = op.not_equal(op.less(rest, zero), op.less(y, zero))
    apart = op.logical_and(op.not_equal(rest, zero), apart)
    return op.select(apart, op.add(rest, y), rest)


@by_operands
def power(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
    """Lhs to the power rhs; integers wrap."""
    if any(isinstance(item, Tensor) and item.dtype.is_integral for item in (lhs, rhs)):
        return integer_power(lhs, rhs)
    return binary("power", lhs, rhs, op.power)


def _log_add_exp(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = op.match_types(a, b)
    top = op.maximum(x, y)
    shift = op.select(op.isfinite(top), top, op.const(0, top.dtype))  # inf - inf would be NaN
    total = op.add(op.exp(op.subtract(x, shift)), op.exp(op.subtract(y, shift)))
    return op.add(shift, op.log(total))


def _logical_xor(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if not (a.dtype.is_bool and b.dtype.is_bool):
        raise IRTypeError(f"logical_xor: expected booleans, got {a.dtype} and {b.dtype}")
    return op.not_equal(a, b)


def _row(name: str, function: Binary, text: str) -> TensorOperator:
    """An operator that applies ``function`` to every pair of elements of ``lhs`` and ``rhs``."""

    def row(lhs: Operand, rhs: Operand) -> Tensor | PrimExpr:
        return binary(name, lhs, rhs, function)

    row.__name__ = row.__qualname__ = name
    row.__doc__ = text
    return by_operands(row)


add = _row("add", op.add, "lhs + rhs.")
subtract = _row("subtract", op.subtract, "lhs - rhs.")
multiply = _row("multiply", op.multiply, "lhs * rhs.")
divide = _row("divide", op.div, "lhs / rhs; integers truncate towards zero.")
floor_divide = _row("floor_divide", _floor_divide, "floor(lhs / rhs).")
trunc_divide = _row("trunc_divide", _trunc_divide, "lhs / rhs rounded towards zero.")
mod = _row("mod", _mod, "The remainder with the sign of lhs.")
floor_mod = _row("floor_mod", _floor_mod, "The remainder with the sign of rhs; exact for floats.")
maximum = _row("maximum", op.maximum, "The larger; NaN if either is.")
minimum = _row("minimum", op.minimum, "The smaller; NaN if either is.")
atan2 = _row("atan2", op.atan2, "The angle of the point (rhs, lhs).")
log_add_exp = _row("log_add_exp", _log_add_exp, "log(exp(lhs) + exp(rhs)), without overflow.")
left_shift = _row("left_shift", op.left_shift, "Lhs shifted left by rhs bits.")
right_shift = _row("right_shift", op.right_shift, "Lhs shifted right by rhs bits.")
greater = _row("greater", op.greater, "Whether lhs > rhs (bool).")
less = _row("less", op.less, "Whether lhs < rhs (bool).")
equal = _row("equal", op.equal, "Whether lhs equals rhs (bool).")
not_equal = _row("not_equal", op.not_equal, "Whether lhs differs from rhs (bool).")
greater_equal = _row("greater_equal", op.greater_equal, "Whether lhs >= rhs (bool).")
less_equal = _row("less_equal", op.less_equal, "Whether lhs <= rhs (bool).")
logical_and = _row("logical_and", op.logical_and, "Lhs and rhs (bool).")
logical_or = _row("logical_or", op.logical_or, "Lhs or rhs (bool).")
logical_xor = _row("logical_xor", _logical_xor, "Whether exactly one of both is true (bool).")
bitwise_and = _row("bitwise_and", op.bitwise_and, "The bits set in both.")
bitwise_or = _row("bitwise_or", op.bitwise_or, "The bits set in either.")
bitwise_xor = _row("bitwise_xor", op.bitwise_xor, "The bits set in exactly one of them.")
