"""The index of the largest element of each window, in the flattened space of its channel.

Of equal elements the first is taken, and NaN is larger than any number, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.expr import Extent, PrimExpr, constant_value
from weft.te.operation import reduce_axis
from weft.te.reduction import lowest
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.expr import IterVar
from weft.topi import tag
from weft.topi.extents import Point, Shape, compute_ax, compute_pair
from weft.topi.nn.pooling import adaptive_window
from weft.topi.reduction import arg_reducer
from weft.topi.strided import window_counts

Choice = tuple[PrimExpr, PrimExpr | None]
"""An index along an axis of the data, and the condition that it is inside (None: always)."""


def max_pool_indices(
    data: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """The index (int64) of the largest element of each window.

    ``data`` is (batch, channels, ...); options have a number for each spatial axis (``padding``:
    before each, then after each). For a window of nothing but padding it is the largest int64.

    >>> from weft import te
    >>> x = te.placeholder((1, 3, 8, 8), name="x")
    >>> [int(n) for n in max_pool_indices(x, [4, 4], [2, 2], [0, 0, 0, 0], [1, 1]).shape]
    [1, 3, 3, 3]
    """
    size = window_counts(data.shape[2:], kernel, stride, padding, dilation)
    axes = [reduce_axis((0, extent), name=f"rv{i}") for i, extent in enumerate(kernel)]

    def window(indices: Point) -> list[Choice]:
        choices: list[Choice] = []
        for i, extent in enumerate(data.shape[2:]):
            begin = indices[2 + i] * stride[i] - padding[i]
            point = begin + axes[i].var * dilation[i]
            reach = dilation[i] * (kernel[i] - 1) + 1
            outside = padding[i] or _may_leave(extent, size[i], reach, stride[i])
            inside = op.all(op.less_equal(0, point), op.less(point, extent)) if outside else None
            choices.append((point, inside))
        return choices

    return _places(data, size, axes, window)


def _may_leave(extent: Extent, size: Extent, reach: int, stride: int) -> bool:
    """Whether windows from the first element on may reach past the last."""
    known, windows = constant_value(extent), constant_value(size)
    return known is None or windows is None or (windows - 1) * stride + reach > known


def adaptive_max_pool_indices(data: Tensor, size: Shape) -> Tensor:
    """The index (int64) of the largest element of each of ``size`` adaptive windows."""
    extents = data.shape[2:]
    longest = [_longest(extent, count) for extent, count in zip(extents, size, strict=True)]
    axes = [reduce_axis((0, extent), name=f"rv{i}") for i, extent in enumerate(longest)]

    def window(indices: Point) -> list[Choice]:
        choices: list[Choice] = []
        for i, extent in enumerate(extents):
            begin, length = adaptive_window(indices[2 + i], extent, size[i])
            choices.append((begin + axes[i].var, op.less(axes[i].var, length)))
        return choices

    return _places(data, size, axes, window)


def _longest(extent: Extent, count: Extent) -> Extent:
    """A bound on adaptive windows: ceil((i + 1) e / c) - floor(i e / c) <= ceil(e / c) + 1."""
    whole, parts = constant_value(extent), constant_value(count)
    if whole is not None and parts is not None:
        if parts and whole % parts == 0:
            return whole // parts
        return min(-(-whole // max(parts, 1)) + 1, whole)
    return op.minimum(op.floordiv(extent + count - 1, count) + 1, extent)


def _places(
    data: Tensor, size: Shape, axes: Sequence[IterVar], window: Callable[[Point], list[Choice]]
) -> Tensor:
    shape = [*data.shape[:2], *size]
    reducer = arg_reducer(True, False)

    def element(*indices: PrimExpr) -> tuple[PrimExpr, ...]:
        points = window(indices)
        conditions = [inside for _, inside in points if inside is not None]
        place: PrimExpr = op.const(0, "int64")
        for (point, _), extent in zip(points, data.shape[2:], strict=True):
            place = place * extent + point
        value: PrimExpr = data(*indices[:2], *(point for point, _ in points))
        if conditions:
            inside = op.all(*conditions)
            place = op.if_then_else(inside, place, op.max_value("int64"))
            value = op.if_then_else(inside, value, lowest(data.dtype))
        return reducer((op.cast("int64", place), value), axis=list(axes))

    places, _ = compute_pair(shape, element, "pool_places", tag=tag.COMM_REDUCE_IDX)
    return compute_ax(shape, lambda *i: places(*i), "pool_indices", tag=tag.COMM_REDUCE_IDX)
