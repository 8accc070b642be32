"""Pooling over windows, to a given output size (adaptive), and over all elements (global).

Average pooling divides by the window, or by the part of it that lies inside the data; 16-bit floats
are summed in float32.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import sub
from typing import NamedTuple

from weft.ir.expr import Extent, PrimExpr
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.expr import IterVar
from weft.topi import tag
from weft.topi.extents import Extents, Point, Shape, as_sequence, compute_ax, is_const, product
from weft.topi.moments import wide
from weft.topi.nn.convolution import per_axis, window_count
from weft.topi.simplify import simplified


@dataclass(frozen=True)
class _Options:
    """The user's options for windows: one number for all axes, or one for each."""

    kernel: Extents
    stride: Extents
    dilation: Extents
    padding: Extents
    ceil_mode: bool


class _Windows:
    """The geometry of pooling: axes, extents, windows and paddings."""

    def __init__(self, data: Tensor, layout: str, count: int) -> None:
        letters, axes = "DHW"[3 - count :], re.sub(r"\d+", "", layout)
        is_whole = set(letters) <= set(axes) and not set(letters.lower()) & set(axes)
        if len(axes) != data.ndim or not is_whole:
            raise IRValueError(
                f"pool: expected a layout of {data.ndim} letters with {letters}, got {layout!r}"
            )
        self.data = data
        self.axes = [axes.index(letter) for letter in letters]
        self.extents = [data.shape[axis] for axis in self.axes]

    def configure(self, options: _Options) -> None:
        """Set kernel, stride, dilation and padding for each axis, and the shape of the result."""
        count = len(self.axes)
        self.kernel = per_axis(options.kernel, count, "pool: kernel")
        self.stride = per_axis(options.stride, count, "pool: stride")
        self.dilation = per_axis(options.dilation, count, "pool: dilation")
        padding = as_sequence(options.padding)
        if len(padding) not in (1, count, 2 * count):
            raise IRValueError(
                f"pool: expected 1, {count} or {2 * count} paddings, got {len(padding)}"
            )
        padding = padding * count if len(padding) == 1 else padding
        self.before, self.after = padding[:count], padding[-count:]
        self.extra = [s - 1 if options.ceil_mode else 0 for s in self.stride]
        self.reduce_axes = [reduce_axis((0, k), name=f"rv{i}") for i, k in enumerate(self.kernel)]
        self.shape: list[Extent] = list(self.data.shape)
        for i, axis in enumerate(self.axes):
            window = (self.kernel[i] - 1) * self.dilation[i] + 1
            sizes = self.extents[i] + self.before[i] + self.after[i], window, self.stride[i]
            self.shape[axis] = window_count(sizes, f"pool: axis {axis}", self.extra[i])
            self.extra[i] = _extra(sizes, self.shape[axis], self.extra[i])

    def padded(self, value: PrimExpr) -> Tensor:
        """The data padded with ``value``; the data itself if there is no padding."""
        lows: list[Extent] = [0] * self.data.ndim
        highs: list[Extent] = [0] * self.data.ndim
        for i, axis in enumerate(self.axes):
            lows[axis], highs[axis] = self.before[i], self.after[i] + self.extra[i]
        if not [1 for amount in (*lows, *highs) if not is_const(amount, 0)]:
            return self.data
        around = zip(self.data.shape, lows, highs, strict=True)
        shape = [simplified(extent + low + high) for extent, low, high in around]

        def element(*indices: PrimExpr) -> PrimExpr:
            inside = []
            for index, extent, low, high in zip(indices, self.data.shape, lows, highs, strict=True):
                if not is_const(low, 0):
                    inside.append(op.less_equal(low, index))
                if not is_const(high, 0):
                    inside.append(op.less(index, simplified(extent + low)))
            source = [op.subtract(index, low) for index, low in zip(indices, lows, strict=True)]
            return op.if_then_else(op.all(*inside), self.data(*source), value)

        return compute_ax(shape, element, "pad_temp", tag=tag.INJECTIVE)

    def nearest(self) -> Callable[[Point], list[PrimExpr]] | None:
        """Where to read what the padding of a maximum holds, if no padded copy is needed.

        If an image is of symbolic size, ``source`` may also be moved to the nearest element of the
        data: that is one of the window, too, where its elements are neighbours and it reaches over
        the data on every side. None if that is not so, or an axis of the windows is contiguous:
        vectors of moved elements would be no run of memory.
        """
        if self.axes[-1] == self.data.ndim - 1 or all(map(is_const, self.extents)):
            return None
        for i, window in enumerate(self.kernel):
            before, after = self.before[i], simplified(self.after[i] + self.extra[i])
            if not is_const(self.dilation[i], 1):
                return None
            if not all(is_const(size) and 0 <= int(size) < window for size in (before, after)):
                return None
        return self._moved_inside

    def _moved_inside(self, indices: Point) -> list[PrimExpr]:
        """The indices into the data itself of the element that is nearest to the ``source``."""
        point = self.source(indices)
        for i, axis in enumerate(self.axes):
            if not is_const(self.before[i], 0):
                point[axis] = op.maximum(point[axis] - self.before[i], 0)
            if not is_const(simplified(self.after[i] + self.extra[i]), 0):
                point[axis] = op.minimum(point[axis], self.extents[i] - 1)
        return point

    def source(self, indices: Point) -> list[PrimExpr]:
        """The indices into the padded data that the reduction reads for an output element."""
        point = list(indices)
        for i, axis in enumerate(self.axes):
            moved = self.reduce_axes[i].var * self.dilation[i]
            point[axis] = indices[axis] * self.stride[i] + moved
        return point

    def count_inside(self, indices: Point) -> PrimExpr:
        """How many elements of a window lie inside the data; at least 1."""
        total: PrimExpr = op.const(1, "int32")
        for i, axis in enumerate(self.axes):
            width = self.dilation[i]
            start = indices[axis] * self.stride[i] - self.before[i]
            last = op.minimum(start + (self.kernel[i] - 1) * width, self.extents[i] - 1)
            jumps = op.floordiv(width - 1 - start, width)
            skipped = op.maximum(jumps, op.const(0, start.dtype)) * width
            total = total * (op.floordiv(last - (start + skipped), width) + 1)
        return op.maximum(total, op.const(1, total.dtype))

    def count_padded(self, indices: Point) -> PrimExpr:
        """As ``count_inside``, with the padding, but without what ``ceil_mode`` adds."""
        total: PrimExpr = op.const(1, "int32")
        for i, axis in enumerate(self.axes):
            start, width = indices[axis] * self.stride[i], self.dilation[i]
            stop = self.extents[i] + self.before[i] + self.after[i]
            reach = op.minimum(start + (self.kernel[i] - 1) * width + 1, stop) - start
            total = total * (reach if width == 1 else op.floordiv(reach - 1, width) + 1)
        return op.maximum(total, op.const(1, total.dtype))


