"""topi's operators with the arguments of graph operators: new axes as a list, for example."""

from __future__ import annotations

from weft import te
from weft.ir.expr import Extent, PrimExpr
from weft.te.tensor import Tensor
from weft.tir.index_map import IndexMap
from weft.tir.op import const as tir_const
from weft.tir.op import if_then_else, is_const_int
from weft.topi.creation import full as plain_full
from weft.topi.extents import Extents, product
from weft.topi.indexing import gather_nd as plain_gather_nd
from weft.topi.scatter import scatter_nd as plain_scatter_nd
from weft.topi.simplify import simplified
from weft.topi.transform import repeat as plain_repeat
from weft.topi.transform import reshape, transpose


def expand_dims(x: Tensor, axes: list[int]) -> Tensor:
    """New axes of extent 1."""
    rank = len(x.shape) + len(axes)
    new = {axis % rank for axis in axes}
    old = iter(x.shape)
    shape = [1 if axis in new else next(old) for axis in range(rank)]
    return te.compute(
        shape,
        lambda *indices: x(*[item for axis, item in enumerate(indices) if axis not in new]),
        name="expand_dims",
    )


def repeat(x: Tensor, repeats: int, axis: int | None) -> Tensor:
    """Each element repeated along an axis; without an axis, along the flattened tensor."""
    if axis is None:
        x, axis = reshape(x, [simplified(product(x.shape))]), 0
    return plain_repeat(x, repeats, axis)


def gather_nd(data: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    """topi takes the index vectors along the first axis."""
    rank = len(indices.shape)
    moved = transpose(indices, [rank - 1, *range(rank - 1)])
    return plain_gather_nd(data, moved, batch_dims)


def full(shape: Extents, dtype: str, value: Tensor | PrimExpr | float) -> Tensor:
    """A tensor filled with a number, or with the element of a tensor without dimensions."""
    scalar = value() if isinstance(value, Tensor) else value
    return plain_full(shape, dtype, scalar.astype(dtype) if hasattr(scalar, "astype") else scalar)


def layout_transform(x: Tensor, index_map: IndexMap, pad_value: Extent | None) -> Tensor:
    """The tensor in a new layout: each element is read by the inverse map, or is padding."""
    inverse, padding = index_map.non_surjective_inverse(x.shape)
    where = IndexMap(inverse.initial_indices, [padding])
    fill = tir_const(0, str(x.dtype)) if pad_value is None else pad_value

    def moved(*indices: PrimExpr) -> PrimExpr:
        value = x(*inverse.map_indices(indices))
        (is_padding,) = where.map_indices(indices)
        return value if is_const_int(is_padding, 0) else if_then_else(is_padding, fill, value)

    return te.compute(index_map.map_shape(x.shape), moved, name="layout_transform")


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """topi takes the index vectors along the first axis."""
    rank = len(indices.shape)
    moved = transpose(indices, [rank - 1, *range(rank - 1)])
    return plain_scatter_nd(data, moved, updates, reduction)
