"""``im2col`` and ``col2im``: the windows of images as a tensor, and windows added up to images.

Products, sums and scatters over windows are made of them where no convolution or pool fits.
"""

from __future__ import annotations

from typing import Any

from weft.relax.expr import Call, Expr, ShapeExpr
from weft.relax.ir.shape_arith import simplified
from weft.relax.op.definition import Ints, Shape, as_ints, operator
from weft.relax.op.infer import check_rank, dims_of, fail, int64, result, shape_arg, tensor
from weft.relax.op.lowering import dims
from weft.relax.op.nn.padding import both_sides, check_window, each
from weft.relax.op.reference import strided as reference
from weft.relax.op.requirements import Required, least_extent
from weft.relax.struct_info import TensorStructInfo
from weft.tir.op import floordiv
from weft.topi import strided


def _geometry(rank: int, strides: Any, padding: Any, dilation: Any) -> dict[str, Any]:
    return {
        "strides": each(strides, rank, "strides"),
        "padding": both_sides(padding, rank),
        "dilation": each(dilation, rank, "dilation"),
    }


def infer_im2col(call: Call) -> TensorStructInfo:
    """(batch, channels, kernel ..., windows ...)."""
    attrs = call.attrs
    kernel, padding = attrs["kernel_size"], attrs["padding"]
    rank = len(kernel)
    info = check_rank(call, 0, 2 + rank)
    extents = dims_of(info)
    if extents is None:
        return result(None, info.dtype, 2 + 2 * rank, info.vdevice)
    counts = []
    for axis, extent in enumerate(extents[2:]):
        padded = extent + padding[axis] + padding[rank + axis]
        reach = attrs["dilation"][axis] * (kernel[axis] - 1) + 1
        steps = simplified(floordiv(padded - reach, attrs["strides"][axis]) + 1)
        check_window(call, f"axis {axis}: the window", (padded, reach, steps))
        counts.append(steps)
    shape = [*extents[:2], *[int64(extent) for extent in kernel], *counts]
    return result(shape, info.dtype, vdevice=info.vdevice)


def _windows_fit(call: Call) -> Required:
    attrs, (batch, channels, *space) = call.attrs, dims(call.args[0])
    kernel, dilation, rank = attrs["kernel_size"], attrs["dilation"], len(space)
    reaches = [dilation[axis] * (kernel[axis] - 1) + 1 for axis in range(rank)]
    least = [least_extent(call, axis, rank, space[axis], reaches[axis]) for axis in range(rank)]
    return {0: [batch, channels, *least]}


@operator(
    "relax.nn.im2col",
    infer_im2col,
    te=strided.im2col,
    numpy=reference.im2col,
    requires=_windows_fit,
)
def im2col(
    data: Expr, kernel_size: Ints, strides: Ints = 1, padding: Ints = 0,
    dilation: Ints = 1,
) -> Any:  # fmt: skip
    """The windows of images (batch, channels, ...): (batch, channels, kernel ..., windows ...).

    Outside of an image there are zeros.
    """
    kernel = as_ints(kernel_size)
    return {"kernel_size": kernel, **_geometry(len(kernel), strides, padding, dilation)}


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
    columns: Expr, output_size: Shape, strides: Ints = 1, padding: Ints = 0,
    dilation: Ints = 1,
) -> Any:  # fmt: skip
    """Windows, as ``im2col`` gives them, added up to images of a size where they overlap."""
    given = ShapeExpr(output_size) if isinstance(output_size, list | tuple) else output_size
    rank = len(given.values) if isinstance(given, ShapeExpr) else given.struct_info.ndim
    return _geometry(rank, strides, padding, dilation)
