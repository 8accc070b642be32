"""Pad, CenterCropPad, and rearrangements of blocks: DepthToSpace, SpaceToDepth, Col2Im."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Array, Dim, Value, as_prim
from weft.relax.frontend.onnx.windows import by_axis
from weft.tir import op as tir

MODES: Final = {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}
"""ONNX's modes but constant -> Relax's."""


@converter("Pad")
def pad_attributes(
    context: Context,
    x: Value,
    *,
    pads: Sequence[int] | None = None,
    paddings: Sequence[int] | None = None,
    mode: str = "constant",
    value: float = 0.0,
) -> Expr:
    """Until opset 10 the amounts are an attribute."""
    amounts = list(pads if pads is not None else paddings or ())
    return _padded(context, x, amounts, (mode, context.constant(value, x.dtype)))


@converter("Pad", since=11)
def pad(
    context: Context,
    x: Value,
    pads: Value,
    value: Value | None = None,
    axes: Value | None = None,
    *,
    mode: str = "constant",
) -> Expr:
    """With amounts before and after each axis; negative ones cut."""
    rank = context.rank(x, "data")
    amounts = context.dims(pads, "pads") if mode == "constant" else context.ints(pads, "pads")
    assert amounts is not None
    chosen = context.ints(axes, "axes")
    if chosen is not None:
        spread: list[Dim] = [0] * (2 * rank)
        for index, axis in enumerate(chosen):
            place = context.axis(x, axis)
            spread[place], spread[place + rank] = amounts[index], amounts[index + len(chosen)]
        amounts = spread
    fill = context.constant(0, x.dtype) if value is None else value
    return _padded(context, x, amounts, (mode, fill))


def _padded(context: Context, x: Value, amounts: Sequence[Dim], how: tuple[str, Value]) -> Expr:
    mode, fill = how
    rank = context.rank(x, "data")
    before, after = list(amounts[:rank]), list(amounts[rank:])
    data = x.expr
    cut = [
        (-b if _negative(b) else 0, -a if _negative(a) else 0)
        for b, a in zip(before, after, strict=True)
    ]
    if any(low or high for low, high in cut):
        axes = list(range(rank))
        shape = context.shape(x, "data")
        ends = [size - high for size, (_, high) in zip(shape, cut, strict=True)]
        data = context.emit(op.strided_slice(data, axes, [low for low, _ in cut], ends))
        before = [0 if _negative(size) else size for size in before]
        after = [0 if _negative(size) else size for size in after]
    if not any(not isinstance(size, int) or size for size in (*before, *after)):
        return data
    if mode == "constant":
        return _filled(context, data, by_axis(before, after), fill)
    if mode not in MODES:
        context.fail(f"mode: expected constant, {', '.join(MODES)}, got {mode!r}")
    if mode == "reflect":
        return _reflected(context, data, before, after)
    return context.emit(op.nn.pad(data, by_axis(before, after), MODES[mode]))


def _negative(size: Dim) -> bool:
    return isinstance(size, int) and size < 0


def _filled(context: Context, data: Expr, widths: list[Dim], fill: Value) -> Expr:
    """Padding with one value; one that the program computes is chosen by a padded mask."""
    number = None if fill.constant is None else fill.constant.astype(fill.dtype).reshape(()).item()
    emit = context.emit
    if number is not None and (np.isnan(number) or float(number) == number):
        return emit(op.nn.pad(data, widths, "constant", float(number)))
    shape = context.shape(context.value(data), "data")
    is_data = emit(op.nn.pad(emit(op.ones(shape, "bool")), widths))
    scalar = emit(op.reshape(fill.expr, []))
    return emit(op.where(is_data, emit(op.nn.pad(data, widths)), scalar))


def _reflected(context: Context, data: Expr, before: list[Dim], after: list[Dim]) -> Expr:
    """Reflection; beyond the extent it goes back and forth over the data, as numpy's does."""
    shape = context.value(data).shape or []
    for axis, (size, low, high) in enumerate(zip(shape, before, after, strict=True)):
        if not isinstance(size, int) or max(expect(low, int), expect(high, int)) < size:
            continue
        if size == 0:
            context.fail(f"axis {axis} has no elements that could be reflected")
        places = context.constant(_waves(expect(low, int), expect(high, int), size)).expr
        data = context.emit(op.take(data, places, axis))
        before = [0 if at == axis else amount for at, amount in enumerate(before)]
        after = [0 if at == axis else amount for at, amount in enumerate(after)]
    if any(not isinstance(amount, int) or amount for amount in (*before, *after)):
        data = context.emit(op.nn.pad(data, by_axis(before, after), "reflect"))
    return data


