"""Transposed convolutions: zeros are put between elements by the strides, then a convolution."""

from __future__ import annotations

from weft.ir.expr import Extent, PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import compute, reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import Extents, is_const, may_be_equal, shape_text
from weft.topi.moments import wide
from weft.topi.nn.convolution import pad_amounts, per_axis, rounded
from weft.topi.nn.padding import pad
from weft.topi.simplify import simplified


def dilate(
    data: Tensor, strides: Extents, dilation_value: float = 0.0, name: str = "DilatedInput"
) -> Tensor:
    """``data`` with ``strides[i] - 1`` values put between neighbours of axis i."""
    steps = per_axis(strides, data.ndim, "dilate: strides")
    if [1 for step in steps if is_const(step) and int(step) < 1]:
        raise IRValueError(f"dilate: strides: expected 1 or more, got {shape_text(steps)}")
    shape = [_spread(e, s) for e, s in zip(data.shape, steps, strict=True)]

    def element(*indices: PrimExpr) -> PrimExpr:
        conditions, source = [], []
        for index, step in zip(indices, steps, strict=True):
            if is_const(step, 1):
                source.append(index)
                continue
            source.append(op.floordiv(index, step))
            conditions.append(op.equal(op.floormod(index, step), 0))
        value = data(*source)
        if not conditions:
            return value
        filler = op.const(dilation_value, data.dtype)
        return op.if_then_else(op.all(*conditions), value, filler)

    names = [f"i{i}" for i in range(data.ndim)]
    return compute(shape, element, name=name, tag=tag.INJECTIVE, varargs_names=names)


def _spread(extent: PrimExpr, step: Extent) -> Extent:
    """The extent with ``step - 1`` zeros between neighbours; 0 stays 0."""
    if is_const(extent, 0) or is_const(step, 1):
        return extent
    spread = simplified((extent - 1) * step + 1)
    return spread if is_const(spread) else op.maximum(spread, 0)


def _check_channels(data: Tensor, kernel: Tensor, groups: int) -> None:
    channels, owners = data.shape[1], kernel.shape[0]
    uneven = is_const(channels) and not is_const(op.floormod(channels, groups), 0)
    if uneven or not may_be_equal(channels, owners):
        raise IRValueError(
            f"conv_transpose: the data {shape_text(data.shape)} has {channels} channels, the "
            f"kernel {shape_text(kernel.shape)} {owners}, in {groups} groups"
        )


def conv_transpose(
    data: Tensor,
    kernel: Tensor,
    strides: Extents,
    padding: Extents,
    out_dtype: str | None = None,
    output_padding: Extents = 0,
    groups: int = 1,
    dilation: Extents = 1,
) -> Tensor:
    """The transpose of a convolution: data (n, c, spatial), kernel (c, filters / groups, spatial).

    ``output_padding`` values are added at the end of each axis.
    """
    dim = data.ndim - 2
    if dim not in (1, 2, 3) or kernel.ndim != data.ndim:
        raise IRValueError(
            f"conv_transpose: expected 3 to 5 dimensions, got {data.ndim} and {kernel.ndim}"
        )
    batch, channels, *extents = data.shape
    _, filters, *window = kernel.shape
    _check_channels(data, kernel, groups)
    steps = per_axis(strides, dim, "conv_transpose: strides")
    widths = per_axis(dilation, dim, "conv_transpose: dilation")
    extra = per_axis(output_padding, dim, "conv_transpose: output_padding")
    reach = [simplified((k - 1) * w) for k, w in zip(window, widths, strict=True)]
    before, after = pad_amounts(padding, [r + 1 for r in reach], "conv_transpose")
    spread = dilate(data, [1, 1, *steps], name="data_dilate")
    lows = [simplified(r - low) for r, low in zip(reach, before, strict=True)]
    highs = [simplified(r - high + e) for r, high, e in zip(reach, after, extra, strict=True)]
    padded = pad(spread, [0, 0, *lows], [0, 0, *highs], name="data_pad")
    depth = simplified(op.floordiv(channels, groups))
    dc = reduce_axis((0, depth), name="dc")
    axes = [reduce_axis((0, k), name=n) for k, n in zip(window, ("dh", "dw", "dd"), strict=False)]
    dtype = DataType(out_dtype) if out_dtype else data.dtype

    def element(*indices: PrimExpr) -> PrimExpr:
        b, c, *point = indices
        channel = dc.var if groups == 1 else op.floordiv(c, filters) * depth + dc.var
        filter_index = c if groups == 1 else op.floormod(c, filters)
        moved = [p + axis.var * w for p, axis, w in zip(point, axes, widths, strict=True)]
        turned = [k - 1 - axis.var for k, axis in zip(window, axes, strict=True)]
        value = op.cast(wide(dtype), padded(b, channel, *moved))
        weight = op.cast(wide(dtype), kernel(channel, filter_index, *turned))
        return te_reduction.sum(value * weight, axis=[dc, *axes])

    shape = [batch, simplified(filters * groups)]
    for i in range(dim):
        total = (extents[i] - 1) * steps[i] - before[i] - after[i] + reach[i] + 1 + extra[i]
        shape.append(simplified(total))
    name = f"conv{dim}d_transpose_nc{('w', 'hw', 'dhw')[dim - 1]}"
    names = ["b", "c", *["h", "w", "d"][:dim]]
    whole = compute(shape, element, name="compute", tag=name, varargs_names=names)
    return rounded(whole, dtype)


def conv1d_transpose_ncw(
    data: Tensor,
    kernel: Tensor,
    stride: Extents,
    padding: Extents,
    out_dtype: str,
    output_padding: Extents,
) -> Tensor:
    """Transposed convolution over one spatial axis."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding)


def group_conv1d_transpose_ncw(
    data: Tensor,
    kernel: Tensor,
    stride: Extents,
    padding: Extents,
    out_dtype: str,
    output_padding: Extents,
    groups: int,
) -> Tensor:
    """Transposed convolution over one spatial axis, in groups."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding, groups)


def conv2d_transpose_nchw(
    Input: Tensor,
    Filter: Tensor,  # noqa: N803 - as TVM
    strides: Extents,
    padding: Extents,
    out_dtype: str,
    output_padding: Extents,
) -> Tensor:
    """Transposed convolution over two spatial axes."""
    return conv_transpose(Input, Filter, strides, padding, out_dtype, output_padding)


def group_conv2d_transpose_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: Extents,
    padding: Extents,
    out_dtype: str,
    output_padding: Extents,
    groups: int,
) -> Tensor:
    """Transposed convolution over two spatial axes, in groups."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding, groups)
