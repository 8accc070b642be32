"""``im2col``, ``deform_im2col``, ``col2im``: the windows of images as a tensor, and the inverse.

Importers compose products, sums and scatters over windows from these operators where no convolution
or pooling operator fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.node import expect
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, differ
from weft.relax.op.definition import Ints, Replacements, Shape, as_ints, as_shape, operator
from weft.relax.op.infer import (
    check_float,
    check_rank,
    common_dtype,
    dims_of,
    fail,
    int64,
    result,
    shape_arg,
    show_dims,
    tensor,
)
from weft.relax.op.lowering import dims
from weft.relax.op.nn.padding import both_sides, check_window, each
from weft.relax.op.reference import strided as reference
from weft.relax.op.reference.nn.windows import deform_im2col as deform_reference
from weft.relax.op.reference.rule import in_float64
from weft.relax.op.requirements import Required, Requires, least_extent, multiple
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo
from weft.topi import strided
from weft.topi.nn.deformable import deform_im2col as deform_im2col_te


def geometry(rank: int, strides: Ints, padding: Ints, dilation: Ints) -> dict[str, object]:
    """The attributes of windows: one number for each spatial axis, two for the padding."""
    return {
        "strides": each(strides, rank, "strides"),
        "padding": both_sides(padding, rank),
        "dilation": each(dilation, rank, "dilation"),
    }


def infer_im2col(call: Call) -> TensorStructInfo:
    """(batch, channels, kernel ..., windows ...)."""
    kernel = call.attrs["kernel_size"]
    rank = len(kernel)
    info = check_rank(call, 0, 2 + rank)
    extents = dims_of(info)
    if extents is None:
        return result(None, info.dtype, 2 + 2 * rank, info.vdevice)
    counts = window_counts(call, list(extents[2:]), kernel)
    shape = [*extents[:2], *[int64(extent) for extent in kernel], *counts]
    return result(shape, info.dtype, vdevice=info.vdevice)


def window_counts(call: Call, space: list[Any], kernel: list[int]) -> list[Any]:
    """The number of windows along each spatial axis, by the call's attributes."""
    attrs, rank = call.attrs, len(kernel)
    strides, padding, dilation = [attrs[name] for name in ("strides", "padding", "dilation")]
    counts = strided.window_counts(space, kernel, strides, padding, dilation)
    for axis, extent in enumerate(space):
        padded = extent + padding[axis] + padding[rank + axis]
        reach = dilation[axis] * (kernel[axis] - 1) + 1
        check_window(call, f"axis {axis}: the window", (padded, reach, counts[axis]))
    return counts


def windows_fit(attribute: str) -> Requires:
    """The requirement that the windows, whose size is an attribute, fit into the data."""

    def required(call: Call) -> Required:
        kernel, dilation = call.attrs[attribute], call.attrs["dilation"]
        batch, channels, *space = dims(call.args[0])
        rank = len(space)
        reaches = [dilation[axis] * (kernel[axis] - 1) + 1 for axis in range(rank)]
        least = [least_extent(call, axis, rank, space[axis], reaches[axis]) for axis in range(rank)]
        return {0: [batch, channels, *least]}

    return required


@operator(
    "relax.nn.im2col",
    infer_im2col,
    te=strided.im2col,
    numpy=reference.im2col,
    requires=windows_fit("kernel_size"),
)
def im2col(
    data: Expr,
    kernel_size: Ints,
    strides: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
) -> Replacements:
    """The windows of images (batch, channels, ...): (batch, channels, kernel ..., windows ...).

    Outside of an image there are zeros.
    """
    kernel = as_ints(kernel_size)
    return {"kernel_size": kernel, **geometry(len(kernel), strides, padding, dilation)}


def infer_deform_im2col(call: Call) -> TensorStructInfo:
    """(batch, channels, kernel rows, kernel columns, rows, columns)."""
    info, offset = check_rank(call, 0, 4), check_rank(call, 1, 4)
    dtype, groups = common_dtype(call, [info, offset]), call.attrs["offset_groups"]
    check_float(call, info)
    extents = dims_of(info)
    if groups < 1:
        fail(call, f"offset_groups: expected 1 or more, got {groups}")
    if extents is None:
        return result(None, dtype, 6, info.vdevice)
    if (constant_value(extents[1]) or 0) % groups:
        fail(call, f"{extents[1]} channels are not a multiple of offset_groups = {groups}")
    kernel = call.attrs["kernel_size"]
    counts = window_counts(call, list(extents[2:]), kernel)
    wanted, given = _offset_dims(call, extents, counts), dims_of(offset)
    if given is not None and any(map(differ, given, wanted)):
        fail(call, f"offset: expected the shape {show_dims(wanted)}, got {show_dims(given)}")
    shape = [*extents[:2], *[int64(extent) for extent in kernel], *counts]
    return result(shape, dtype, vdevice=info.vdevice)


def _offset_dims(call: Call, extents: Sequence[Any], counts: Sequence[Any]) -> list[Any]:
    """(batch, groups * kernel elements * 2 coordinates, rows, columns)."""
    rows, columns = call.attrs["kernel_size"]
    numbers = 2 * call.attrs["offset_groups"] * rows * columns
    return [extents[0], int64(numbers), *counts]


def _offset_for_each_window(call: Call) -> Required:
    extents = dims(call.args[0])
    counts = window_counts(call, list(extents[2:]), call.attrs["kernel_size"])
    groups = multiple(extents[1], call.attrs["offset_groups"])
    required = windows_fit("kernel_size")(call)
    batch, _, *space = required[0]
    return {0: [batch, groups, *space], 1: _offset_dims(call, extents, counts)}


@operator(
    "relax.nn.deform_im2col",
    infer_deform_im2col,
    te=deform_im2col_te,
    numpy=in_float64(deform_reference),
    requires=_offset_for_each_window,
)
def deform_im2col(
    data: Expr,
    offset: Expr,
    kernel_size: Ints,
    strides: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    offset_groups: int = 1,
) -> Replacements:
    """As ``im2col``, but each element of a window is moved by an offset and read bilinearly.

    ``offset`` (batch, 2 * offset_groups * kernel elements, rows, columns) holds, for each element
    of each window, the offset down, then the offset right; all channels of a group share them.
    Outside of an image are zeros.
    """
    return {
        "kernel_size": each(kernel_size, 2, "kernel_size"),
        **geometry(2, strides, padding, dilation),
    }


def infer_col2im(call: Call) -> TensorStructInfo:
    """Batch and channels of the columns, then the size of the image."""
    info, size = tensor(call, 0), shape_arg(call, 1)
    rank = len(call.attrs["strides"])
    if info.ndim not in (-1, 2 + 2 * rank):
        fail(call, f"columns: expected {2 + 2 * rank} dimensions, got {info.ndim}: {info}")
    extents = dims_of(info)
    if extents is None or size.values is None:
        return result(None, info.dtype, 2 + rank, info.vdevice)
    return result([*extents[:2], *size.values], info.dtype, vdevice=info.vdevice)


@operator("relax.nn.col2im", infer_col2im, te=strided.col2im, numpy=reference.col2im)
def col2im(
    columns: Expr,
    output_size: Shape,
    strides: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
) -> Replacements:
    """Images of a size from windows as ``im2col`` returns them; where they overlap they add up."""
    rank = expect(as_shape(output_size).struct_info, ShapeStructInfo).ndim
    return geometry(rank, strides, padding, dilation)
