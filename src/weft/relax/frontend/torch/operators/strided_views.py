"""Views by strides: windows, diagonals, as_strided, other data types of the same bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.dtypes import dtype_name
from weft.relax.frontend.torch.operators.views import axis_of
from weft.relax.frontend.torch.registry import converter
from weft.support.errors import UnsupportedError


@converter("aten.unfold.default", "aten.unfold_copy.default")
def unfold(context: Context, self: Expr, dimension: int, size: int, step: int) -> Expr:
    """Windows along a dimension, their elements along a new last one."""
    if context.rank(self) == 0:
        return op.reshape(self, context.shape)
    return op.unfold(self, axis_of(dimension, context.rank(self)), size, step)


@converter("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(context: Context, self: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Expr:
    """The diagonal of two dimensions, as the last one."""
    return op.diagonal(self, offset, dim1, dim2)


@converter("aten.diagonal_scatter.default")
def diagonal_scatter(
    context: Context, self: Expr, src: Expr, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Expr:
    """The tensor with other values on a diagonal."""
    return op.diagonal_scatter(self, context.cast(src, context.dtype), offset, dim1, dim2)


@converter("aten.diag_embed.default")
def diag_embed(
    context: Context, self: Expr, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> Expr:
    """Matrices of zeros with the last dimension on a diagonal."""
    zeros = context.emit(op.zeros(context.shape, context.dtype))
    return op.diagonal_scatter(zeros, self, offset, dim1, dim2)


@converter("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(
    context: Context,
    self: Expr,
    size: Sequence[Extent],
    stride: Sequence[Extent],
    storage_offset: Extent | None = None,
) -> Expr:
    """Elements by their positions in memory, which the tensor has to fill without gaps."""
    order, start = storage_order(context)
    if order != list(range(len(order))):
        self = context.emit(op.permute_dims(self, order))
    offset = start if storage_offset is None else storage_offset
    return op.as_strided(self, list(size), list(stride), offset - start)


def storage_order(context: Context) -> tuple[list[int], int]:
    """The dimensions of the first operand as its storage has them, and where it starts there."""
    fake = context.node.args[0].meta["val"]
    order = sorted(range(fake.dim()), key=lambda axis: (-fake.stride(axis), axis))
    if not fake.permute(order).is_contiguous():
        raise UnsupportedError(
            f"as_strided: the tensor {tuple(fake.shape)} has the strides {fake.stride()}, so it "
            "shares storage with elements that are not its own; make it contiguous first"
        )
    return order, fake.storage_offset()


@converter("aten.as_strided_scatter.default")
def as_strided_scatter(
    context: Context,
    self: Expr,
    src: Expr,
    size: Sequence[Extent],
    stride: Sequence[Extent],
    storage_offset: Extent | None = None,
) -> Expr:
    """The tensor with another one written where as_strided would read."""
    order, start = storage_order(context)
    offset = (start if storage_offset is None else storage_offset) - start
    places = np.full((), offset)
    for extent, step in zip(size, stride, strict=True):
        if not (isinstance(extent, int) and isinstance(step, int) and isinstance(offset, int)):
            raise UnsupportedError("as_strided_scatter: expected constant sizes and strides")
        places = places[..., None] + np.arange(extent) * step
    data = context.emit(op.permute_dims(self, order)) if order else self
    flat, values = (context.emit(op.reshape(item, [-1])) for item in (data, src))
    chosen = const(places.reshape(-1).astype("int64"))
    written = context.emit(op.index_put(flat, [chosen], values))
    whole = op.reshape(written, context.dims(data))
    back = [order.index(axis) for axis in range(len(order))]
    return op.permute_dims(context.emit(whole), back) if order else whole


@converter("aten.view.dtype")
def view_dtype(context: Context, self: Expr, dtype: str) -> Expr:
    """The same bytes as another data type."""
    if dtype_name(dtype) == context.dtype_of(self):
        return self
    return op.memory.view(self, context.shape, context.dtype)
