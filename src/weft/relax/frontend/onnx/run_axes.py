"""Axes that only the run tells: of a tensor whose rank is known, as a reshape of known rank.

The extents of the result are computed as a vector, whose elements are new symbols.
"""

from __future__ import annotations

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.value import Dim, Value


def shape_with_axes(context: Context, x: Value, axes: Value) -> list[Dim]:
    """The shape of a tensor with more axes of one element, at places that the run tells."""
    emit, rank = context.emit, context.rank(x, "data")
    whole = rank + context.extent(axes, 0, "axes")
    if rank == 0:
        return [1] * whole
    places = emit(op.expand_dims(_from_front(context, axes, whole), 0))
    numbers = emit(op.expand_dims(emit(op.arange(0, whole, 1, "int64")), 1))
    is_old = emit(op.min(context.as_type(emit(op.not_equal(numbers, places)), "int64"), [1]))
    before = emit(op.subtract(emit(op.cumsum(is_old, 0, "int64")), context.dim_expr(1)))
    extents = context.shape_value(context.shape(x, "data")).expr
    kept = emit(op.take(extents, emit(op.maximum(before, context.dim_expr(0))), 0))
    is_kept = context.as_type(is_old, "bool")
    sizes = emit(op.where(is_kept, kept, context.dim_expr(1)))
    return context.sizes(context.value(sizes), "axes")


def around_axis(context: Context, x: Value, axis: Value) -> list[Dim]:
    """The elements before an axis that the run tells, its extent, and the elements behind it."""
    emit, rank = context.emit, context.rank(x, "x")
    place = emit(op.reshape(_from_front(context, axis, rank), [1]))
    numbers = emit(op.arange(0, rank, 1, "int64"))
    extents = context.shape_value(context.shape(x, "x")).expr
    before, behind = (
        emit(op.prod(emit(op.where(chosen, extents, context.dim_expr(1))), [0], True))
        for chosen in (emit(op.less(numbers, place)), emit(op.greater(numbers, place)))
    )
    parts = [before, emit(op.take(extents, place, 0)), behind]
    return context.sizes(context.value(op.concat(parts, 0)), "axis")


def _from_front(context: Context, axes: Value, rank: int) -> Expr:
    """Axes as int64 that count from the front."""
    numbers = context.as_type(axes.expr, "int64")
    is_behind = context.emit(op.less(numbers, context.dim_expr(0)))
    moved = context.emit(op.add(numbers, context.dim_expr(rank)))
    return context.emit(op.where(is_behind, moved, numbers))
