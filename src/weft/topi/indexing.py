"""Operators that select elements by data: take, gather, where and the like.

Negative indices count from the end only in ``mode="wrap"`` of take, as in TVM 0.20. ``clip`` limits
an index to the axis; ``fast`` does not change it (the compiled program still checks it).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent, PrimExpr, as_prim_expr
from weft.support.errors import IRTypeError, IRValueError
from weft.te.tensor import Operand, Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Point,
    Shape,
    broadcast_indices,
    broadcast_shape,
    compute_ax,
    const_int,
    may_be_equal,
    normalize_axis,
    operand,
    product,
    shape_text,
    unravel_index,
)


def take(
    a: Tensor, indices: Operand, axis: Extent | None = None, batch_dims: int = 0, mode: str = "clip"
) -> Tensor:
    """Elements of ``a`` along ``axis`` at ``indices`` (of any shape); axis None flattens ``a``.

    In the shape of the result, ``indices.shape`` replaces ``axis``; the first ``batch_dims`` axes
    are common to both. ``mode``: "clip", "wrap" (negative from the end), "fast", or "nan".
    """
    if mode not in ("clip", "wrap", "fast", "nan"):
        raise IRValueError(f"take: expected mode clip, wrap, fast or nan, got {mode!r}")
    positions = indices if isinstance(indices, Tensor) else as_prim_expr(indices)
    if not positions.dtype.is_integral:
        raise IRTypeError(f"take: the indices must be integers, got {positions.dtype}")
    inner: Shape = positions.shape if isinstance(positions, Tensor) else ()
    if axis is None:
        return _take_flat(a, positions, inner, mode)
    place = normalize_axis(axis, a.ndim, "take")
    batch = const_int(batch_dims, "take: batch_dims") % (a.ndim + 1)
    count = len(inner) - batch
    shape = [*a.shape[:place], *inner[batch:], *a.shape[place + 1 :]]

    def element(*point: PrimExpr) -> PrimExpr:
        where = (*point[:batch], *point[place : place + count])
        index = positions(*where) if isinstance(positions, Tensor) else positions
        return _lookup(a, index, place, (*point[:place], *point[place + count :]), mode)

    return compute_ax(shape, element, "T_take", tag=tag.INJECTIVE)


def _take_flat(a: Tensor, positions: Tensor | PrimExpr, shape: Shape, mode: str) -> Tensor:
    size = as_prim_expr(product(a.shape))

    def element(*point: PrimExpr) -> PrimExpr:
        index = positions(*point) if isinstance(positions, Tensor) else positions
        if mode == "wrap":
            index = op.floormod(index, size)
        elif mode == "clip":
            index = _clipped(index, size)
        value = a(*unravel_index(index, a.shape))
        return _nan_outside(a, value, index, size) if mode == "nan" else value

    return compute_ax(shape, element, "T_take", tag=tag.INJECTIVE)


def _lookup(a: Tensor, index: PrimExpr, place: int, point: Point, mode: str) -> PrimExpr:
    """a at ``index`` along the axis ``place``, and at ``point`` along the others."""
    extent = a.shape[place]
    if mode == "wrap":
        index = op.floormod(index, extent)
    elif mode == "clip":
        index = _clipped(index, extent)
    value = a(*point[:place], index, *point[place:])
    return _nan_outside(a, value, index, extent) if mode == "nan" else value


def _clipped(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    low = op.maximum(op.const(0, index.dtype), index)
    return op.minimum(low, op.subtract(extent, 1))


def _nan_outside(a: Tensor, value: PrimExpr, index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    if not a.dtype.is_float:
        raise IRTypeError(f"take: mode='nan' needs a floating-point tensor, got {a.dtype}")
    inside = op.logical_and(op.less_equal(0, index), op.less(index, extent))
    return op.if_then_else(inside, value, op.const(float("nan"), a.dtype))


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """``data[i0, .., indices[i0, .., in], .., in]``: an index along ``axis`` for each element."""
    place = normalize_axis(axis, data.ndim, "gather")
    if indices.ndim != data.ndim:
        raise IRValueError(
            f"gather: the indices have {indices.ndim} dimensions, the data {data.ndim}"
        )
    if not indices.dtype.is_integral:
        raise IRTypeError(f"gather: the indices must be integers, got {indices.dtype}")

    def element(*point: PrimExpr) -> PrimExpr:
        return data(*point[:place], indices(*point), *point[place + 1 :])

    return compute_ax(indices.shape, element, "T_gather", tag=tag.INJECTIVE)


def gather_nd(a: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """Slices of ``a`` at index tuples, which lie along the first axis of ``indices``."""
    batch = const_int(batch_dims, "gather_nd: batch_dims")
    width = const_int(indices.shape[0], "gather_nd: the first extent of indices")
    if width + batch > a.ndim:
        raise IRValueError(
            f"gather_nd: index tuples of {width} after {batch} batch axes exceed the {a.ndim} "
            "dimensions of the data"
        )
    rest = indices.ndim - 1
    shape = [*indices.shape[1:], *a.shape[batch + width :]]

    def element(*point: PrimExpr) -> PrimExpr:
        where = point[:rest]
        source = [*point[:batch], *[indices(number, *where) for number in range(width)]]
        return a(*source, *point[rest:])

    return compute_ax(shape, element, "T_gather_nd", tag=tag.INJECTIVE)


def index_tensor(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """``data[I0, I1, ...]``; the index tensors broadcast, negative indices count from the end."""
    shape = joint_shape(data, indices, "index_tensor")
    rank = len(shape)

    def element(*point: PrimExpr) -> PrimExpr:
        where = [
            from_end(t(*broadcast_indices(t.shape, shape, point[:rank])), extent)
            for t, extent in zip(indices, data.shape, strict=False)
        ]
        return data(*where, *point[rank:])

    outer = [*shape, *data.shape[len(indices) :]]
    return compute_ax(outer, element, "T_index_tensor", tag=tag.INJECTIVE)


def joint_shape(data: Tensor, indices: Sequence[Tensor], name: str) -> list[Extent]:
    """The shape that index tensors broadcast to."""
    if not indices or len(indices) > data.ndim:
        raise IRValueError(
            f"{name}: expected 1 to {data.ndim} index tensors for data of {data.ndim} "
            f"dimensions, got {len(indices)}"
        )
    shape: list[Extent] = []
    for tensor in indices:
        if not tensor.dtype.is_integral or tensor.dtype.is_bool:
            raise IRTypeError(f"{name}: the indices must be integers, got {tensor.dtype}")
        shape = broadcast_shape(shape, tensor.shape, name)
    return shape


def from_end(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """An index that counts from the end if it is negative."""
    if not index.dtype.is_int:
        return index
    return op.if_then_else(op.less(index, 0), op.add(index, extent), index)


def where(condition: Tensor | PrimExpr, x: Operand, y: Operand) -> Tensor:
    """x where the condition is not 0, else y; all three broadcast."""
    shape: list[Extent] = []
    operands = [operand(item) for item in (condition, x, y)]
    for item in operands:
        if isinstance(item, Tensor):
            shape = broadcast_shape(shape, item.shape, "where")

    def element(*point: PrimExpr) -> PrimExpr:
        chosen, first, second = [
            item(*broadcast_indices(item.shape, shape, point)) if isinstance(item, Tensor) else item
            for item in operands
        ]
        if not chosen.dtype.is_bool:
            chosen = op.not_equal(chosen, op.const(0, chosen.dtype))
        return op.select(chosen, first, second)

    return compute_ax(shape, element, "T_where", tag=tag.BROADCAST)


def sequence_mask(
    data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0
) -> Tensor:
    """The data with ``mask_value`` from ``valid_length[b]`` on along ``axis`` (0 or 1).

    The other of the first two axes is the batch.
    """
    place = normalize_axis(axis, data.ndim, "sequence_mask")
    if place > 1 or data.ndim < 2:
        raise IRValueError(f"sequence_mask: expected axis 0 or 1 of 2 or more, got {place}")
    if not may_be_equal(valid_length.shape[0], data.shape[1 - place]):
        raise IRValueError(
            f"sequence_mask: {shape_text(valid_length.shape)} lengths for a batch of "
            f"{data.shape[1 - place]}"
        )

    def element(*point: PrimExpr) -> PrimExpr:
        inside = op.less(point[place], valid_length(point[1 - place]))
        return op.select(inside, data(*point), op.const(mask_value, data.dtype))

    return compute_ax(data.shape, element, "T_sequence_mask", tag=tag.INJECTIVE)
