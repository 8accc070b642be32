"""Tensors with other values at places that indices and masks choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import Extent, IntImm
from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.gathering import (
    Indices,
    as_integers,
    back_in_place,
    in_front,
    indexed_axes,
    is_mask,
    joint_rank,
)
from weft.relax.frontend.torch.operators.indexing import END
from weft.relax.frontend.torch.operators.views import axis_of
from weft.relax.frontend.torch.registry import converter
from weft.relax.frontend.torch.values import Operand
from weft.support.dtype import DataType
from weft.tir.op import max_value, min_value

REDUCTIONS: Final = {
    "add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max", "amin": "min",
}  # fmt: skip
"""torch's reductions by relax's names."""


# Along one dimension, an index for each element


def along(
    context: Context, tensor: Expr, dim: int, where: tuple[Expr, Expr], reduction: str
) -> Expr:
    """``written`` in torch's way; ``where`` is (index, values), the values cut."""
    index, values = where
    dtype = context.dtype_of(tensor)
    if reduction in ("add", "mul") and sum_type(dtype) != dtype:
        wide, values = (context.cast(item, sum_type(dtype)) for item in (tensor, values))
        total = context.emit(along(context, wide, dim, (index, values), reduction))
        return context.cast(total, dtype)
    rank = context.rank(tensor)
    if rank == 0:
        parts = [context.emit(op.reshape(item, [1])) for item in (tensor, index, values)]
        return op.reshape(along(context, parts[0], 0, (parts[1], parts[2]), reduction), [])
    if context.rank(index) == 0:
        index = context.emit(op.reshape(index, [1]))
    if context.rank(values) == 0:
        values = context.emit(op.reshape(values, [1]))
    shape = context.dims(index)
    if context.static(shape) and 0 in shape:
        return tensor
    axes = [
        i
        for i, pair in enumerate(zip(context.dims(values), shape, strict=True))
        if not _equal(*pair)
    ]
    if axes:
        ends = [shape[axis] for axis in axes]
        values = op.strided_slice(values, axes, [0] * len(axes), ends)
    return context.emit(written(tensor, index, values, axis_of(dim, rank), reduction))


def written(start: Expr, places: Expr, values: Expr, axis: int, reduction: str) -> Expr:
    """``start`` with values written (or added, ...) at places along an axis."""
    return op.scatter_elements(start, places, values, axis=axis, reduction=reduction)


def _equal(mine: Extent, its: Extent) -> bool:
    return mine == its if isinstance(mine, int) and isinstance(its, int) else mine is its


def sum_type(dtype: str) -> str:
    """The type in which torch adds many values: float32 for 16-bit floats.

    A sum of ones would stop at 256 in bfloat16.
    """
    kind = DataType(dtype)
    return "float32" if kind.is_float and kind.bits < 32 else dtype


def spread(context: Context, value: Operand, index: Expr, dtype: str | None = None) -> Expr:
    """A number for each place of an index."""
    dtype = dtype or context.dtype
    return context.emit(op.full(context.dims(index), context.operand(value, dtype), dtype))


@converter("aten.scatter.src", "aten.scatter_add.default")
def scatter(context: Context, self: Expr, dim: int, index: Expr, src: Expr) -> Expr:
    """Values written, or added, at indices along a dimension."""
    reduction = "add" if "scatter_add" in str(context.node.target) else "update"
    return along(context, self, dim, (index, src), reduction)


@converter("aten.scatter.value")
def scatter_value(context: Context, self: Expr, dim: int, index: Expr, value: Operand) -> Expr:
    """One number written at indices along a dimension."""
    return along(context, self, dim, (index, spread(context, value, index)), "update")


@converter("aten.scatter.reduce")
def scatter_with(
    context: Context, self: Expr, dim: int, index: Expr, src: Expr, *, reduce: str
) -> Expr:
    """Values combined with what stands at indices: add or multiply."""
    return along(context, self, dim, (index, src), REDUCTIONS[reduce])


@converter("aten.scatter.value_reduce")
def scatter_value_with(
    context: Context, self: Expr, dim: int, index: Expr, value: Operand, *, reduce: str
) -> Expr:
    """A number combined with what stands at indices: add or multiply."""
    values = spread(context, value, index)
    return along(context, self, dim, (index, values), REDUCTIONS[reduce])


