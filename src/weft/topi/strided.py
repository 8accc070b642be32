"""Windows, diagonals and other strided views, as computed tensors.

All except ``col2im`` are injective: a kernel that uses one reads the source directly.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent, PrimExpr, as_prim_expr
from weft.te import reduction as te_reduction
from weft.te.operation import reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import Shape, compute_ax, unravel_index
from weft.topi.moments import wide
from weft.topi.simplify import simplified


def as_strided(data: Tensor, shape: Shape, strides: Shape, offset: Extent) -> Tensor:
    """Element ``i`` of the result is element ``offset + sum(i * strides)`` of the flattened data.

    >>> from weft import te
    >>> x = te.placeholder((6,), name="x")
    >>> [int(extent) for extent in as_strided(x, [4, 3], [1, 1], 0).shape]
    [4, 3]
    """

    def element(*point: PrimExpr) -> PrimExpr:
        place: PrimExpr = op.const(offset, "int64") if isinstance(offset, int) else offset
        for index, stride in zip(point, strides, strict=True):
            place = place + op.cast("int64", index) * stride
        return data(*unravel_index(place, data.shape))

    return compute_ax(list(shape), element, "T_as_strided", tag=tag.INJECTIVE)


def window_count(extent: Extent, size: int, step: int) -> PrimExpr:
    """How many windows of ``size`` elements, one every ``step``, fit into an extent."""
    return op.floordiv(extent - size, op.const(step, "int64")) + 1


def window_counts(
    space: Shape,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[PrimExpr]:
    """How many windows fit along each spatial axis with its padding (before each, after each)."""
    rank = len(kernel)
    padded = [
        as_prim_expr(extent) + padding[i] + padding[rank + i] for i, extent in enumerate(space)
    ]
    reaches = [spread * (size - 1) + 1 for size, spread in zip(kernel, dilation, strict=True)]
    return [simplified(window_count(*sizes)) for sizes in zip(padded, reaches, stride, strict=True)]


def unfold(data: Tensor, axis: int, size: int, step: int) -> Tensor:
    """Windows of ``size`` elements along an axis, which become the last axis."""
    axis %= data.ndim
    count = simplified(window_count(data.shape[axis], size, step))
    shape: list[Extent] = [*data.shape[:axis], count, *data.shape[axis + 1 :], size]

    def element(*point: PrimExpr) -> PrimExpr:
        source = point[axis] * step + point[-1]
        return data(*point[:axis], source, *point[axis + 1 : -1])

    return compute_ax(shape, element, "T_unfold", tag=tag.INJECTIVE)


def diagonal_length(rows: Extent, columns: Extent, offset: int) -> PrimExpr:
    """How many elements a diagonal has; 0 if it is outside of the matrix."""
    length = op.minimum(rows - max(-offset, 0), columns - max(offset, 0))
    return op.maximum(length, op.const(0, "int64")) if offset else length


def diagonal(data: Tensor, offset: int, axis1: int, axis2: int) -> Tensor:
    """The diagonal of two axes as a new last axis; a positive offset is above the diagonal."""
    first, second = axis1 % data.ndim, axis2 % data.ndim
    rest = [axis for axis in range(data.ndim) if axis not in (first, second)]
    count = simplified(diagonal_length(data.shape[first], data.shape[second], offset))
    shape = [*(data.shape[axis] for axis in rest), count]

    def element(*point: PrimExpr) -> PrimExpr:
        source: list[PrimExpr | None] = [None] * data.ndim
        for axis, index in zip(rest, point, strict=False):
            source[axis] = index
        source[first] = point[-1] + max(-offset, 0)
        source[second] = point[-1] + max(offset, 0)
        return data(*source)

    return compute_ax(shape, element, "T_diagonal", tag=tag.INJECTIVE)


def diagonal_scatter(data: Tensor, values: Tensor, offset: int, axis1: int, axis2: int) -> Tensor:
    """The data with ``values``, of the shape of ``diagonal``, on a diagonal of two axes."""
    first, second = axis1 % data.ndim, axis2 % data.ndim
    rest = [axis for axis in range(data.ndim) if axis not in (first, second)]

    def element(*point: PrimExpr) -> PrimExpr:
        row, column = point[first], point[second]
        index = row - max(-offset, 0)
        on_it = op.all(op.equal(column - row, offset), op.less_equal(0, index))
        value = values(*(point[axis] for axis in rest), index)
        return op.if_then_else(on_it, value, data(*point))

    return compute_ax(list(data.shape), element, "T_diagonal_scatter", tag=tag.INJECTIVE)


def im2col(
    data: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Windows of images: (batch, channels, kernel ..., windows ...) of (batch, channels, ...).

    Options have a number for each spatial axis (``padding``: before each, then after each); outside
    of the image are zeros.
    """
    count = len(kernel)
    counts = window_counts(data.shape[2:], kernel, stride, padding, dilation)
    shape: list[Extent] = [*data.shape[:2], *kernel, *counts]

    def element(*point: PrimExpr) -> PrimExpr:
        inner, outer = point[2 : 2 + count], point[2 + count :]
        source = [outer[i] * stride[i] + inner[i] * dilation[i] - padding[i] for i in range(count)]
        inside = [
            op.all(op.less_equal(0, place), op.less(place, extent))
            for place, extent in zip(source, data.shape[2:], strict=True)
        ]
        value = data(*point[:2], *source)
        return op.if_then_else(op.all(*inside), value, op.const(0, data.dtype))

    return compute_ax(shape, element, "T_im2col", tag=tag.INJECTIVE)


def col2im(
    columns: Tensor,
    size: Shape,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """Images of ``size`` from windows as ``im2col`` returns them; overlapping elements are added.

    ``columns`` is (batch, channels, kernel ..., windows ...).
    """
    count, kind = len(size), wide(columns.dtype)
    kernel = columns.shape[2 : 2 + count]
    shape = [*columns.shape[:2], *size]
    axes = [reduce_axis((0, extent), name=f"k{i}") for i, extent in enumerate(kernel)]

    def element(*point: PrimExpr) -> PrimExpr:
        shifted = [point[2 + i] + padding[i] - axes[i].var * dilation[i] for i in range(count)]
        windows = [op.floordiv(place, step) for place, step in zip(shifted, stride, strict=True)]
        hits = [
            op.all(
                op.equal(op.floormod(place, step), 0),
                op.less_equal(0, place),
                op.less(window, extent),
            )
            for place, step, window, extent in zip(
                shifted, stride, windows, columns.shape[2 + count :], strict=True
            )
        ]
        value = op.cast(kind, columns(*point[:2], *(axis.var for axis in axes), *windows))
        term = op.if_then_else(op.all(*hits), value, op.const(0, kind))
        return te_reduction.sum(term, axis=axes)

    total = compute_ax(shape, element, "col2im_sum", tag=tag.COMM_REDUCE)
    if kind == columns.dtype:
        return total
    return compute_ax(shape, lambda *i: op.cast(columns.dtype, total(*i)), "col2im")
