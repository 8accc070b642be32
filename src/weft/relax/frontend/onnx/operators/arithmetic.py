"""Arithmetic that differs from Relax's of the same name: variadic operators, rounding, limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.elementwise import aligned
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.run_axes import around_axis
from weft.relax.frontend.onnx.value import Value
from weft.support.dtype import DataType

VARIADIC: Final[dict[str, Callable[..., Expr]]] = {
    "Max": op.maximum, "Min": op.minimum, "Sum": op.add,
}  # fmt: skip


def _enter_variadic(name: str, function: Callable[..., Expr]) -> None:
    @converter(name, ignores=["consumed_inputs"])
    def convert(context: Context, *values: Value) -> Expr:
        context.refuse_small(*values)
        total = values[0].expr
        for value in values[1:]:
            total = context.emit(function(total, value.expr))
        return total

    convert.__name__ = name.lower()


for _name, _function in VARIADIC.items():
    _enter_variadic(_name, _function)


@converter("Mean", ignores=["consumed_inputs"])
def mean(context: Context, *values: Value) -> Expr:
    """The mean of tensors, element by element."""
    whole = context.apply("Sum", values, {})
    return context.emit(op.divide(whole.expr, context.constant(len(values), whole.dtype).expr))


@converter("Mod", since=10)
def modulo(context: Context, lhs: Value, rhs: Value, *, fmod: int = 0) -> Expr:
    """The remainder: with the divisor's sign, or as C's fmod with the dividend's."""
    if not fmod:
        return context.emit(op.floor_mod(lhs.expr, rhs.expr))
    return context.emit(op.mod(lhs.expr, rhs.expr))


@converter("Pow")
def power_until_6(
    context: Context, lhs: Value, rhs: Value, *, broadcast: int = 0, axis: int | None = None
) -> Expr:
    """Until opset 6 with the attributes ``broadcast`` and ``axis``."""
    return context.emit(op.power(lhs.expr, aligned(context, lhs, rhs, broadcast, axis)))


@converter("Pow", since=7)
def power(context: Context, lhs: Value, rhs: Value) -> Expr:
    """The power, in the type of the base; computed in the wider of both types."""
    kinds = (DataType(lhs.dtype), DataType(rhs.dtype))
    if kinds[0] == kinds[1] and kinds[0].is_float:
        return context.emit(op.power(lhs.expr, rhs.expr))
    if all(kind.is_integral for kind in kinds):
        return _integer_power(context, lhs, rhs)
    wide = "float64" if "float64" in kinds or any(k.is_integral for k in kinds) else "float32"
    parts = [context.emit(op.astype(value.expr, wide)) for value in (lhs, rhs)]
    power = context.emit(op.power(*parts))
    return context.emit(op.astype(power, lhs.dtype))


def _integer_power(context: Context, lhs: Value, rhs: Value) -> Expr:
    """Powers of integers in 64 bits; a negative exponent gives 0, 1 or -1."""
    parts = [context.emit(op.astype(value.expr, "int64")) for value in (lhs, rhs)]
    return context.emit(op.astype(context.emit(op.power(*parts)), lhs.dtype))


@converter("BitShift", since=11)
def bit_shift(context: Context, lhs: Value, rhs: Value, *, direction: str) -> Expr:
    """Shifted to the LEFT or to the RIGHT."""
    shift = {"LEFT": op.left_shift, "RIGHT": op.right_shift}.get(direction)
    if shift is None:
        context.fail(f"direction: expected LEFT or RIGHT, got {direction!r}")
    return context.emit(shift(lhs.expr, rhs.expr))


@converter("Clip", ignores=["consumed_inputs"])
def clip_attributes(
    context: Context, x: Value, *, min: float | None = None, max: float | None = None
) -> Expr:
    """Until opset 10 the limits are attributes."""
    bounds = [None if bound is None else context.constant(bound, x.dtype) for bound in (min, max)]
    return clip(context, x, *bounds)


