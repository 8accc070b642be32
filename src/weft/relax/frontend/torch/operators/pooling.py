"""Pooling over windows and to given sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.convolution import Size, batched, each
from weft.relax.frontend.torch.registry import CONVERTERS

MAX: Final = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}
AVERAGE: Final = {1: op.nn.avg_pool1d, 2: op.nn.avg_pool2d, 3: op.nn.avg_pool3d}
ADAPTIVE: Final = {
    1: op.nn.adaptive_avg_pool1d, 2: op.nn.adaptive_avg_pool2d, 3: op.nn.adaptive_avg_pool3d,
}  # fmt: skip


def fitted(context: Context, tensor: Expr, result: int = 0) -> Expr:
    """Cut and reshaped to what torch deduced: without its batch, and without windows of padding.

    ``ceil_mode`` counts a last window that lies in the padding alone; torch drops it.
    """
    shape = context.results[result][0]
    tensor = context.emit(tensor)
    dims = context.dims(tensor)
    if len(dims) == len(shape) + 1:
        tensor = context.emit(op.squeeze(tensor, [0]))
        dims = dims[1:]
    axes = [i for i, (mine, its) in enumerate(zip(dims, shape, strict=True)) if not same(mine, its)]
    if not axes:
        return tensor
    ends = [shape[axis] for axis in axes]
    return context.emit(op.strided_slice(tensor, axes, [0] * len(axes), ends))


def same(mine: Extent, its: Extent) -> bool:
    """Whether extents are equal numbers; of symbols torch's form is taken to be equal."""
    return not (isinstance(mine, int) and isinstance(its, int)) or mine == its


def _max_pool(rank: int) -> Callable[..., Expr]:
    def max_pool(
        context: Context,
        self: Expr,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
    ) -> Expr:
        kernel = each(kernel_size, rank)
        pooled = MAX[rank](
            batched(context, self, rank),
            pool_size=kernel,
            strides=each(stride, rank) if stride else kernel,
            padding=each(padding, rank),
            dilation=each(dilation, rank),
            ceil_mode=ceil_mode,
        )
        return fitted(context, pooled)

    return max_pool


def _max_pool_with_indices(rank: int) -> Callable[..., list[Expr | None]]:
    def max_pool(
        context: Context,
        self: Expr,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        ceil_mode: bool = False,
    ) -> list[Expr | None]:
        kernel = each(kernel_size, rank)
        steps, around = each(stride, rank) if stride else kernel, each(padding, rank)
        spread, data = each(dilation, rank), batched(context, self, rank)
        if not context.is_read(1):
            pooled = MAX[rank](data, kernel, steps, around, spread, ceil_mode=ceil_mode)
            return [fitted(context, pooled), None]
        sides = both_sides(around, steps, ceil_mode)
        places = context.emit(op.nn.max_pool_indices(data, kernel, steps, sides, spread))
        return _values_at(context, data, _cut(context, places, rank), rank)

    return max_pool


def both_sides(around: list[int], steps: list[int], ceil_mode: bool) -> list[int]:
    """Padding before each axis and after it; ``ceil_mode`` has room for one more window."""
    more = [step - 1 if ceil_mode else 0 for step in steps]
    return [*around, *[width + rest for width, rest in zip(around, more, strict=True)]]


def _cut(context: Context, places: Expr, rank: int) -> Expr:
    """The windows that torch counts: none that is padding alone."""
    size, counts = context.shape[-rank:], context.dims(places)[-rank:]
    axes = [i for i, pair in enumerate(zip(counts, size, strict=True)) if not same(*pair)]
    if not axes:
        return places
    ends = [size[axis] for axis in axes]
    return context.emit(op.strided_slice(places, [2 + i for i in axes], [0] * len(axes), ends))


def _values_at(context: Context, data: Expr, places: Expr, rank: int) -> list[Expr | None]:
    """The elements at flat places of each channel, and the places."""
    flat = [*context.dims(data)[:2], -1]
    values = op.gather_elements(op.reshape(data, flat), op.reshape(places, flat), axis=2)
    return [op.reshape(item, context.shape) for item in (values, places)]


def _average_pool(rank: int) -> Callable[..., Expr]:
    def average_pool(
        context: Context,
        self: Expr,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Expr:
        kernel, around = each(kernel_size, rank), each(padding, rank)
        steps = each(stride, rank) if stride else kernel
        data = batched(context, self, rank)
        if divisor_override is not None:
            divisor = context.operand(divisor_override, context.dtype)
            sides = both_sides(around, steps, ceil_mode)
            windows = context.emit(op.nn.im2col(data, kernel, steps, sides))
            sums = context.emit(op.sum(windows, list(range(2, 2 + rank))))
            return fitted(context, op.divide(sums, divisor))
        pooled = AVERAGE[rank](
            data,
            pool_size=kernel,
            strides=steps,
            padding=around,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad and any(around),
        )
        return fitted(context, pooled)

    return average_pool


def _adaptive_average(rank: int) -> Callable[..., Expr]:
    def adaptive_average(context: Context, self: Expr, output_size: Sequence[Extent]) -> Expr:
        sizes = context.shape[-rank:]
        return fitted(context, ADAPTIVE[rank](batched(context, self, rank), sizes))

    return adaptive_average


def _adaptive_max(rank: int) -> Callable[..., list[Expr | None]]:
    def adaptive_max(
        context: Context, self: Expr, output_size: Sequence[Extent]
    ) -> list[Expr | None]:
        data = batched(context, self, rank)
        places = op.nn.adaptive_max_pool_indices(data, context.shape[-rank:])
        return _values_at(context, data, context.emit(places), rank)

    return adaptive_max


def _register_ranks() -> None:
    for rank in (1, 2, 3):
        CONVERTERS[f"aten.max_pool{rank}d.default"] = _max_pool(rank)
        CONVERTERS[f"aten.avg_pool{rank}d.default"] = _average_pool(rank)
        adaptive = _adaptive_average(rank)
        CONVERTERS[f"aten.adaptive_avg_pool{rank}d.default"] = adaptive
        CONVERTERS[f"aten._adaptive_avg_pool{rank}d.default"] = adaptive
        with_indices = _max_pool_with_indices(rank)
        CONVERTERS[f"aten.max_pool{rank}d_with_indices.default"] = with_indices
        CONVERTERS[f"aten.adaptive_max_pool{rank}d.default"] = _adaptive_max(rank)


_register_ranks()
