"""Tensors made from numbers: filled, counted, triangular, one-hot."""

from __future__ import annotations

import math

from weft.ir.expr import ExprLike, Extent, FloatImm, IntImm, PrimExpr, as_prim_expr
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.te.operation import as_list, compute
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Extents,
    as_sequence,
    compute_ax,
    may_be_equal,
    normalize_axis,
    shape_text,
)
from weft.topi.simplify import simplified

Fill = Tensor | PrimExpr | float
"""The value of all elements: a number, an expression or a tensor without axes."""


def full(shape: Extents, dtype: str, fill_value: Fill) -> Tensor:
    """``shape`` filled with a number, an expression or a 0-d tensor."""
    value = _fill_value(fill_value, dtype)
    return compute_ax(as_sequence(shape), lambda *_: value, "T_full", tag=tag.ELEMWISE)


def full_like(x: Tensor, fill_value: Fill) -> Tensor:
    """A tensor of x's shape and dtype filled with a number."""
    value = _fill_value(fill_value, x.dtype)
    return compute_ax(x.shape, lambda *_: value, "T_full_like", tag=tag.ELEMWISE)


def _fill_value(value: Fill, dtype: str) -> PrimExpr:
    if isinstance(value, Tensor):
        if value.ndim:
            raise IRTypeError(f"full: expected a 0-d fill value, got {value.ndim} dimensions")
        return op.cast(dtype, value())
    return op.cast(dtype, value) if isinstance(value, PrimExpr) else op.const(value, dtype)


def zeros(shape: Extents, dtype: str = "float32") -> Tensor:
    """Zeros."""
    return full(shape, dtype, 0)


def ones(shape: Extents, dtype: str = "float32") -> Tensor:
    """Ones."""
    return full(shape, dtype, 1)


def zeros_like(x: Tensor) -> Tensor:
    """Zeros of x's shape and dtype."""
    return full_like(x, 0)


def ones_like(x: Tensor) -> Tensor:
    """Ones of x's shape and dtype."""
    return full_like(x, 1)


def arange(
    start: ExprLike, stop: ExprLike | None = None, step: ExprLike = 1, dtype: str = "float32"
) -> Tensor:
    """``start, start + step, ...`` up to, without, ``stop``; one argument is the stop."""
    if stop is None:
        start, stop = 0, start
    begin, end, width = as_prim_expr(start), as_prim_expr(stop), as_prim_expr(step)
    count = _arange_count(begin, end, width)

    def element(*indices: PrimExpr) -> PrimExpr:
        return op.cast(dtype, op.add(begin, op.multiply(width, indices[0])))

    return compute_ax([count], element, "T_arange", tag=tag.INJECTIVE)


def linspace(start: ExprLike, end: ExprLike, steps: ExprLike, dtype: str = "float32") -> Tensor:
    """``steps`` numbers from start to end, counted in float64 from the nearer of them."""
    count = as_prim_expr(steps).astype("int64")
    low, high = [op.cast("float64", as_prim_expr(bound)) for bound in (start, end)]
    intervals = op.maximum(count - 1, op.const(1, "int64"))
    width = (high - low) / op.cast("float64", intervals)

    def element(*indices: PrimExpr) -> PrimExpr:
        place = op.cast("int64", indices[0])
        upward = low + width * op.cast("float64", place)
        downward = high - width * op.cast("float64", count - 1 - place)
        return op.cast(dtype, op.select(op.less(place * 2, count), upward, downward))

    return compute_ax([simplified(count)], element, "T_linspace", tag=tag.INJECTIVE)


def _arange_count(begin: PrimExpr, end: PrimExpr, width: PrimExpr) -> Extent:
    if isinstance(width, IntImm | FloatImm) and width.value == 0:
        raise IRValueError("arange: the step must not be 0")
    numbers = [item.value for item in (begin, end, width) if isinstance(item, IntImm | FloatImm)]
    if len(numbers) == 3:
        return max(math.ceil((numbers[1] - numbers[0]) / numbers[2]), 0)
    if not isinstance(width, IntImm):
        raise IRTypeError("arange: a symbolic step is not supported")
    span = op.subtract(end, begin) if width.value > 0 else op.subtract(begin, end)
    length = op.ceildiv(span, abs(width.value))
    return simplified(op.maximum(length, op.const(0, length.dtype)))