def _waves(before: int, after: int, size: int) -> Array:
    """The places of an axis read back and forth, with so many more: 0 1 2 1 0 1 2 ..."""
    period = max(2 * (size - 1), 1)
    places = np.arange(-before, size + after, dtype="int64") % period
    return np.minimum(places, period - places) if size > 1 else places * 0


@converter("CenterCropPad", since=18)
def center_crop_pad(
    context: Context, x: Value, shape: Value, *, axes: Sequence[int] | None = None
) -> Expr:
    """The middle of the data, or the data in the middle of zeros, axis by axis."""
    rank = context.rank(x, "input_data")
    wanted, extents = context.ints(shape, "shape"), context.shape(x, "input_data")
    assert wanted is not None
    chosen = list(range(rank)) if axes is None else [context.axis(x, axis) for axis in axes]
    before, after = [0] * rank, [0] * rank
    for axis, size in zip(chosen, wanted, strict=True):
        extent = context.number(extents[axis], x, "input_data")
        more = size - extent
        before[axis] = more // 2 if more > 0 else -(-more // 2)
        after[axis] = more - before[axis]
    fill = context.constant(0, x.dtype)
    return _padded(context, x, [*before, *after], ("constant", fill))


@converter("DepthToSpace")
def depth_to_space(context: Context, x: Value, *, blocksize: int, mode: str = "DCR") -> Expr:
    """Channels as blocks of the plane; DCR has the block outside of the channel, CRD inside."""
    batch, channels, height, width = context.shape(x, "input")
    b, depth = blocksize, quotient_by(channels, blocksize * blocksize)
    dims, order = (
        ([batch, b, b, depth, height, width], [0, 3, 4, 1, 5, 2])
        if mode == "DCR"
        else ([batch, depth, b, b, height, width], [0, 1, 4, 2, 5, 3])
    )
    emit = context.emit
    spread = emit(op.permute_dims(emit(op.reshape(x.expr, dims)), order))
    return emit(op.reshape(spread, [batch, depth, height * b, width * b]))


@converter("SpaceToDepth")
def space_to_depth(context: Context, x: Value, *, blocksize: int, mode: str = "DCR") -> Expr:
    """Blocks of the plane as channels."""
    batch, channels, height, width = context.shape(x, "input")
    b = blocksize
    rows, columns = quotient_by(height, b), quotient_by(width, b)
    emit = context.emit
    split = emit(op.reshape(x.expr, [batch, channels, rows, b, columns, b]))
    order = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    gathered = emit(op.permute_dims(split, order))
    return emit(op.reshape(gathered, [batch, channels * b * b, rows, columns]))


def quotient_by(dim: Dim, divisor: int) -> Dim:
    """A dimension over a number."""
    return dim // divisor if isinstance(dim, int) else tir.floordiv(as_prim(dim), divisor)


@converter("Col2Im", since=18)
def col2im(
    context: Context,
    x: Value,
    image_shape: Value,
    block_shape: Value,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Expr:
    """Columns of blocks put back into the image; what overlaps is added."""
    image = context.ints(image_shape, "image_shape")
    block = context.ints(block_shape, "block_shape")
    assert image is not None
    assert block is not None
    rank = len(image)
    spread, steps = list(dilations or [1] * rank), list(strides or [1] * rank)
    around = list(pads or [0] * 2 * rank)
    counts = [
        (image[a] + around[a] + around[rank + a] - spread[a] * (block[a] - 1) - 1) // steps[a] + 1
        for a in range(rank)
    ]
    batch, rows, _ = context.shape(x, "input")
    channels = quotient_by(rows, int(np.prod(block)))
    data = context.emit(op.reshape(x.expr, [batch, channels, *block, *counts]))

    return context.emit(op.nn.col2im(data, image, steps, around, spread))
