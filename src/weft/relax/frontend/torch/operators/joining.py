"""Tensors put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.views import axis_of
from weft.relax.frontend.torch.registry import converter


@converter("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def cat(context: Context, tensors: Sequence[Expr], dim: int = 0) -> Expr:
    """Tensors end to end along a dimension; vectors of no elements fit beside any shape."""
    rank = len(context.shape)
    kept = [tensor for tensor in tensors if not _is_empty_vector(context, tensor, rank)]
    if not kept:
        return op.zeros(context.shape, context.dtype)
    joined = [context.cast(tensor, context.dtype) for tensor in kept]
    return joined[0] if len(joined) == 1 else op.concat(joined, axis_of(dim, rank))


def _is_empty_vector(context: Context, tensor: Expr, rank: int) -> bool:
    return context.dims(tensor) == [0] and (rank != 1 or context.shape == [0])


@converter("aten.stack.default")
def stack(context: Context, tensors: Sequence[Expr], dim: int = 0) -> Expr:
    """Tensors of one shape side by side along a new dimension."""
    rank = len(context.shape)
    axis = axis_of(dim, rank)
    parts = [context.cast(tensor, context.dtype) for tensor in tensors]
    if axis == rank - 1:
        return op.concat([op.expand_dims(part, axis) for part in parts], axis)
    return op.reshape(op.concat(parts, axis), context.shape)


def parts(
    context: Context, tensor: Expr, sizes: Sequence[Extent], axis: int, by_number: bool = False
) -> list[Expr]:
    """Pieces of these sizes along a dimension; equal ones by their number, if wanted."""
    if len(sizes) == 1:
        return [tensor]
    ends = [sizes[0]]
    for size in sizes[1:]:
        ends.append(ends[-1] + size)
    if context.static(ends):
        even = by_number and all(size == sizes[0] for size in sizes) and sizes[0] != 0
        whole = context.emit(op.split(tensor, len(sizes) if even else ends[:-1], axis))
        return [context.emit(TupleGetItem(whole, index)) for index in range(len(sizes))]
    begins: list[Extent] = [0, *ends[:-1]]
    return [
        context.emit(op.strided_slice(tensor, [axis], [begin], [end], assume_inbound=True))
        for begin, end in zip(begins, ends, strict=True)
    ]


@converter(
    "aten.split.Tensor", "aten.split_with_sizes.default", "aten.split.sizes", "aten.chunk.default",
    "aten.tensor_split.sections", "aten.tensor_split.indices", "aten.unsafe_split.Tensor",
    "aten.unsafe_chunk.default", "aten.split_with_sizes_copy.default",
    "aten.unsafe_split_with_sizes.default",
)  # fmt: skip
def split(
    context: Context,
    self: Expr,
    sizes: Extent | Sequence[Extent] | None = None,
    dim: int = 0,
    **_: object,
) -> list[Expr]:
    """Pieces along a dimension, of the sizes that torch deduced."""
    axis = axis_of(dim, context.rank(self))
    pieces = [shape[axis] for shape, _ in context.results]
    return parts(context, self, pieces, axis, by_number=isinstance(sizes, int))


@converter("aten.unbind.int", "aten.unbind_copy.int")
def unbind(context: Context, self: Expr, dim: int = 0) -> list[Expr]:
    """The slices along a dimension, without it."""
    axis = axis_of(dim, context.rank(self))
    count = len(context.results)
    if not count:
        return []
    pieces = parts(context, self, [1] * count, axis)
    return [context.emit(op.squeeze(piece, [axis])) for piece in pieces]