def hamming_window(
    window_size: Extent, periodic: ExprLike, alpha: ExprLike, beta: ExprLike, dtype: str
) -> Tensor:
    """alpha - beta * cos(2 pi i / n), n = window_size if periodic, else one less.

    The one element of a window of size 1 is 1. Computed in float32 at least (design.md 3.14).
    """
    kind = DataType(dtype)
    wide = kind if kind.bits > 32 else DataType("float32")
    size = as_prim_expr(window_size)
    last = size if op.is_const_int(periodic, 1) else op.maximum(size - 1, op.const(1, size.dtype))
    if not isinstance(as_prim_expr(periodic), IntImm):
        last = op.if_then_else(periodic, size, last)
    if op.is_const_int(size, 1):
        return full([size], dtype, 1)

    def element(i: PrimExpr) -> PrimExpr:
        angle = op.cast(wide, i) * op.const(2 * math.pi, wide) / op.cast(wide, last)
        value = op.cast(wide, alpha) - op.cast(wide, beta) * op.cos(angle)
        if not isinstance(size, IntImm):
            value = op.if_then_else(op.equal(size, 1), op.const(1, wide), value)
        return op.cast(kind, value)

    return compute([size], element, "T_hamming_window", tag.ELEMWISE)


def trilu(data: Tensor, k: Tensor | Extent, upper: bool) -> Tensor:
    """The upper (or lower) triangle of the last two axes from diagonal ``k``; the rest is 0."""
    if data.ndim < 2:
        raise IRValueError(f"trilu: expected at least 2 dimensions, got {data.ndim}")
    diagonal = k() if isinstance(k, Tensor) else k

    def element(*indices: PrimExpr) -> PrimExpr:
        row, column = indices[-2], indices[-1]
        if upper:
            inside = op.greater_equal(op.subtract(column, diagonal), row)
        else:
            inside = op.less_equal(op.subtract(column, diagonal), row)
        return op.select(inside, data(*indices), op.const(0, data.dtype))

    return compute(data.shape, element, name="trilu", tag=tag.ELEMWISE)


def tril(data: Tensor, k: Tensor | Extent = 0) -> Tensor:
    """The lower triangle."""
    return trilu(data, k, False)


def triu(data: Tensor, k: Tensor | Extent = 0) -> Tensor:
    """The upper triangle."""
    return trilu(data, k, True)


def eye(n: Extent, m: Extent | None = None, k: Extent = 0, dtype: str = "float32") -> Tensor:
    """Ones on diagonal ``k`` of an (n, m) matrix of zeros."""

    def element(*indices: PrimExpr) -> PrimExpr:
        here = op.equal(op.subtract(indices[1], indices[0]), k)
        return op.select(here, op.const(1, dtype), op.const(0, dtype))

    return compute_ax([n, n if m is None else m], element, "T_eye", tag=tag.ELEMWISE)


def one_hot(
    indices: Tensor,
    on_value: Fill,
    off_value: Fill,
    depth: Extent,
    axis: int = -1,
    dtype: str = "float32",
) -> Tensor:
    """``on_value`` where the new ``axis`` (of extent ``depth``) equals the index."""
    place = normalize_axis(axis, indices.ndim + 1, "one_hot")
    kind = DataType(dtype)
    on, off = _fill_value(on_value, kind), _fill_value(off_value, kind)
    counted = isinstance(depth, int) and indices.ndim > 0
    extent = op.const(depth, indices.shape[0].dtype) if counted else depth
    shape = [*indices.shape[:place], extent, *indices.shape[place:]]

    def element(*point: PrimExpr) -> PrimExpr:
        index = indices(*point[:place], *point[place + 1 :])
        return op.select(op.equal(index, op.cast(index.dtype, point[place])), on, off)

    return compute_ax(shape, element, "T_one_hot", tag=tag.INJECTIVE)


def elemwise_sum(xs: Tensor | list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    """The sum of tensors of one shape."""
    tensors = as_list(xs)
    if not tensors:
        raise IRValueError("elemwise_sum: expected at least one tensor, got none")
    for tensor in tensors[1:]:
        pairs = zip(tensors[0].shape, tensor.shape, strict=False)
        if tensor.ndim != tensors[0].ndim or not all(may_be_equal(a, b) for a, b in pairs):
            raise IRValueError(
                "elemwise_sum: expected tensors of one shape, got "
                f"{shape_text(tensors[0].shape)} and {shape_text(tensor.shape)}"
            )

    def element(*indices: PrimExpr) -> PrimExpr:
        return op.add_n(*[tensor(*indices) for tensor in tensors])

    return compute_ax(tensors[0].shape, element, "T_elemwise_sum", tag=tag.ELEMWISE)
