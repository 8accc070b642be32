"""Parts of tensors: slices, and slices chosen by an index tensor along one dimension."""

from __future__ import annotations

from typing import Final

from weft.ir.expr import Extent, PrimExpr
from weft.relax import op
from weft.relax.expr import Expr, PrimValue, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.views import axis_of
from weft.relax.frontend.torch.registry import converter

END: Final = 2**63 - 1
"""torch's end of a slice that has none."""


@converter("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(
    context: Context,
    self: Expr,
    dim: int = 0,
    start: Extent | None = None,
    end: Extent | None = None,
    step: int = 1,
) -> Expr:
    """``self[..., start:end:step, ...]`` along one dimension."""
    start, end = 0 if start is None else start, END if end is None else end
    if (start, end, step) == (0, END, 1) and context.static([start, end]):
        return self
    return op.strided_slice(self, [dim], [start], [end], [step])


@converter("aten.narrow.default", "aten.narrow_copy.default")
def narrow(context: Context, self: Expr, dim: int, start: Extent, length: Extent) -> Expr:
    """``length`` slices from ``start`` on."""
    axis = axis_of(dim, context.rank(self))
    if isinstance(start, int) and start < 0:
        start = start + context.dims(self)[axis]
    return op.strided_slice(self, [axis], [start], [start + length])


@converter("aten.select.int", "aten.select_copy.int")
def select(context: Context, self: Expr, dim: int, index: Extent) -> Expr:
    """One slice along a dimension, without it."""
    axis = axis_of(dim, context.rank(self))
    return op.take(self, place(context, self, axis, index), axis)


def place(context: Context, tensor: Expr, axis: int, index: Extent) -> Expr:
    """An index along a dimension as an operand; a negative number counts from the end."""
    if isinstance(index, int) and index < 0:
        index = index + context.dims(tensor)[axis]
    return PrimValue(index) if isinstance(index, PrimExpr) else const(index, "int64")


@converter("aten.index_select.default")
def index_select(context: Context, self: Expr, dim: int, index: Expr) -> Expr:
    """The slices that a vector of indices chooses along a dimension."""
    if context.rank(index) == 0:
        index = op.reshape(index, [1])
    if context.rank(self) == 0:
        return op.reshape(op.take(op.reshape(self, [1]), index, 0), context.shape)
    return op.take(self, index, axis_of(dim, context.rank(self)))


@converter("aten.embedding.default")
def embedding(context: Context, weight: Expr, indices: Expr, *_: object, **__: object) -> Expr:
    """The rows of a table that indices choose."""
    return op.take(weight, indices, 0)