@converter("aten.scatter_reduce.two")
def scatter_reduce(
    context: Context,
    self: Expr,
    dim: int,
    index: Expr,
    src: Expr,
    reduce: str,
    *,
    include_self: bool = True,
) -> Expr:
    """Values combined at indices: sum, prod, mean, amax, amin; with what stood there or not."""
    kind = sum_type(context.dtype) if reduce == "mean" else context.dtype
    start, src = context.cast(self, kind), context.cast(src, kind)
    if not include_self:
        neutral = spread(context, _neutral(reduce, kind), index, kind)
        start = along(context, start, dim, (index, neutral), "update")
    if reduce != "mean":
        return along(context, start, dim, (index, src), REDUCTIONS[reduce])
    total = along(context, start, dim, (index, src), "add")
    ones = context.emit(op.ones(context.dims(self), kind))
    if not include_self:
        ones = along(context, ones, dim, (index, spread(context, 0, index, kind)), "update")
    count = along(context, ones, dim, (index, spread(context, 1, index, kind)), "add")
    divide = op.divide if DataType(kind).is_float else op.floor_divide
    return context.cast(context.emit(divide(total, count)), context.dtype)


def _neutral(reduce: str, dtype: str) -> float:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if DataType(dtype).is_float:
        return float("-inf") if reduce == "amax" else float("inf")
    limit = (min_value if reduce == "amax" else max_value)(dtype)
    return expect(limit, IntImm).value


# Along one dimension, an index for each slice


def slices(
    context: Context, tensor: Expr, dim: int, where: tuple[Expr, Expr], accumulate: bool
) -> Expr:
    """Slices written (or added) at a vector of indices along a dimension."""
    index, values = where
    dtype = context.dtype_of(tensor)
    if accumulate and sum_type(dtype) != dtype:
        wide, values = (context.cast(item, sum_type(dtype)) for item in (tensor, values))
        total = context.emit(slices(context, wide, dim, (index, values), accumulate))
        return context.cast(total, dtype)
    rank = context.rank(tensor)
    flat_index = op.reshape(index, [1]) if context.rank(index) == 0 else index
    if rank == 0:
        spot = op.index_put(
            op.reshape(tensor, [1]),
            [context.emit(flat_index)],
            op.reshape(values, [-1]),
            accumulate,
        )
        return op.reshape(spot, [])
    axis = axis_of(dim, rank)
    if context.rank(values) == rank:
        values = in_front(context, values, [axis])
    data = in_front(context, tensor, [axis])
    whole = context.emit(op.index_put(data, [context.emit(flat_index)], values, accumulate))
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
    return whole if axis == 0 else op.permute_dims(whole, order)


@converter("aten.index_add.default")
def index_add(
    context: Context, self: Expr, dim: int, index: Expr, source: Expr, *, alpha: Operand = 1
) -> Expr:
    """Slices added at indices along a dimension, times a number."""
    if alpha != 1:
        source = context.emit(op.multiply(source, context.operand(alpha, context.dtype)))
    return slices(context, self, dim, (index, source), accumulate=True)


@converter("aten.index_copy.default")
def index_copy(context: Context, self: Expr, dim: int, index: Expr, source: Expr) -> Expr:
    """Slices written at indices along a dimension."""
    return slices(context, self, dim, (index, source), accumulate=False)


@converter("aten.index_reduce.default")
def index_reduce(
    context: Context,
    self: Expr,
    dim: int,
    index: Expr,
    source: Expr,
    reduce: str,
    *,
    include_self: bool = True,
) -> Expr:
    """Slices combined at indices along a dimension: prod, mean, amax, amin."""
    rank = context.rank(self)
    if rank == 0:
        place, value = op.reshape(index, []), op.reshape(source, [])
        return scatter_reduce(context, self, 0, place, value, reduce, include_self=include_self)
    shape = [1] * rank
    shape[axis_of(dim, rank)] = -1
    spread_index = op.broadcast_to(op.reshape(index, shape), context.dims(source))
    where = context.emit(spread_index)
    return scatter_reduce(context, self, dim, where, source, reduce, include_self=include_self)


