"""Operators of com.microsoft on elements and indices, most of which ONNX took over later.

Their meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md).
"""

from __future__ import annotations

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.indexing import arange, gather_nd, trilu
from weft.relax.frontend.onnx.operators.indexing import unique as unique_of
from weft.relax.frontend.onnx.operators.padding import pad
from weft.relax.frontend.onnx.protos import Attribute
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.value import Value

# Those that are ONNX's, by their later definition


@converter("GatherND", domain=MICROSOFT)
def gather_nd_of_microsoft(context: Context, x: Value, indices: Value) -> Expr:
    """The slices of x at index vectors."""
    return gather_nd(context, x, indices)


@converter("Trilu", domain=MICROSOFT)
def trilu_of_microsoft(
    context: Context, x: Value, k: Value | None = None, *, upper: int = 1
) -> Expr:
    """The upper or lower triangle of matrices, zeros elsewhere."""
    return trilu(context, x, k, upper=upper)


@converter("Pad", domain=MICROSOFT)
def pad_of_microsoft(
    context: Context, x: Value, pads: Value, value: Value | None = None, *, mode: str = "constant"
) -> Expr:
    """With amounts before and after each axis."""
    return pad(context, x, pads, value, mode=mode)


@converter("Range", domain=MICROSOFT)
def range_of_microsoft(
    context: Context, start: Value, limit: Value, delta: Value | None = None
) -> Expr:
    """Numbers from start to limit, in steps of 1 unless told."""
    return arange(context, start, limit, delta or context.constant(1, start.dtype))


@converter("GridSample", domain=MICROSOFT)
def grid_sample(context: Context, x: Value, grid: Value, **attributes: Attribute) -> Value:
    """Samples of an image at places between -1 and 1."""
    return context.apply("GridSample", [x, grid], attributes, 16)


# Microsoft's own


@converter("ExpandDims", domain=MICROSOFT)
def expand_dims(context: Context, x: Value, axis: Value) -> Expr:
    """With one more axis of size 1."""
    (place,) = context.ints(axis, "axis") or [0]
    return context.emit(op.expand_dims(x.expr, [context.axis(x, place, 1)]))


@converter("Unique", domain=MICROSOFT)
def unique(context: Context, x: Value) -> list[Expr]:
    """The distinct values in the order in which they come, which each is, and how often."""
    if context.rank(x, "x") != 1:
        context.fail(f"its input x: expected 1 dimension, got {x.rank}")
    values, _, places, counts = unique_of(context, x, sorted=0)
    return [values, places, counts]


@converter("CDist", domain=MICROSOFT)
def distances(context: Context, a: Value, b: Value, *, metric: str = "sqeuclidean") -> Expr:
    """The distance of each row of a to each row of b."""
    if metric not in ("euclidean", "sqeuclidean"):
        context.fail(f"metric: expected euclidean or sqeuclidean, got {metric!r}")
    emit = context.emit
    rows, columns = emit(op.expand_dims(a.expr, [1])), emit(op.expand_dims(b.expr, [0]))
    apart = emit(op.subtract(rows, columns))
    squares = emit(op.sum(emit(op.multiply(apart, apart)), [2]))
    return squares if metric == "sqeuclidean" else emit(op.sqrt(squares))
