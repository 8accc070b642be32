"""Windows of images: im2col and its inverse, unpooling, and the gradients of pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.convolution import Size, batched, each
from weft.relax.frontend.torch.operators.scattering import written
from weft.relax.frontend.torch.registry import converter
from weft.support.errors import UnsupportedError


def window_counts(extents: Sequence[Extent], geometry: Sequence[Sequence[int]]) -> list[Extent]:
    """How many windows fit along each axis; ``geometry`` is (kernel, dilation, padding, stride)."""
    return [
        (extent + 2 * around - dilation * (kernel - 1) - 1) // step + 1
        for extent, kernel, dilation, around, step in zip(extents, *geometry, strict=True)
    ]


@converter("aten.im2col.default")
def im2col(
    context: Context, self: Expr, kernel_size: Size, dilation: Size, padding: Size, stride: Size
) -> Expr:
    """The windows of an image as columns."""
    kernel, spread, around, steps = [
        each(part, 2) for part in (kernel_size, dilation, padding, stride)
    ]
    windows = op.nn.im2col(batched(context, self, 2), kernel, steps, around, spread)
    return op.reshape(context.emit(windows), context.shape)


@converter("aten.col2im.default")
def col2im(
    context: Context,
    self: Expr,
    output_size: Sequence[Extent],
    kernel_size: Size,
    dilation: Size,
    padding: Size,
    stride: Size,
) -> Expr:
    """Columns added up into an image."""
    geometry = [each(part, 2) for part in (kernel_size, dilation, padding, stride)]
    kernel, spread, around, steps = geometry
    channels = context.shape[-3]
    batch = context.shape[0] if len(context.shape) == 4 else 1
    counts = window_counts(output_size, geometry)
    windows = context.emit(op.reshape(self, [batch, channels, *kernel, *counts]))
    image = op.nn.col2im(windows, list(output_size), steps, around, spread)
    return op.reshape(context.emit(image), context.shape)


@converter("aten.max_unpool2d.default", "aten.max_unpool3d.default")
def max_unpool(
    context: Context, self: Expr, indices: Expr, output_size: Sequence[Extent], *_: object
) -> Expr:
    """Zeros, with elements at their flat places in the space of each channel."""
    return _at_places(context, self, indices, len(output_size), "update")


def _at_places(context: Context, values: Expr, places: Expr, rank: int, reduction: str) -> Expr:
    shape = context.shape
    space: Extent = 1
    for extent in shape[-rank:]:
        space = space * extent
    rows: Extent = 1
    for extent in shape[:-rank]:
        rows = rows * extent
    start = context.emit(op.zeros([rows, space], context.dtype))
    where, flat = [context.emit(op.reshape(item, [rows, -1])) for item in (places, values)]
    return op.reshape(written(start, where, flat, 1, reduction), shape)


# Gradients


@converter(
    "aten.max_pool2d_with_indices_backward.default",
    "aten.max_pool3d_with_indices_backward.default",
)  # fmt: skip
def max_pool_backward(
    context: Context,
    grad_output: Expr,
    self: Expr,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    indices: Expr,
) -> Expr:
    """The gradient goes to the place that was the largest of its window."""
    rank = 3 if "max_pool3d" in str(context.node.target) else 2
    return _at_places(context, grad_output, indices, rank, "add")


@converter(
    "aten.adaptive_max_pool2d_backward.default", "aten.adaptive_max_pool3d_backward.default",
)  # fmt: skip
def adaptive_max_pool_backward(
    context: Context, grad_output: Expr, self: Expr, indices: Expr
) -> Expr:
    """The gradient goes to the place that was the largest of its window."""
    rank = 3 if "pool3d" in str(context.node.target) else 2
    return _at_places(context, grad_output, indices, rank, "add")


@converter("aten.avg_pool2d_backward.default", "aten.avg_pool3d_backward.default")
def avg_pool_backward(
    context: Context,
    grad_output: Expr,
    self: Expr,
    kernel_size: Size,
    stride: Size,
    padding: Size,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Expr:
    """Each window's gradient over its count, added up where windows overlap."""
    rank = 3 if "pool3d" in str(context.node.target) else 2
    kernel = each(kernel_size, rank)
    steps, around = each(stride, rank) if stride else kernel, each(padding, rank)
    grad, data = batched(context, grad_output, rank), batched(context, self, rank)
    extents, counts = _constants(context, context.dims(data)[2:], context.dims(grad)[2:])
    axes = [
        _counted(*sizes, count_include_pad)
        for sizes in zip(extents, counts, kernel, steps, around, strict=True)
    ]
    divisors = _outer(axes) if divisor_override is None else np.array(float(divisor_override))
    shares = context.emit(op.divide(grad, const(divisors.astype(context.dtype))))
    whole = [*context.dims(grad)[:2], *kernel, *counts]
    apart = op.reshape(shares, [*context.dims(grad)[:2], *[1] * rank, *counts])
    windows = context.emit(op.broadcast_to(apart, whole))
    image = op.nn.col2im(windows, list(extents), steps, around, [1] * rank)
    return op.reshape(context.emit(image), context.shape)


def _counted(
    extent: int, count: int, kernel: int, step: int, around: int, include: bool
) -> np.ndarray:
    """How many elements each window along an axis counts."""
    begin = np.arange(count) * step - around
    end = np.minimum(begin + kernel, extent + around)
    if include:
        return end - begin
    return np.minimum(end, extent) - np.maximum(begin, 0)


def _outer(axes: Sequence[np.ndarray]) -> np.ndarray:
    """The products of a number of each axis."""
    table = np.ones(())
    for axis in axes:
        table = table[..., None] * axis
    return table


def _constants(context: Context, *shapes: Sequence[Extent]) -> list[list[int]]:
    """Shapes of which every extent has to be known."""
    numbers = [[extent for extent in shape if isinstance(extent, int)] for shape in shapes]
    if [*map(len, numbers)] != [*map(len, shapes)]:
        raise UnsupportedError(
            f"{context.node.target}: the gradient needs constant extents, got {shapes[0]}"
        )
    return numbers


@converter(
    "aten._adaptive_avg_pool2d_backward.default", "aten._adaptive_avg_pool3d_backward.default",
)  # fmt: skip
def adaptive_avg_pool_backward(context: Context, grad_output: Expr, self: Expr) -> Expr:
    """The gradient through the matrix of each axis' averages."""
    rank = 3 if "pool3d" in str(context.node.target) else 2
    extents, counts = _constants(context, context.shape[-rank:], context.dims(grad_output)[-rank:])
    gradient, last = grad_output, len(context.shape) - 1
    for number in range(rank):
        axis = last + 1 - rank + number
        order = list(range(last + 1))
        order[axis], order[last] = last, axis
        weights = const(_averages(extents[number], counts[number]).astype(context.dtype))
        moved = context.emit(op.permute_dims(gradient, order))
        spread = context.emit(op.matmul(moved, weights))
        gradient = context.emit(op.permute_dims(spread, order))
    return gradient


def _averages(extent: int, count: int) -> np.ndarray:
    """Row by row what each adaptive window averages."""
    weights = np.zeros((count, extent))
    for row in range(count):
        begin, end = row * extent // count, -(-(row + 1) * extent // count)
        weights[row, begin:end] = 1 / (end - begin)
    return weights
