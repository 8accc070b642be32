"""Convolutions of 1 to 3 spatial axes in any layout of N, C and the spatial letters.

Padding is one number, one for each axis, or one for each side (those before all axes, then those
after). The data is padded into ``pad_temp``, then reduced. Groups divide both numbers of channels.
16-bit floats are summed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.expr import Extent, PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import compute, reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Extents,
    Shape,
    as_sequence,
    compute_ax,
    const_int,
    is_const,
    may_be_equal,
    placed,
    shape_text,
)
from weft.topi.moments import wide
from weft.topi.nn.padding import pad
from weft.topi.simplify import simplified

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def per_axis(value: Extents, count: int, what: str) -> list[Extent]:
    """A value for each axis, from one value or a sequence."""
    values = as_sequence(value)
    values = values * count if len(values) == 1 else values
    if len(values) != count:
        raise IRValueError(f"{what}: expected 1 or {count} values, got {len(values)}")
    return values


def pad_amounts(
    padding: Extents | str, kernel: Shape, what: str
) -> tuple[list[Extent], list[Extent]]:
    """Amounts before and after every axis; "VALID" is none, "SAME" keeps extents at stride 1."""
    count = len(kernel)
    if isinstance(padding, str):
        if padding.upper() not in ("VALID", "SAME"):
            raise IRValueError(f"{what}: expected padding VALID or SAME, got {padding!r}")
        if padding.upper() == "VALID":
            return [0] * count, [0] * count
        before: list[Extent] = [op.floordiv(k - 1, 2) for k in kernel]
        return before, [op.subtract(k - 1, low) for k, low in zip(kernel, before, strict=True)]
    values = as_sequence(padding)
    if len(values) == 2 * count:
        return list(values[:count]), list(values[count:])
    values = per_axis(values, count, f"{what}: padding")
    return list(values), list(values)


def window_count(sizes: tuple[Extent, Extent, Extent], what: str, extra: Extent = 0) -> Extent:
    """How many windows there are; ``sizes``: the padded extent, a window's, the stride.

    With ``extra`` elements after the data, one more window may begin inside of the data. Raises
    IRValueError if it is known that no window fits, except into an extent of 0.
    """
    padded, window, stride = [simplified(size) for size in sizes]
    room = simplified(padded + extra - window)
    count = simplified(op.floordiv(room, stride) + 1)
    empty = is_const(padded, 0) and is_const(count) and int(count) >= 0
    if is_const(room) and int(room) < 0 and not empty:
        raise IRValueError(
            f"{what}: the window of {window} exceeds the padded extent {simplified(padded + extra)}"
        )
    return count


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution: their places and number, with an entry for each axis."""

    strides: list[Extent]
    dilations: list[Extent]
    before: list[Extent]
    after: list[Extent]
    counts: list[Extent]

    def places(self, window: Sequence[PrimExpr], tap: Sequence[PrimExpr]) -> list[PrimExpr]:
        """The indices into the padded data of element ``tap`` of a window."""
        return [
            at * stride + inner * spread
            for at, inner, stride, spread in zip(
                window, tap, self.strides, self.dilations, strict=True
            )
        ]


def windows_of(
    extents: Shape,
    kernel: Shape,
    stride: Extents,
    padding: Extents | str,
    dilation: Extents,
    what: str,
) -> Windows:
    """The windows of ``kernel`` over data of ``extents``; ``what`` names the operator in errors."""
    count = len(kernel)
    strides = per_axis(stride, count, f"{what}: strides")
    dilations = per_axis(dilation, count, f"{what}: dilation")
    reaches = [(size - 1) * spread + 1 for size, spread in zip(kernel, dilations, strict=True)]
    before, after = pad_amounts(padding, reaches, what)
    counts = []
    for axis, letter in enumerate(SPATIAL[count]):
        padded = extents[axis] + before[axis] + after[axis]
        sizes = (padded, reaches[axis], strides[axis])
        counts.append(window_count(sizes, f"{what}: axis {letter}"))
    return Windows(strides, dilations, before, after, counts)


def positions(layout: str, letters: str, what: str) -> list[int]:
    """The position of each letter in a layout; IRValueError if the layout has other letters."""
    if sorted(layout) != sorted(letters):
        raise IRValueError(f"{what}: expected a layout of the letters {letters}, got {layout!r}")
    return [layout.index(letter) for letter in letters]


