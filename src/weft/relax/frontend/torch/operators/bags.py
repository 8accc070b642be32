"""Bags of embeddings, distances of rows, weight normalisation, products of three."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.scattering import sum_type, written
from weft.relax.frontend.torch.operators.views import axis_of
from weft.relax.frontend.torch.registry import converter
from weft.support.errors import UnsupportedError


@converter("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(
    context: Context,
    weight: Expr,
    indices: Expr,
    offsets: Expr,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Expr | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> list[Expr | None]:
    """Sums, means or maxima of the rows of bags; (result, bag of each index, sizes, -)."""
    if context.is_read(3) and mode == 2:
        raise UnsupportedError("embedding_bag: the places of the largest elements are not given")
    bags, features = context.shape
    indices, offsets = (context.cast(item, "int64") for item in (indices, offsets))
    places = op.arange(0, context.dims(indices)[0], 1, "int64")
    unit = context.operand(1, "int64")
    owner = context.emit(
        op.subtract(op.astype(op.bucketize(places, offsets, right=True), "int64"), unit)
    )
    rows = context.emit(op.take(weight, indices, 0))
    if per_sample_weights is not None:
        rows = context.emit(op.multiply(rows, op.expand_dims(per_sample_weights, 1)))
    is_counted = op.not_equal(indices, context.operand(padding_idx, "int64"))
    counted = context.emit(op.astype(is_counted, "int64"))
    sizes = context.emit(op.index_put(op.zeros([bags], "int64"), [owner], counted, True))
    combined = _combined(context, rows, (owner, counted), (bags, features), mode)
    if mode == 1:
        divisors = op.astype(op.maximum(sizes, unit), context.dtype_of(combined))
        combined = op.divide(combined, op.expand_dims(divisors, 1))
    combined = context.cast(context.emit(combined), context.dtype)
    others = enumerate((owner, sizes, sizes), 1)
    return [combined, *(_or_empty(context, item, number) for number, item in others)]


def _or_empty(context: Context, tensor: Expr, number: int) -> Expr | None:
    """A result; torch leaves it empty where its kernels do not need it."""
    if not context.is_read(number):
        return None
    shape, dtype = context.results[number]
    return context.emit(op.zeros(shape, dtype)) if shape == [0] else tensor


def _combined(
    context: Context,
    rows: Expr,
    where: tuple[Expr, Expr],
    shape: tuple[Extent, Extent],
    mode: int,
) -> Expr:
    owner, counted = where
    zero = context.operand(0, context.dtype)
    kept = context.emit(op.expand_dims(op.astype(counted, "bool"), 1))
    if mode != 2:
        kind = sum_type(context.dtype)
        rows = context.cast(context.emit(op.where(kept, rows, zero)), kind)
        start = context.emit(op.zeros(list(shape), kind))
        return context.emit(op.index_put(start, [owner], rows, True))
    lowest = context.operand(-math.inf, context.dtype)
    start = context.emit(op.full(list(shape), lowest, context.dtype))
    chosen = op.broadcast_to(op.expand_dims(owner, 1), context.dims(rows))
    rows = context.emit(op.where(kept, rows, lowest))
    top = context.emit(written(start, chosen, rows, 0, "max"))
    return context.emit(op.where(op.equal(top, lowest), zero, top))


# Distances

_FEW: Final = 25
_ALWAYS, _NEVER = 1, 2
"""PyTorch's modes: whether a product of matrices gives Euclidean distances. None and 0 mean where
one side has more than a few rows."""


def norm(context: Context, difference: Expr, p: float) -> Expr:
    """The p-norm along the last dimension."""
    dtype = context.dtype
    if p == 0:
        unequal = op.not_equal(difference, context.operand(0, dtype))
        return op.sum(op.astype(unequal, dtype), [-1])
    if p == 2:
        return op.sqrt(op.sum(op.multiply(difference, difference), [-1]))
    size = op.abs(difference)
    if p == 1:
        return op.sum(size, [-1])
    if math.isinf(p):
        return op.max(size, [-1])
    powers = op.sum(op.power(size, context.operand(p, dtype)), [-1])
    return op.power(powers, context.operand(1 / p, dtype))


@converter("aten._cdist_forward.default")
def cdist(context: Context, x1: Expr, x2: Expr, p: float, compute_mode: int | None = None) -> Expr:
    """The distance of every row of one matrix to every row of another."""
    rows = op.expand_dims(x1, context.rank(x1) - 1)
    columns = op.expand_dims(x2, context.rank(x2) - 2)
    return norm(context, context.emit(op.subtract(rows, columns)), p)


@converter("aten.cdist.default")
def distances(
    context: Context, x1: Expr, x2: Expr, p: float = 2.0, compute_mode: int | None = None
) -> Expr:
    """As ``cdist``; of many rows by a product of matrices where PyTorch does so, too."""
    is_many = any(isinstance(n, int) and n > _FEW for n in context.shape[-2:])
    if p != 2 or compute_mode == _NEVER or not (is_many or compute_mode == _ALWAYS):
        return cdist(context, x1, x2, p)
    lengths = [op.sum(op.multiply(item, item), [-1], keepdims=True) for item in (x1, x2)]
    flipped = [_flipped(context, item) for item in (lengths[1], x2)]
    product = op.multiply(op.matmul(x1, flipped[1]), context.operand(-2, context.dtype))
    square = op.add(op.add(product, lengths[0]), flipped[0])
    return op.sqrt(op.maximum(square, context.operand(0, context.dtype)))


def _flipped(context: Context, matrices: Expr) -> Expr:
    """The matrices transposed."""
    matrices = context.emit(matrices)
    *batch, rows, columns = range(context.rank(matrices))
    return op.permute_dims(matrices, [*batch, columns, rows])


@converter("aten._pdist_forward.default")
def pdist(context: Context, self: Expr, p: float = 2.0) -> Expr:
    """The distance of every pair of rows."""
    count = context.dims(self)[0]
    if not isinstance(count, int):
        raise UnsupportedError(f"pdist: expected a constant number of rows, got {count}")
    first, second = np.triu_indices(count, 1)
    pairs = [op.take(self, const(item.astype("int64")), 0) for item in (first, second)]
    return norm(context, context.emit(op.subtract(*pairs)), p)


# Others


@converter("aten._weight_norm_interface.default", "aten._weight_norm.default")
def weight_norm(context: Context, v: Expr, g: Expr, dim: int = 0) -> Expr | list[Expr]:
    """(v scaled to the length g along one dimension, the length it had)."""
    rank = context.rank(v)
    axes = [axis for axis in range(rank) if axis != axis_of(dim, rank)]
    square = op.sum(op.multiply(v, v), axes, keepdims=True)
    length = context.emit(op.sqrt(square))
    scaled = op.multiply(v, op.divide(g, length))
    return scaled if "interface" not in str(context.node.target) else [scaled, length]


@converter("aten._trilinear.default")
def trilinear(
    context: Context,
    i1: Expr,
    i2: Expr,
    i3: Expr,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Expr:
    """The product of three tensors with dimensions inserted, summed over dimensions."""
    factors = []
    for tensor, axes in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for axis in sorted(axes):
            tensor = context.emit(op.expand_dims(tensor, axis))
        factors.append(tensor)
    whole = op.multiply(op.multiply(factors[0], factors[1]), factors[2])
    return op.sum(whole, list(sumdim)) if sumdim else whole