@converter("Clip", since=11)
def clip(context: Context, x: Value, low: Value | None = None, high: Value | None = None) -> Expr:
    """Between two limits; where they cross, the upper one counts."""
    limited = x.expr
    if low is not None:
        limited = context.emit(op.maximum(limited, low.expr))
    if high is not None:
        limited = context.emit(op.minimum(limited, high.expr))
    return limited


@converter("IsInf", since=10)
def is_infinite(
    context: Context, x: Value, *, detect_negative: int = 1, detect_positive: int = 1
) -> Expr:
    """Where x is infinite, of the signs asked for."""
    infinite = context.emit(op.isinf(x.expr))
    zero = context.constant(0, x.dtype).expr
    if not detect_negative:
        positive = context.emit(op.greater(x.expr, zero))
        infinite = context.emit(op.logical_and(infinite, positive))
    if not detect_positive:
        negative = context.emit(op.less(x.expr, zero))
        infinite = context.emit(op.logical_and(infinite, negative))
    return infinite


@converter("CumSum", since=11)
def cumsum(
    context: Context, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0
) -> Expr:
    """Sums of what stands before along an axis."""
    return _scanned(context, op.cumsum, (x, axis), exclusive, reverse)


@converter("CumProd", since=26)
def cumprod(
    context: Context, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0
) -> Expr:
    """Products of what stands before along an axis."""
    return _scanned(context, op.cumprod, (x, axis), exclusive, reverse)


def _scanned(
    context: Context,
    scan: Callable[..., Expr],
    operands: Sequence[Value],
    exclusive: int,
    reverse: int,
) -> Expr:
    x, axis = operands
    if axis.known is None and x.rank > 0:
        flat = context.value(op.reshape(x.expr, around_axis(context, x, axis)))
        middle = context.constant(1, "int64")
        whole = context.emit(_scanned(context, scan, (flat, middle), exclusive, reverse))
        return context.emit(op.reshape(whole, context.shape(x, "x")))
    place = context.axis(x, int(context.array(axis, "axis").ravel()[0]))
    data = context.emit(op.flip(x.expr, place)) if reverse else x.expr
    running = context.emit(scan(data, place, x.dtype, bool(exclusive)))
    return context.emit(op.flip(running, place)) if reverse else running


@converter("Det", since=11)
def determinant(context: Context, x: Value) -> Expr:
    """The determinants of square matrices, by elimination with pivots of the largest magnitude."""
    shape = context.shape(x, "X")
    size = context.number(shape[-1], x, "X")
    rows = [
        context.emit(op.take(x.expr, _index(context, row), len(shape) - 2)) for row in range(size)
    ]
    product = context.constant(np.ones([1] * 0), x.dtype).expr
    for column in range(size):
        product = _eliminate(context, rows, column, product)
    return product


def _index(context: Context, row: int) -> Expr:
    return context.constant(row, "int64").expr


def _eliminate(context: Context, rows: list[Expr], column: int, product: Expr) -> Expr:
    """One step: the largest pivot goes to its place, its multiples off the rows below.

    Returns the product of the pivots so far, which ends as the determinant.
    """
    emit = context.emit

    def entry(row: Expr) -> Expr:
        return emit(op.take(row, context.constant([column], "int64").expr, -1))

    for other in range(column + 1, len(rows)):
        larger = emit(
            op.greater(emit(op.abs(entry(rows[other]))), emit(op.abs(entry(rows[column]))))
        )
        upper = emit(op.where(larger, rows[other], rows[column]))
        lower = emit(op.where(larger, emit(op.negative(rows[column])), rows[other]))
        rows[column], rows[other] = upper, lower
    pivot = entry(rows[column])
    zero = context.constant(0, str(pivot.struct_info.dtype)).expr
    unit = context.constant(1, str(pivot.struct_info.dtype)).expr
    divisor = emit(op.where(emit(op.equal(pivot, zero)), unit, pivot))
    for other in range(column + 1, len(rows)):
        factor = emit(op.divide(entry(rows[other]), divisor))
        rows[other] = emit(op.subtract(rows[other], emit(op.multiply(factor, rows[column]))))
    return emit(op.multiply(product, emit(op.squeeze(pivot, [-1]))))