def _spatial_letters(inp: Tensor, filt: Tensor) -> str:
    """The letters of the spatial axes, such as HW."""
    if inp.ndim - 2 not in SPATIAL or filt.ndim != inp.ndim:
        raise IRValueError(
            f"conv: expected 3 to 5 dimensions, got {inp.ndim} for the data and {filt.ndim} for "
            "the kernel"
        )
    return SPATIAL[inp.ndim - 2]


def conv(
    inp: Tensor,
    filt: Tensor,
    stride: Extents,
    padding: Extents | str,
    dilation: Extents,
    groups: int = 1,
    data_layout: str = "",
    kernel_layout: str = "",
    out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
    auto_scheduler_should_rewrite_layout: bool = False,
) -> Tensor:
    """The convolution of ``inp`` (N, C, spatial) with ``filt`` (O, C / groups, spatial).

    Layouts are strings such as "NCHW" and "OIHW" (the defaults for the rank).
    """
    del auto_scheduler_rewritten_layout, meta_schedule_original_shape
    letters = _spatial_letters(inp, filt)
    dim, data_layout = len(letters), data_layout or f"NC{letters}"
    data_at = positions(data_layout, f"NC{letters}", "conv: data")
    kernel_at = positions(kernel_layout or f"OI{letters}", f"OI{letters}", "conv: kernel")
    batch, _, *extents = [inp.shape[i] for i in data_at]
    filters, depth, *kernel = [filt.shape[i] for i in kernel_at]
    group_count = const_int(groups, "conv: groups")
    check_channels((inp, filt), inp.shape[data_at[1]], depth, filters, group_count)
    windows = windows_of(extents, kernel, stride, padding, dilation, "conv")
    lows, highs = [placed([0, 0, *side], data_at) for side in (windows.before, windows.after)]
    padded = pad(inp, lows, highs, name="pad_temp")
    rc = reduce_axis((0, depth), name="rc")
    axes = [reduce_axis((0, k), name=f"r{axis}") for k, axis in zip(kernel, "yxz", strict=False)]
    reduced = [axis for _, axis in sorted(zip(data_at[1:], [rc, *axes], strict=True), key=_first)]
    dtype = DataType(out_dtype or inp.dtype)

    def element(*args: PrimExpr) -> PrimExpr:
        n, f, *point = [args[i] for i in data_at]
        channel: PrimExpr = rc.var
        if group_count > 1:
            channel = op.floordiv(f, op.floordiv(filters, group_count)) * depth + rc.var
        moved = windows.places(point, [axis.var for axis in axes])
        source = padded(*placed([n, channel, *moved], data_at))
        weight = filt(*placed([f, rc.var, *[axis.var for axis in axes]], kernel_at))
        product = op.cast(wide(dtype), source) * op.cast(wide(dtype), weight)
        return te_reduction.sum(product, axis=reduced)

    name = f"{'group_' if group_count > 1 else ''}conv{dim}d_{data_layout.lower()}"
    attrs = {"layout_free_placeholders": [filt]} if auto_scheduler_should_rewrite_layout else None
    whole = compute(
        placed([batch, filters, *windows.counts], data_at),
        element,
        name=name,
        tag=name,
        attrs=attrs,
        varargs_names=placed(["nn", "ff", *["yy", "xx", "zz"][:dim]], data_at),
    )
    return rounded(whole, dtype)


def rounded(whole: Tensor, dtype: DataType) -> Tensor:
    """A tensor converted to the type of its result, if it was summed in another."""
    if whole.dtype == dtype:
        return whole
    name = f"{whole.op.name}_rounded"
    return compute_ax(whole.shape, lambda *i: op.cast(dtype, whole(*i)), name, tag.ELEMWISE)


def _first(pair: tuple[int, object]) -> int:
    return pair[0]


def check_channels(
    tensors: tuple[Tensor, Tensor], channels: Extent, depth: Extent, filters: Extent, groups: int
) -> None:
    """Raise IRValueError unless the channels of data and kernel fit, and divide into groups."""
    data, kernel = tensors
    if not may_be_equal(simplified(depth * groups), channels):
        raise IRValueError(
            f"conv: the data {shape_text(data.shape)} has {channels} channels, the kernel "
            f"{shape_text(kernel.shape)} wants {depth} * groups {groups}"
        )
    if groups < 1 or (is_const(filters) and int(filters) % groups):
        raise IRValueError(f"conv: {filters} filters do not divide into {groups} groups")


