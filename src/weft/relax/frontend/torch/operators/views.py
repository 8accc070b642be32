"""Other shapes of the same elements: reshape, permutations, broadcasts."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent, PrimExpr
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter


def axis_of(dim: int, rank: int) -> int:
    """A dimension counted from the front; a tensor without dimensions has one, as in torch."""
    return dim + max(rank, 1) if dim < 0 else dim


def axes_of(dims: Sequence[int] | int | None, rank: int) -> list[int]:
    """Dimensions counted from the front; all of them for None."""
    if dims is None:
        return list(range(rank))
    given = [dims] if isinstance(dims, int) else dims
    return [axis_of(dim, rank) for dim in given]


@converter(
    "aten.view.default", "aten._unsafe_view.default", "aten.reshape.default",
    "aten._reshape_alias.default", "aten.flatten.using_ints", "aten.unflatten.int",
    "aten.view_copy.default", "aten.view_as.default", "aten.reshape_as.default",
    "aten.ravel.default",
)  # fmt: skip
def reshape(context: Context, self: Expr, *_: object, **__: object) -> Expr:
    """The same elements in the shape that torch deduced."""
    return op.reshape(self, context.shape)


@converter(
    "aten.alias.default", "aten.detach.default", "aten.contiguous.default",
    "aten.lift_fresh_copy.default", "aten.lift_fresh.default", "aten.lift.default",
    "aten.alias_copy.default", "aten.resolve_conj.default", "aten.resolve_neg.default",
)  # fmt: skip
def alias(context: Context, self: Expr) -> Expr:
    """The tensor itself: graphs have values, not storage."""
    return self


@converter(
    "aten.expand.default", "aten.expand_copy.default", "aten.expand_as.default",
    "aten.broadcast_to.default",
)  # fmt: skip
def expand(context: Context, self: Expr, *_: object, **__: object) -> Expr:
    """Broadcast to the shape that torch deduced."""
    return op.broadcast_to(self, context.shape)


@converter("aten.permute.default", "aten.permute_copy.default")
def permute(context: Context, self: Expr, dims: Sequence[int]) -> Expr:
    """Dimensions in another order."""
    return op.permute_dims(self, axes_of(dims, context.rank(self)))


def swapped(context: Context, tensor: Expr, first: int, second: int) -> Expr:
    """Two dimensions exchanged; a tensor of no dimensions is itself."""
    rank = context.rank(tensor)
    if rank == 0:
        return tensor
    order = list(range(rank))
    first, second = axis_of(first, rank), axis_of(second, rank)
    order[first], order[second] = order[second], order[first]
    return context.emit(op.permute_dims(tensor, order))


@converter(
    "aten.transpose.int", "aten.transpose_copy.int", "aten.swapaxes.default",
    "aten.swapdims.default",
)  # fmt: skip
def transpose(context: Context, self: Expr, dim0: int, dim1: int) -> Expr:
    """Two dimensions exchanged."""
    return swapped(context, self, dim0, dim1)


@converter("aten.t.default", "aten.t_copy.default", "aten.mT.default")
def transpose_matrix(context: Context, self: Expr) -> Expr:
    """The last two dimensions exchanged; a vector is itself."""
    return self if context.rank(self) < 2 else swapped(context, self, -2, -1)


@converter(
    "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims",
    "aten.squeeze_copy.default", "aten.squeeze_copy.dim", "aten.squeeze_copy.dims",
)  # fmt: skip
def squeeze(context: Context, self: Expr, dim: int | Sequence[int] | None = None) -> Expr:
    """Without dimensions of extent 1 (among ``dim``)."""
    dims = context.dims(self)
    axes = [axis for axis in axes_of(dim, len(dims)) if axis < len(dims) and _is_one(dims[axis])]
    if len(dims) - len(axes) != len(context.shape):
        return op.reshape(self, context.shape)
    if dim is None and context.static(dims):
        return op.squeeze(self)
    return op.squeeze(self, axes) if axes else self


def _is_one(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 1


@converter("aten.unsqueeze.default", "aten.unsqueeze_copy.default")
def unsqueeze(context: Context, self: Expr, dim: int) -> Expr:
    """With a new dimension of extent 1 before ``dim``."""
    return op.expand_dims(self, dim)


@converter("aten.repeat.default", "aten.tile.default")
def repeat(
    context: Context, self: Expr, repeats: Sequence[Extent] = (), dims: Sequence[Extent] = ()
) -> Expr:
    """Copies side by side, along new leading dimensions too."""
    counts = [*repeats, *dims]  # torch has two names for them
    if context.static(counts):
        return op.tile(self, counts) if counts else self
    extents = context.dims(self)
    extents = [*[1] * (len(counts) - len(extents)), *extents]
    counts = [*[1] * (len(extents) - len(counts)), *counts]
    apart = [extent for dim in extents for extent in (1, dim)]
    spread = [extent for pair in zip(counts, extents, strict=True) for extent in pair]
    whole = op.broadcast_to(op.reshape(self, apart), spread)
    return op.reshape(whole, context.shape)


@converter("aten.flip.default")
def flip(context: Context, self: Expr, dims: Sequence[int]) -> Expr:
    """Backwards along dimensions."""
    for axis in axes_of(dims, context.rank(self)):
        if context.rank(self):
            self = context.emit(op.flip(self, axis))
    return self


@converter("aten.roll.default")
def roll(
    context: Context,
    self: Expr,
    shifts: Extent | Sequence[Extent],
    dims: int | Sequence[int] | None = None,
) -> Expr:
    """Shifted along dimensions, what falls off comes in on the other side."""
    amounts = [shifts] if isinstance(shifts, int | PrimExpr) else list(shifts)
    if not dims:
        flat = context.emit(op.reshape(self, [-1]))
        return op.reshape(_rolled(context, flat, amounts[0], 0), context.shape)
    given = [dims] if isinstance(dims, int) else dims
    for shift, dim in zip(amounts, given, strict=True):
        self = _rolled(context, self, shift, axis_of(dim, context.rank(self)))
    return self


def _rolled(context: Context, tensor: Expr, shift: Extent, axis: int) -> Expr:
    extent = context.dims(tensor)[axis]
    if isinstance(extent, int) and extent < 2:
        return tensor
    cut = extent - shift % extent if context.static([extent, shift]) else extent - shift
    if isinstance(cut, int) and cut == extent:
        return tensor
    if not context.static([extent, shift]):
        return _rolled_by_index(context, tensor, shift, axis)
    pieces = [
        op.strided_slice(tensor, [axis], [begin], [end]) for begin, end in ((cut, extent), (0, cut))
    ]
    return context.emit(op.concat(pieces, axis))


def _rolled_by_index(context: Context, tensor: Expr, shift: Extent, axis: int) -> Expr:
    extent = context.dims(tensor)[axis]
    places = op.floor_mod(
        op.subtract(op.arange(0, extent, 1, "int64"), context.operand(shift, "int64")),
        context.operand(extent, "int64"),
    )
    return context.emit(op.take(tensor, places, axis))
