"""Pools: MaxPool with indices, AveragePool, LpPool, their global forms, MaxUnpool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.convolution import padded
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Dim, Value, as_prim
from weft.relax.frontend.onnx.windows import LAYOUTS, Windows, windows_of
from weft.relax.ir.shape_arith import product, same_dim, simplified
from weft.support.dtype import DataType
from weft.tir import op as tir

MAX: Final = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}
AVERAGE: Final = {1: op.nn.avg_pool1d, 2: op.nn.avg_pool2d, 3: op.nn.avg_pool3d}


@converter("MaxPool")
def max_pool(
    context: Context,
    x: Value,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    storage_order: int = 0,
) -> Expr | list[Expr]:
    """The largest element of each window, and (where asked for) its index in the flat tensor."""
    windows = windows_of(context, x, kernel_shape, strides, dilations, pads, auto_pad)
    check_rows(context, x, windows, bool(ceil_mode))
    if not context.wants(1):
        return _pooled(context, x, windows, (MAX, bool(ceil_mode), False))
    return _with_indices(context, x, windows, bool(ceil_mode), bool(storage_order))


@converter("AveragePool")
def average_pool(
    context: Context,
    x: Value,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
) -> Expr:
    """The mean of each window; padding counts if asked for, what ceil_mode adds never does."""
    windows = windows_of(context, x, kernel_shape, strides, dilations, pads, auto_pad)
    check_rows(context, x, windows, bool(ceil_mode))
    return _pooled(context, x, windows, (AVERAGE, bool(ceil_mode), bool(count_include_pad)))


def check_rows(context: Context, x: Value, windows: Windows, ceil_mode: bool) -> None:
    """Raise OnnxNodeError where ONNX's rounding leaves no window along an axis that has elements.

    Relax's operators say the same of extents that only the run tells, without ONNX's names.
    """
    for axis, size in enumerate(context.shape(x, "X")[2:]):
        count = _window_count(windows, axis, size, ceil_mode)
        if not isinstance(size, int) or size == 0 or not isinstance(count, int) or count > 0:
            continue
        padded = size + context.number(windows.before[axis] + windows.after[axis], x, "X")
        reach = (windows.kernel[axis] - 1) * windows.dilations[axis] + 1
        has_part = reach - padded < windows.strides[axis]
        advice = ", or set ceil_mode=1 for one from them" if has_part else ""
        context.fail(
            f"axis {axis + 2}: expected at least the {reach} elements that a window reaches over, "
            f"found {padded} with the padding, of which ONNX makes no window (ONNX Runtime may "
            f"make one of what is there); give it larger data, pad it{advice}"
        )


def _pooled(
    context: Context,
    x: Value,
    windows: Windows,
    options: tuple[Mapping[int, Callable[..., Expr]], bool, bool],
) -> Expr:
    table, ceil_mode, count_padding = options
    rank = windows.rank
    if not all(isinstance(size, int) for size in windows.padding):
        return _pooled_apart(context, x, windows, options)
    pooled = context.emit(
        table[rank](
            x.expr,
            windows.kernel,
            windows.strides,
            windows.padding,
            windows.dilations,
            ceil_mode,
            count_padding,
            LAYOUTS[rank][0],
        )
    )
    if not ceil_mode:
        return pooled
    sizes = context.shape(x, "X")[2:]
    counts = (context.value(pooled).shape or [])[2:]
    wanted = [_window_count(windows, axis, size, True) for axis, size in enumerate(sizes)]
    cut = [axis for axis, count in enumerate(wanted) if not same_dim(count, counts[axis])]
    if not cut:
        return pooled
    ends = [wanted[axis] for axis in cut]
    axes = [axis + 2 for axis in cut]
    return context.emit(op.strided_slice(pooled, axes, [0] * len(cut), ends))


def _pooled_apart(
    context: Context,
    x: Value,
    windows: Windows,
    options: tuple[Mapping[int, Callable[..., Expr]], bool, bool],
) -> Expr:
    """With padding of symbolic size, which is written: as SAME_UPPER has it, so no part is left."""
    table, _, count_padding = options
    emit, rank = context.emit, windows.rank

    def pooled(data: Expr, value: float) -> Expr:
        around = padded(context, data, (windows.before, windows.after), value)
        return emit(
            table[rank](
                around,
                windows.kernel,
                windows.strides,
                0,
                windows.dilations,
                False,
                True,
                LAYOUTS[rank][0],
            )
        )

    if table is MAX:
        return pooled(x.expr, _lowest(x.dtype))
    mean = pooled(x.expr, 0.0)
    if count_padding:
        return mean
    ones = emit(op.ones([1, 1, *context.shape(x, "X")[2:]], x.dtype))
    return emit(op.divide(mean, pooled(ones, 0.0)))


def _lowest(dtype: str) -> float:
    """What no element is below."""
    kind = DataType(dtype)
    return float("-inf") if kind.is_float else float(np.iinfo(dtype).min)


def _window_count(windows: Windows, axis: int, size: Dim, ceil: bool) -> Dim:
    """How many windows there are; with ceil one more, if it starts before the padding's end."""
    before, stride = windows.before[axis], windows.strides[axis]
    reach = (windows.kernel[axis] - 1) * windows.dilations[axis] + 1
    free = size + before + windows.after[axis] - reach
    if not ceil:
        return free // stride + 1
    if isinstance(size, int):
        return min(-(-free // stride) + 1, -(-(size + before) // stride))
    whole = tir.floordiv(free + (stride - 1), stride) + 1
    after = windows.after[axis]
    if isinstance(after, int) and after + stride <= reach:  # no window starts in the padding
        return simplified(whole)
    return simplified(tir.min(whole, tir.floordiv(size + before + (stride - 1), stride)))


def _with_indices(
    context: Context, x: Value, windows: Windows, ceil_mode: bool, column_major: bool
) -> list[Expr]:
    """The largest elements, and their indices in the flat tensor."""
    emit, rank = context.emit, windows.rank
    batch, channels, *space = context.shape(x, "X")
    counts = [
        _window_count(windows, axis, context.number(size, x, "X"), ceil_mode)
        for axis, size in enumerate(space)
    ]
    more = [step - 1 if ceil_mode else 0 for step in windows.strides]
    after = [width + rest for width, rest in zip(windows.after, more, strict=True)]
    padding = [context.number(size, x, "X") for size in (*windows.before, *after)]
    places = emit(
        op.nn.max_pool_indices(x.expr, windows.kernel, windows.strides, padding, windows.dilations)
    )
    places = emit(op.strided_slice(places, list(range(2, 2 + rank)), [0] * rank, counts))
    flat = [emit(op.reshape(item, [batch, channels, -1])) for item in (x.expr, places)]
    values = emit(op.reshape(emit(op.gather_elements(*flat, 2)), [batch, channels, *counts]))
    if column_major:
        parts = coordinates(context, places, space)
        places = flat_place(context, parts[::-1], space[::-1])
    planes = emit(op.arange(as_prim(batch) * as_prim(channels), dtype="int64"))
    planes = emit(op.reshape(planes, [batch, channels, *[1] * rank]))
    start = emit(op.multiply(planes, context.dim_expr(product([as_prim(dim) for dim in space]))))
    return [values, emit(op.add(places, start))]


def coordinates(context: Context, places: Expr, dims: Sequence[Dim]) -> list[Expr]:
    """The index along each axis of flat places in a shape."""
    emit, parts = context.emit, []
    for dim in reversed(dims):
        extent = context.dim_expr(dim)
        parts.append(emit(op.floor_mod(places, extent)))
        places = emit(op.floor_divide(places, extent))
    return parts[::-1]


def flat_place(context: Context, parts: Sequence[Expr], dims: Sequence[Dim]) -> Expr:
    """The flat place in a shape of an index along each axis."""
    place = parts[0]
    for part, dim in zip(parts[1:], dims[1:], strict=True):
        scaled = context.emit(op.multiply(place, context.dim_expr(dim)))
        place = context.emit(op.add(scaled, part))
    return place


@converter("LpPool")
def lp_pool(
    context: Context,
    x: Value,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    p: float = 2,
) -> Expr:
    """The p-norm of each window; padding counts as zeros."""
    windows = windows_of(context, x, kernel_shape, strides, dilations, pads, auto_pad)
    check_rows(context, x, windows, bool(ceil_mode))
    emit, constant = context.emit, context.constant
    sizes = context.shape(x, "X")[2:]
    after = list(windows.after)
    if ceil_mode:
        for axis, size in enumerate(sizes):
            size = context.number(size, x, "X")
            count = _window_count(windows, axis, size, True)
            reach = (windows.kernel[axis] - 1) * windows.dilations[axis] + 1
            need = (count - 1) * windows.strides[axis] + reach
            after[axis] = max(need - size - windows.before[axis], after[axis])
    magnitudes = emit(op.power(emit(op.abs(x.expr)), constant(p, x.dtype).expr))
    data = padded(context, magnitudes, (windows.before, after), 0.0)
    rank = windows.rank
    mean = emit(
        AVERAGE[rank](
            data,
            windows.kernel,
            windows.strides,
            0,
            windows.dilations,
            False,
            True,
            LAYOUTS[rank][0],
        )
    )
    whole = emit(op.multiply(mean, constant(int(np.prod(windows.kernel)), x.dtype).expr))
    return emit(op.power(whole, constant(1 / p, x.dtype).expr))


def _spatial(context: Context, x: Value) -> list[int]:
    return list(range(2, context.rank(x, "X")))


@converter("GlobalAveragePool")
def global_average_pool(context: Context, x: Value) -> Expr:
    """The mean of each channel."""
    return context.emit(op.mean(x.expr, _spatial(context, x), True))


@converter("GlobalMaxPool")
def global_max_pool(context: Context, x: Value) -> Expr:
    """The largest element of each channel."""
    return context.emit(op.max(x.expr, _spatial(context, x), True))


@converter("GlobalLpPool")
def global_lp_pool(context: Context, x: Value, *, p: float = 2) -> Expr:
    """The p-norm of each channel."""
    powers = context.emit(op.power(context.emit(op.abs(x.expr)), context.constant(p, x.dtype).expr))
    whole = context.emit(op.sum(powers, _spatial(context, x), True))
    return context.emit(op.power(whole, context.constant(1 / p, x.dtype).expr))


@converter("MaxUnpool", since=9)
def max_unpool(
    context: Context,
    x: Value,
    indices: Value,
    output_shape: Value | None = None,
    *,
    kernel_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
) -> Expr:
    """Zeros, and the elements where MaxPool took them from."""
    emit = context.emit
    shape = context.shape(x, "X")
    rank = len(kernel_shape)
    steps, around = list(strides or [1] * rank), list(pads or [0] * 2 * rank)
    inferred = [
        (size - 1) * steps[a] + kernel_shape[a] - around[a] - around[rank + a]
        for a, size in enumerate(shape[2:])
    ]
    plain = [*shape[:2], *inferred]
    wanted = plain if output_shape is None else context.sizes(output_shape, "output_shape")
    flat = emit(
        op.full(
            [product([as_prim(dim) for dim in wanted])], context.constant(0, x.dtype).expr, x.dtype
        )
    )
    where = emit(op.reshape(indices.expr, [-1]))
    if wanted != plain:
        where = flat_place(context, coordinates(context, where, plain), wanted)
    values = emit(op.reshape(x.expr, [-1]))
    return emit(op.reshape(emit(op.index_put(flat, [where], values)), wanted))