@converter("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(context: Context, self: Expr, dim: int, index: Expr, value: Operand) -> Expr:
    """One number written into the slices that indices choose along a dimension."""
    number = context.emit(op.reshape(context.operand(value, context.dtype), [1]))
    return slices(context, self, dim, (index, number), accumulate=False)


# By index tensors for several dimensions, and by masks


@converter("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    context: Context, self: Expr, indices: Indices, values: Expr, accumulate: bool = False
) -> Expr:
    """``self[I0, :, I1, ...] = values`` or ``+= values``, as a new tensor."""
    values = context.cast(values, context.dtype)
    mask = _filling_mask(context, self, indices, values)
    if mask is not None:
        return _where_mask(context, self, mask, values, accumulate)
    integers = as_integers(context, indices)
    axes = indexed_axes(integers)
    if not axes:
        return op.add(self, values) if accumulate else op.broadcast_to(values, context.shape)
    chosen = [context.emit(item) for item in integers if item is not None]
    joint, rank = joint_rank(context, chosen), context.rank(self)
    order = back_in_place(axes, joint, joint + rank - len(axes))
    if order is not None:
        values = _moved_in_front(context, values, order)
    data = in_front(context, self, axes)
    whole = context.emit(op.index_put(data, chosen, values, accumulate))
    front = [*axes, *(axis for axis in range(rank) if axis not in axes)]
    back = [front.index(axis) for axis in range(rank)]
    return whole if back == list(range(rank)) else op.permute_dims(whole, back)


def _moved_in_front(context: Context, values: Expr, order: Sequence[int]) -> Expr:
    """Values, laid out as torch has them, with the dimensions of the indices first."""
    missing = len(order) - context.rank(values)
    if missing:
        dims = context.dims(values)
        values = context.emit(op.reshape(values, [*[1] * missing, *dims]))
    back = [order.index(axis) for axis in range(len(order))]
    return context.emit(op.permute_dims(values, back))


def _filling_mask(context: Context, tensor: Expr, indices: Indices, values: Expr) -> Expr | None:
    """The mask, if it is the only index and all of its places get the same values; else None."""
    mask = indices[0] if len(indices) == 1 else None
    if mask is None or not is_mask(context, mask):
        return None
    inner = context.rank(tensor) - context.rank(mask)
    dims = context.dims(values)
    is_fill = len(dims) <= inner or (len(dims) == inner + 1 and dims[0] == 1)
    return mask if is_fill else None


def _where_mask(context: Context, tensor: Expr, mask: Expr, values: Expr, accumulate: bool) -> Expr:
    dims = context.dims(mask)
    inner = context.rank(tensor) - len(dims)
    if context.dtype_of(mask) != "bool":
        mask = op.astype(mask, "bool")
    mask = op.reshape(mask, [*dims, *[1] * inner]) if inner else mask
    if context.rank(values) > inner:
        values = context.emit(op.squeeze(values, [0]))
    return op.where(mask, op.add(tensor, values) if accumulate else values, tensor)


@converter("aten.put.default")
def put(context: Context, self: Expr, index: Expr, source: Expr, accumulate: bool = False) -> Expr:
    """Values written (or added) at places of the flat tensor."""
    flat = [context.emit(op.reshape(item, [-1])) for item in (self, index, source)]
    whole = op.index_put(flat[0], [flat[1]], flat[2], accumulate)
    return op.reshape(whole, context.shape)


@converter("aten.masked_scatter.default")
def masked_scatter(context: Context, self: Expr, mask: Expr, source: Expr) -> Expr:
    """Where the mask holds, the elements of the source one after the other."""
    shape = context.shape
    whole = context.emit(op.broadcast_to(self, shape))
    holds = context.emit(op.broadcast_to(op.astype(mask, "bool"), shape))
    flat = [context.emit(op.reshape(item, [-1])) for item in (whole, holds, source)]
    return op.reshape(context.emit(op.masked_scatter(*flat)), shape)


# Slices


@converter("aten.slice_scatter.default")
def slice_scatter(
    context: Context,
    self: Expr,
    src: Expr,
    dim: int = 0,
    start: Extent | None = None,
    end: Extent | None = None,
    step: Extent = 1,
) -> Expr:
    """The tensor with another one in the place of a slice."""
    axis = axis_of(dim, context.rank(self))
    extent = context.dims(self)[axis]
    begin, stop = (_bound(limit, extent, default) for limit, default in ((start, 0), (end, END)))
    values = context.cast(src, context.dtype)
    return op.slice_scatter(self, values, begin, stop, step, axis=axis)


def _bound(limit: Extent | None, extent: Extent, default: int) -> Extent:
    """A limit of a slice, counted from the front and inside."""
    limit = default if limit is None else limit
    if not isinstance(limit, int):
        return limit
    if limit < 0:
        limit = limit + extent
        return max(limit, 0) if isinstance(limit, int) else limit
    if isinstance(extent, int):
        return min(limit, extent)
    return extent if limit == END else limit


@converter("aten.select_scatter.default")
def select_scatter(context: Context, self: Expr, src: Expr, dim: int, index: Extent) -> Expr:
    """The tensor with another one in the place of a slice of one."""
    axis = axis_of(dim, context.rank(self))
    if isinstance(index, int) and index < 0:
        index = index + context.dims(self)[axis]
    values = context.emit(op.expand_dims(context.cast(src, context.dtype), axis))
    return op.slice_scatter(self, values, index, index + 1, 1, axis=axis)
