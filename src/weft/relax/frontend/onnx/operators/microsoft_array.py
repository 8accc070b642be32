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
from weft.relax.frontend.onnx.value import Value, as_prim
from weft.relax.ir.shape_arith import simplified
from weft.tir import op as tir

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


@converter("Inverse", domain=MICROSOFT)
def inverse(context: Context, x: Value) -> Expr:
    """The inverses of square matrices."""
    return context.emit(op.linalg.inv(x.expr))


@converter("UnfoldTensor", domain=MICROSOFT)
def unfold(context: Context, x: Value, *, size: int, dim: int = -1, step: int = 1) -> Expr:
    """Windows along an axis, whose elements are a new last axis."""
    place, emit = context.axis(x, dim), context.emit
    extent = as_prim(context.shape(x, "input")[place])
    count = simplified(tir.floordiv(extent - size, step) + 1)
    starts = emit(op.arange(0, simplified(count * step), step, "int64"))
    steps = emit(op.arange(0, size, 1, "int64"))
    places = emit(op.add(emit(op.expand_dims(starts, 1)), emit(op.expand_dims(steps, 0))))
    windows = emit(op.take(x.expr, places, place))
    order = [axis for axis in range(x.rank + 1) if axis != place + 1]
    return emit(op.permute_dims(windows, [*order, place + 1]))


@converter("MatMulInteger16", domain=MICROSOFT)
def matmul_integer_16(context: Context, a: Value, b: Value) -> Expr:
    """The product of integers of 16 bits, in 32."""
    kind = "uint32" if a.dtype == b.dtype == "uint16" else "int32"
    wide = [context.as_type(item.expr, kind) for item in (a, b)]
    return context.emit(op.matmul(*wide))