def _extra(sizes: tuple[Extent, Extent, Extent], count: Extent, most: Extent) -> Extent:
    """How many elements after the padded ones the last window reads; ``most`` if not known."""
    padded, window, stride = sizes
    needed = simplified((count - 1) * stride + window - padded)
    return max(int(needed), 0) if is_const(needed) else most


def _pool(windows: _Windows, pool_type: str, ceil_mode: bool, count_include_pad: bool) -> Tensor:
    data = windows.data
    if pool_type == "max":
        inside = windows.nearest()
        source = inside or windows.source
        read = data if inside else windows.padded(te_reduction.lowest(data.dtype))
        return compute_ax(
            windows.shape,
            lambda *i: te_reduction.max(read(*source(i)), axis=windows.reduce_axes),
            "pool_max",
            tag="pool_max",
            attrs={"schedule_rule": "meta_schedule.pool_max"},
        )
    if pool_type != "avg":
        raise IRValueError(f"pool: expected the type 'max' or 'avg', got {pool_type!r}")
    padded, kind = windows.padded(op.const(0, data.dtype)), wide(data.dtype)
    total = compute_ax(
        windows.shape,
        lambda *i: te_reduction.sum(
            op.cast(kind, padded(*windows.source(i))), axis=windows.reduce_axes
        ),
        "pool_sum",
        tag="pool_sum",
    )

    def average(*indices: PrimExpr) -> PrimExpr:
        if count_include_pad and not ceil_mode:
            divisor = op.cast("int32", product(windows.kernel))
        elif count_include_pad:
            divisor = windows.count_padded(indices)
        else:
            divisor = windows.count_inside(indices)
        return op.cast(data.dtype, op.div(total(*indices), op.cast(kind, divisor)))

    return compute_ax(windows.shape, average, "pool_avg", tag=tag.ELEMWISE)


