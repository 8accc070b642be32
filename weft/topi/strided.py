"""Views that torch makes of strides, as tensors that read their source: windows, diagonals.

Each is injective: a kernel that uses it reads the source directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import compute_ax, unravel_index


def as_strided(data: Tensor, shape: Sequence[Any], strides: Sequence[Any], offset: Any) -> Tensor:
    """Element ``i`` of the result is number ``offset + sum(i * strides)`` of the flat data.

    >>> from weft import te
    >>> x = te.placeholder((6,), name="x")
    >>> [int(extent) for extent in as_strided(x, [4, 3], [1, 1], 0).shape]
    [4, 3]
    """

    def element(*point: Any) -> Any:
        place: Any = op.const(offset, "int64") if isinstance(offset, int) else offset
        for index, stride in zip(point, strides, strict=True):
            place = place + op.cast("int64", index) * stride
        return data(*unravel_index(place, data.shape))

    return compute_ax(list(shape), element, "T_as_strided", tag=tag.INJECTIVE)


def unfold(data: Tensor, axis: int, size: Any, step: Any, count: Any) -> Tensor:
    """``count`` windows of ``size`` elements along an axis, which become the last axis."""
    shape = [*data.shape[:axis], count, *data.shape[axis + 1 :], size]

    def element(*point: Any) -> Any:
        source = point[axis] * step + point[-1]
        return data(*point[:axis], source, *point[axis + 1 : -1])

    return compute_ax(shape, element, "T_unfold", tag=tag.INJECTIVE)


def diagonal(data: Tensor, offset: int, first: int, second: int, count: Any) -> Tensor:
    """The diagonal of two axes, which become one at the end; above it for positive offsets."""
    rest = [axis for axis in range(data.ndim) if axis not in (first, second)]
    shape = [*(data.shape[axis] for axis in rest), count]

    def element(*point: Any) -> Any:
        source: list[Any] = [None] * data.ndim
        for axis, index in zip(rest, point, strict=False):
            source[axis] = index
        source[first] = point[-1] + max(-offset, 0)
        source[second] = point[-1] + max(offset, 0)
        return data(*source)

    return compute_ax(shape, element, "T_diagonal", tag=tag.INJECTIVE)


def diagonal_scatter(
    data: Tensor, values: Tensor, offset: int, first: int, second: int
) -> Tensor:
    """The data with other values on a diagonal of two axes; the values are as ``diagonal``'s."""
    rest = [axis for axis in range(data.ndim) if axis not in (first, second)]

    def element(*point: Any) -> Any:
        row, column = point[first], point[second]
        index = row - max(-offset, 0)
        on_it = op.all(op.equal(column - row, offset), op.less_equal(0, index))
        value = values(*(point[axis] for axis in rest), index)
        return op.if_then_else(on_it, value, data(*point))

    return compute_ax(list(data.shape), element, "T_diagonal_scatter", tag=tag.INJECTIVE)