def conv1d(
    data: Tensor,
    kernel: Tensor,
    strides: Extents = 1,
    padding: Extents | str = "VALID",
    dilation: Extents = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:
    """Convolution over one spatial axis."""
    layout = kernel_layout or ("OIW" if data_layout == "NCW" else "WIO")
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, layout, out_dtype)


def conv2d(
    data: Tensor,
    kernel: Tensor,
    strides: Extents,
    padding: Extents | str,
    dilation: Extents,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
    groups: int = 1,
) -> Tensor:
    """Convolution over two spatial axes; kernel OIHW for NCHW and HWIO for NHWC by default."""
    layout = kernel_layout or {"NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO"}.get(data_layout, "")
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, layout, out_dtype)


def conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: Extents,  # noqa: N803 - as TVM
    padding: Extents | str,
    dilation: Extents,
    out_dtype: str | None = None,
) -> Tensor:
    """conv2d of NCHW data and an OIHW kernel."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype)


def conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Extents,  # noqa: N803 - as TVM
    padding: Extents | str,
    dilation: Extents,
    out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
) -> Tensor:
    """conv2d of NHWC data and an HWIO kernel, whose layout may be changed."""
    return conv(
        Input,
        Filter,
        stride,
        padding,
        dilation,
        1,
        "NHWC",
        "HWIO",
        out_dtype,
        auto_scheduler_rewritten_layout,
        meta_schedule_original_shape,
        True,
    )


def group_conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: Extents,  # noqa: N803 - as TVM
    padding: Extents | str,
    dilation: Extents,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """conv2d_nchw in groups."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


def group_conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Extents,  # noqa: N803 - as TVM
    padding: Extents | str,
    dilation: Extents,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """conv2d_nhwc in groups."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NHWC", "HWIO", out_dtype)


def conv3d(
    data: Tensor,
    kernel: Tensor,
    strides: Extents,
    padding: Extents | str,
    dilation: Extents,
    groups: int = 1,
    data_layout: str = "NCDHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:
    """Convolution over three spatial axes."""
    layout = kernel_layout or ("OIDHW" if data_layout == "NCDHW" else "DHWIO")
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, layout, out_dtype)


def depthwise_conv2d_nchw(
    Input: Tensor,
    Filter: Tensor,
    stride: Extents,  # noqa: N803 - as TVM
    padding: Extents | str,
    dilation: Extents,
    out_dtype: str | None = None,
) -> Tensor:
    """A kernel for each channel: data (n, c, h, w), kernel (c, multiplier, kh, kw)."""
    _, channels, height, width = Input.shape
    owners, multiplier, kernel_h, kernel_w = Filter.shape
    if not may_be_equal(channels, owners):
        raise IRValueError(
            f"depthwise_conv2d: the data has {channels} channels, the kernel {owners}"
        )
    sizes = ((height, width), (kernel_h, kernel_w))
    windows = windows_of(*sizes, stride, padding, dilation, "depthwise_conv2d")
    padded = pad(Input, [0, 0, *windows.before], [0, 0, *windows.after], name="PaddedInput")
    di = reduce_axis((0, kernel_h), name="di")
    dj = reduce_axis((0, kernel_w), name="dj")
    dtype = DataType(out_dtype) if out_dtype else Input.dtype
    shape: list[Extent] = [Input.shape[0], simplified(channels * multiplier), *windows.counts]

    def element(b: PrimExpr, c: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr:
        place = windows.places((i, j), (di.var, dj.var))
        source = padded(b, op.floordiv(c, multiplier), *place)
        weight = Filter(op.floordiv(c, multiplier), op.floormod(c, multiplier), di.var, dj.var)
        value = op.cast(wide(dtype), source) * op.cast(wide(dtype), weight)
        return te_reduction.sum(value, axis=[di, dj])

    convolved = compute(shape, element, name="DepthwiseConv2d", tag="depthwise_conv2d_nchw")
    return rounded(convolved, dtype)