def _pool_nd(
    data: Tensor,
    count: int,
    options: _Options,
    pool_type: str,
    layout: str,
    count_include_pad: bool,
) -> Tensor:
    windows = _Windows(data, layout, count)
    windows.configure(options)
    return _pool(windows, pool_type, options.ceil_mode, count_include_pad)


def pool1d(
    data: Tensor,
    kernel: Extents,
    stride: Extents,
    dilation: Extents,
    padding: Extents,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCW",
    count_include_pad: bool = True,
) -> Tensor:
    """Pooling over one axis; padding is one number or (left, right)."""
    options = _Options(kernel, stride, dilation, padding, ceil_mode)
    return _pool_nd(data, 1, options, pool_type, layout, count_include_pad)


def pool2d(
    data: Tensor,
    kernel: Extents,
    stride: Extents,
    dilation: Extents,
    padding: Extents,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> Tensor:
    """Pooling over two axes; padding is (top, left, bottom, right), or fewer numbers."""
    options = _Options(kernel, stride, dilation, padding, ceil_mode)
    return _pool_nd(data, 2, options, pool_type, layout, count_include_pad)


def pool3d(
    data: Tensor,
    kernel: Extents,
    stride: Extents,
    dilation: Extents,
    padding: Extents,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCDHW",
    count_include_pad: bool = True,
) -> Tensor:
    """Pooling over three axes; padding has the amounts before all axes, then those after."""
    options = _Options(kernel, stride, dilation, padding, ceil_mode)
    return _pool_nd(data, 3, options, pool_type, layout, count_include_pad)


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """Pooling over all of the spatial axes, which become extent 1."""
    count = len([letter for letter in layout if letter in "DHW"])
    return adaptive_pool_nd(data, [1] * count, pool_type, layout)


def adaptive_pool(
    data: Tensor, output_size: Extents, pool_type: str, layout: str = "NCHW"
) -> Tensor:
    """Pooling over two axes to ``output_size`` (one number or two)."""
    return adaptive_pool_nd(data, per_axis(output_size, 2, "adaptive_pool"), pool_type, layout)


def adaptive_pool1d(
    data: Tensor, output_size: Extents, pool_type: str, layout: str = "NCW"
) -> Tensor:
    """Pooling over one axis to ``output_size``."""
    return adaptive_pool_nd(data, per_axis(output_size, 1, "adaptive_pool"), pool_type, layout)


def adaptive_pool3d(
    data: Tensor, output_size: Extents, pool_type: str, layout: str = "NCDHW"
) -> Tensor:
    """Pooling over three axes to ``output_size`` (one number or three)."""
    return adaptive_pool_nd(data, per_axis(output_size, 3, "adaptive_pool"), pool_type, layout)


def _even(extent: Extent, size: Extent) -> int | None:
    """The size of all windows if the sizes divide; None if windows differ."""
    if is_const(extent) and is_const(size) and int(size) and int(extent) % int(size) == 0:
        return int(extent) // int(size)
    return None


def adaptive_window(index: PrimExpr, extent: PrimExpr, size: Extent) -> tuple[PrimExpr, PrimExpr]:
    """Begin and length of an output element's window along one axis."""
    even = _even(extent, size)
    if even is not None:
        return index * even, op.const(even, index.dtype)
    if is_const(size, 1):
        return op.const(0, index.dtype), extent
    begin = op.floordiv(index * extent, size)
    end = op.floordiv((index + 1) * extent, size)
    partial = op.equal(op.floormod((index + 1) * extent, size), 0)
    return begin, op.subtract(op.select(partial, end, end + 1), begin)


def adaptive_pool_nd(data: Tensor, output_size: Shape, pool_type: str, layout: str) -> Tensor:
    """Adaptive pooling over the spatial axes of ``layout``.

    Windows of several sizes are reduced along one axis after the other. Then the first reduction,
    which reads most, adds whole rows, and its windows overlap in fewer elements.
    """
    if pool_type not in ("max", "avg"):
        raise IRValueError(f"adaptive_pool: expected the type 'max' or 'avg', got {pool_type!r}")
    windows = _Windows(data, layout, len(output_size))
    along = [
        _Adaptive(
            axis,
            extent,
            op.const(size, windows.data.shape[axis].dtype) if isinstance(size, int) else size,
        )
        for axis, extent, size in zip(windows.axes, windows.extents, output_size, strict=True)
    ]
    is_even = all(item.is_even for item in along)
    stages = [along] if is_even else [[item] for item in along]
    attrs = {"schedule_rule": f"meta_schedule.adaptive_pool_{pool_type}"}
    kind = wide(data.dtype)
    if pool_type == "max":
        for stage in stages:
            data = _adaptive_stage(data, stage, "adaptive_pool_max", te_reduction.max, attrs)
        return data

    def summed(value: PrimExpr, axis: Sequence[IterVar]) -> PrimExpr:
        return te_reduction.sum(op.cast(kind, value), axis=axis)

    total = data
    for stage in stages:
        total = _adaptive_stage(total, stage, "adaptive_pool_sum", summed)

    def average(*indices: PrimExpr) -> PrimExpr:
        count = product([item.window(indices)[1] for item in along])
        return op.cast(data.dtype, op.div(total(*indices), op.cast(kind, count)))

    return compute_ax(total.shape, average, "adaptive_pool_avg", tag.ELEMWISE, attrs)


class _Adaptive(NamedTuple):
    """Adaptive pooling along one axis, from ``extent`` to ``size`` elements."""

    axis: int
    extent: PrimExpr
    size: PrimExpr

    @property
    def is_even(self) -> bool:
        """Whether all windows have one size."""
        return is_const(self.size, 1) or _even(self.extent, self.size) is not None

    @property
    def longest(self) -> PrimExpr:
        """The length of the longest window, or one more."""
        extent, size, dtype = self.extent, self.size, self.extent.dtype
        if not (is_const(extent) and is_const(size)):
            return op.floordiv(extent + size - 1, size) + 1
        ends = [-(-(i + 1) * int(extent) // int(size)) for i in range(int(size))]
        begins = [i * int(extent) // int(size) for i in range(int(size))]
        return op.const(max(map(sub, ends, begins), default=0), dtype)

    def window(self, indices: Point) -> tuple[PrimExpr, PrimExpr]:
        """Begin and length of the window of a result."""
        return adaptive_window(indices[self.axis], self.extent, self.size)


def _adaptive_stage(
    data: Tensor,
    along: Sequence[_Adaptive],
    name: str,
    reduction: Callable[..., PrimExpr],
    attrs: Mapping[str, object] | None = None,
) -> Tensor:
    """Reduce the windows along some axes at once.

    Windows of several sizes have the steps of the longest one, some of which do nothing. So their
    number does not depend on the result, as schedules want it.
    """
    shape = list(data.shape)
    for item in along:
        shape[item.axis] = item.size
    neutral = (
        te_reduction.lowest(data.dtype)
        if reduction is te_reduction.max
        else op.const(0, data.dtype)
    )

    def reduced(*indices: PrimExpr) -> PrimExpr:
        source, axes, inside = list(indices), [], []
        for i, item in enumerate(along):
            begin, length = item.window(indices)
            axes.append(reduce_axis((0, length if item.is_even else item.longest), name=f"rv{i}"))
            source[item.axis] = begin + axes[-1].var
            if not item.is_even:
                inside.append(op.less(axes[-1].var, length))
        value: PrimExpr = data(*source)
        for test in inside:
            value = op.if_then_else(test, value, neutral)
        return reduction(value, axis=axes)

    return compute_ax(shape, reduced, name, name, attrs)
