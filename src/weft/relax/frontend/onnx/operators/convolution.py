"""Convolutions and transposed convolutions over one to three axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Dim, Value
from weft.relax.frontend.onnx.windows import (
    LAYOUTS,
    by_axis,
    check_auto_pad,
    check_windows,
    windows_of,
)
from weft.relax.op.nn.convolution import CONVOLUTIONS, TRANSPOSED


@converter("Conv")
def conv(
    context: Context,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    kernel_shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    group: int = 1,
) -> Expr:
    """A convolution (ONNX's, which does not turn the kernel round) and a bias."""
    kernel = kernel_of(context, weight, kernel_shape)
    windows = windows_of(context, x, kernel, strides, dilations, pads, auto_pad)
    data, padding = x.expr, windows.padding
    if any(not isinstance(size, int) for size in padding):
        data = padded(context, data, (windows.before, windows.after))
        padding = [0] * len(padding)
    layout, kernel_layout, _ = LAYOUTS[windows.rank]
    # Bytes less their zero points, of ConvInteger and QLinearConv, are summed in int32.
    kind = "int32" if x.dtype == "int16" else None
    image = context.emit(
        CONVOLUTIONS[windows.rank](
            data,
            weight.expr,
            windows.strides,
            padding,
            windows.dilations,
            group,
            layout,
            kernel_layout,
            out_dtype=kind,
        )
    )
    return biased(context, image, bias, windows.rank)


def kernel_of(context: Context, weight: Value, kernel_shape: Sequence[int] | None) -> list[int]:
    """The spatial extents of a kernel, which must be numbers."""
    shape = [context.number(dim, weight, "W") for dim in context.shape(weight, "W")[2:]]
    if kernel_shape and list(kernel_shape) != shape:
        context.fail(f"kernel_shape {list(kernel_shape)} contradicts the weights' {shape}")
    return list(shape)


def biased(context: Context, image: Expr, bias: Value | None, rank: int) -> Expr:
    """With a bias for each channel."""
    if bias is None:
        return image
    count = context.shape(bias, "B")[0]
    return context.emit(op.add(image, context.emit(op.reshape(bias.expr, [1, count, *[1] * rank]))))


def padded(
    context: Context, data: Expr, pads: tuple[Sequence[Dim], Sequence[Dim]], value: float = 0.0
) -> Expr:
    """With padding of the spatial axes, which may be symbolic."""
    return context.emit(op.nn.pad(data, [0] * 4 + by_axis(*pads), "constant", value))


@converter("ConvTranspose")
def conv_transpose(
    context: Context,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    kernel_shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    auto_pad: str = "NOTSET",
    group: int = 1,
) -> Expr:
    """The gradient of a convolution; pads take away of the result."""
    kernel = kernel_of(context, weight, kernel_shape)
    rank = len(kernel)
    steps, spread = list(strides or [1] * rank), list(dilations or [1] * rank)
    extra = list(output_padding or [0] * rank)
    before, after = list((pads or [0] * 2 * rank)[:rank]), list((pads or [0] * 2 * rank)[rank:])
    check_windows(context, rank, steps, spread, [*before, *after])
    check_auto_pad(context, auto_pad)
    spatial = context.shape(x, "X")[2:]
    if output_shape or auto_pad.startswith("SAME"):
        same = [size * step for size, step in zip(spatial, steps, strict=True)]
        target = list(output_shape or same)[-rank:]
        for axis, size in enumerate(spatial):
            reach = (kernel[axis] - 1) * spread[axis] + 1
            whole = (size - 1) * steps[axis] + extra[axis] + reach - target[axis]
            whole = context.number(whole, x, "X")
            small = max(whole, 0) // 2
            large = max(whole, 0) - small
            extra[axis] += max(-whole, 0)
            upper = auto_pad == "SAME_UPPER"
            before[axis], after[axis] = (small, large) if upper else (large, small)
            if whole < 0:
                before[axis] = after[axis] = 0
    geometry = _Transposed(steps, spread, extra, [*before, *after], group)
    return _transposed(context, x, weight, bias, geometry)


@dataclass(frozen=True)
class _Transposed:
    """The geometry of a transposed convolution; ``extra`` is added at the end of its result."""

    steps: list[int]
    spread: list[int]
    extra: list[int]
    padding: list[int]
    group: int


def _transposed(
    context: Context, x: Value, weight: Value, bias: Value | None, geometry: _Transposed
) -> Expr:
    """Padding at the back beyond the stride becomes padding of the result by zeros."""
    steps, extra = geometry.steps, geometry.extra
    rank = len(steps)
    inside = [min(size, step - 1) for size, step in zip(extra, steps, strict=True)]
    beyond = [size - less for size, less in zip(extra, inside, strict=True)]
    layout, _, kernel_layout = LAYOUTS[rank]
    image = context.emit(
        TRANSPOSED[rank](
            x.expr,
            weight.expr,
            steps,
            geometry.padding,
            inside,
            geometry.spread,
            geometry.group,
            layout,
            kernel_layout,
        )
    )
    if any(beyond):
        image = padded(context, image, ([0] * rank, beyond))
    return biased(context, image, bias, rank)
