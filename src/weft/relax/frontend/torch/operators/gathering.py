"""Elements that index tensors and masks choose."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.relax.struct_info import TensorStructInfo
from weft.tir.expr import Var

Indices = Sequence[Expr | None]


@converter("aten.gather.default")
def gather(context: Context, self: Expr, dim: int, index: Expr, *_: object, **__: object) -> Expr:
    """``self[.., index[p], ..]`` along a dimension for every place p of the index."""
    ranks = context.rank(self), context.rank(index)
    if ranks == (0, 0):
        return op.add(
            self, op.astype(op.multiply(index, context.operand(0, "int64")), context.dtype)
        )
    if ranks[1] and 0 in context.dims(index):
        return op.zeros(context.shape, context.dtype)
    data = self if ranks[0] else op.reshape(self, [1])
    where = index if ranks[1] else op.reshape(index, [1])
    chosen = op.gather_elements(data, where, axis=dim)
    return chosen if ranks[1] else op.reshape(chosen, [])


@converter("aten.take.default")
def take(context: Context, self: Expr, index: Expr) -> Expr:
    """Elements of the flat tensor; negative indices count from the end."""
    flat = op.reshape(self, [-1])
    return op.index_tensor(flat, [index])


@converter("aten.nonzero.default")
def nonzero(context: Context, self: Expr) -> Expr:
    """The indices of the elements that are not zero, a row for each."""
    if context.rank(self) == 0:
        alone = places_of(context, context.emit(op.reshape(self, [1])))
        return op.permute_dims(op.strided_slice(alone, [0], [0], [0]), [1, 0])
    return op.permute_dims(places_of(context, self), [1, 0])


def places_of(context: Context, mask: Expr) -> Expr:
    """The indices of what is not zero, a row for each dimension; their number is a new symbol."""
    count = Var("num_nonzero", "int64")
    info = TensorStructInfo([context.rank(mask), count], "int64")
    return context.builder.match_cast(context.emit(op.nonzero(mask)), info)


def rows(context: Context, table: Expr, count: int) -> list[Expr]:
    """The rows of a table of indices, each as a vector."""
    if count == 1:
        return [context.emit(op.squeeze(table, [0]))]
    pieces = context.emit(op.split(table, count, 0))
    return [
        context.emit(op.squeeze(context.emit(TupleGetItem(pieces, number)), [0]))
        for number in range(count)
    ]


def is_mask(context: Context, index: Expr | None) -> bool:
    """Whether an index is a mask: torch takes uint8 for one too."""
    return index is not None and context.dtype_of(index) in ("bool", "uint8")


def as_integers(context: Context, indices: Indices) -> list[Expr | None]:
    """Indices with each mask replaced by the places where it holds, one tensor a dimension."""
    integers: list[Expr | None] = []
    for index in indices:
        if index is None or not is_mask(context, index):
            integers.append(index)
        elif context.rank(index) == 0:
            integers.append(index)
        else:
            integers.extend(rows(context, places_of(context, index), context.rank(index)))
    return integers


def indexed_axes(indices: Indices) -> list[int]:
    """The dimensions that have an index."""
    return [axis for axis, index in enumerate(indices) if index is not None]


def in_front(context: Context, tensor: Expr, axes: Sequence[int]) -> Expr:
    """The tensor with these dimensions first, the others in order behind."""
    order = [*axes, *(axis for axis in range(context.rank(tensor)) if axis not in axes)]
    if order == sorted(order):
        return tensor
    return context.emit(op.permute_dims(tensor, order))


def joint_rank(context: Context, indices: Indices) -> int:
    """The rank that index tensors broadcast to."""
    return max(context.rank(index) for index in indices if index is not None)


def back_in_place(axes: Sequence[int], joint: int, rank: int) -> list[int] | None:
    """Where the dimensions of a result of indices in front go; None where they stay there.

    As in numpy: in the place of the first index, if the indexed dimensions are neighbours.
    """
    first = axes[0]
    if list(axes) != list(range(first, first + len(axes))) or first == 0:
        return None
    return [*range(joint, joint + first), *range(joint), *range(joint + first, rank)]


@converter("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(context: Context, self: Expr, indices: Indices) -> Expr:
    """``self[I0, :, I1, ...]``: None leaves a dimension; a mask chooses where it holds."""
    integers = as_integers(context, indices)
    axes = indexed_axes(integers)
    if not axes:
        return self
    if len(integers) > context.rank(self):
        return _of_scalar(context, self, integers)
    data = in_front(context, self, axes)
    chosen = [context.emit(item) for item in integers if item is not None]
    elements = op.index_tensor(data, chosen)
    joint = joint_rank(context, chosen)
    order = back_in_place(axes, joint, joint + context.rank(self) - len(axes))
    return elements if order is None else op.permute_dims(elements, order)


def _of_scalar(context: Context, tensor: Expr, masks: Indices) -> Expr:
    """A 0-d tensor indexed by a 0-d mask: a vector of its element, or of none."""
    keep = masks[0]
    assert keep is not None
    where = places_of(context, context.emit(op.reshape(keep, [1])))
    chosen = rows(context, where, 1)
    return op.index_tensor(op.expand_dims(tensor, 0), chosen)


@converter("aten.masked_select.default")
def masked_select(context: Context, self: Expr, mask: Expr) -> Expr:
    """The elements where a mask holds, in order, as a vector."""
    shape = joint_shape(context, self, mask)
    data, where = (
        context.emit(op.reshape(context.emit(op.broadcast_to(tensor, shape)), [-1]))
        for tensor in (self, mask)
    )
    return op.index_tensor(data, rows(context, places_of(context, where), 1))


def joint_shape(context: Context, first: Expr, second: Expr) -> list[Extent]:
    """The shape that two tensors broadcast to."""
    longer, short = sorted((context.dims(first), context.dims(second)), key=len, reverse=True)
    shorter: list[Extent] = [*[1] * (len(longer) - len(short)), *short]
    return [
        its if isinstance(mine, int) and mine == 1 else mine
        for mine, its in zip(longer, shorter, strict=True)
    ]
