"""Convolutions and their transposes, in one to three spatial dimensions, in every layout."""

from __future__ import annotations

from typing import Any, Final

from weft import topi
from weft.ir.expr import Extent, RelaxExpr
from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, differ, simplified
from weft.relax.op.definition import Dtype, Ints, Replacements, operator
from weft.relax.op.infer import (
    VOID,
    check_rank,
    common_dtype,
    dims_of,
    fail,
    result,
    show_dims,
)
from weft.relax.op.layout import Layout, parse_layout
from weft.relax.op.lowering import Builder, Rule, TensorExpression, dims, plain
from weft.relax.op.nn.layouts import in_layout, is_blocked, operand_in_layout, splits_space
from weft.relax.op.nn.padding import both_sides, check_window, each
from weft.relax.op.reference.nn import convolution as reference
from weft.relax.op.requirements import Required, kernel_reach
from weft.relax.struct_info import TensorStructInfo
from weft.tir.op import floordiv
from weft.topi.nn.conv_transpose import conv_transpose
from weft.topi.nn.convolution_blocked import conv_blocked

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _spatial_rank(call: Call) -> int:
    return int(call.op.name.split("conv")[1][0])


def _layouts(call: Call, letters: str, in_first: bool) -> tuple[Any, Any, Any, str, str]:
    data_order = f"NC{letters}"
    kernel_order = ("IO" if in_first else "OI") + letters
    name = call.op.name
    data = parse_layout(call.attrs["data_layout"], data_order, f"{name}: data_layout")
    kernel = parse_layout(call.attrs["kernel_layout"], kernel_order, f"{name}: kernel_layout")
    out = parse_layout(call.attrs["out_layout"], data_order, f"{name}: out_layout")
    return data, kernel, out, data_order, kernel_order


def _operands(call: Call, in_first: bool) -> Any:
    """(canonical data dims, canonical kernel dims, out layout, order, dtype, data info)."""
    letters = _SPATIAL[_spatial_rank(call)]
    data, kernel, out, data_order, kernel_order = _layouts(call, letters, in_first)
    info = check_rank(call, 0, data.ndim)
    weight = check_rank(call, 1, kernel.ndim)
    dtype = call.attrs["out_dtype"]
    if dtype == VOID:
        dtype = common_dtype(call, [info, weight])
    x, w = dims_of(info), dims_of(weight)
    if x is None or w is None:
        return None, None, out, data_order, dtype, info
    return (
        data.to_canonical(x, data_order), kernel.to_canonical(w, kernel_order), out, data_order,
        dtype, info,
    )  # fmt: skip


def infer_conv(call: Call) -> TensorStructInfo:
    """(N, O, (size + padding - dilation * (kernel - 1) - 1) // stride + 1 ...)."""
    x, w, out, order, dtype, info = _operands(call, in_first=False)
    if x is None:
        return result(None, dtype, out.ndim, info.vdevice)
    groups = call.attrs["groups"]
    expected = simplified(w[1] * groups)
    if differ(x[1], expected):
        fail(
            call,
            f"the data has {x[1]} channels, the weight {show_dims(w)} with groups={groups} needs "
            f"{expected}",
        )
    if constant_value(w[0]) is not None and (constant_value(w[0]) or 0) % groups:
        fail(call, f"{w[0]} output channels are not a multiple of groups={groups}")
    attrs, spatial = call.attrs, len(x) - 2
    extents = [x[0], w[0]]
    for index in range(spatial):
        padded = x[2 + index] + attrs["padding"][index] + attrs["padding"][spatial + index]
        reach = (w[2 + index] - 1) * attrs["dilation"][index] + 1
        steps = simplified(floordiv(padded - reach, attrs["strides"][index]) + 1)
        check_window(call, f"axis {index}: the kernel", (padded, reach, steps))
        extents.append(steps)
    return result(out.from_canonical(extents, order), dtype, vdevice=info.vdevice)


def infer_conv_transpose(call: Call) -> TensorStructInfo:
    """(N, O * groups, (size - 1) * stride - padding + dilation * (kernel - 1) + out_pad + 1)."""
    x, w, out, order, dtype, info = _operands(call, in_first=True)
    if x is None:
        return result(None, dtype, out.ndim, info.vdevice)
    groups, attrs, spatial = call.attrs["groups"], call.attrs, len(x) - 2
    if differ(x[1], w[0]):
        fail(call, f"the data has {x[1]} channels, the weight {show_dims(w)} needs {w[0]}")
    extents = [x[0], simplified(w[1] * groups)]
    for index in range(spatial):
        stride, extra = attrs["strides"][index], attrs["output_padding"][index]
        if extra >= stride:
            fail(call, f"output_padding {extra} must be below the stride {stride}")
        padding = attrs["padding"][index] + attrs["padding"][spatial + index]
        reach = (w[2 + index] - 1) * attrs["dilation"][index]
        whole = simplified((x[2 + index] - 1) * stride + reach + extra + 1)
        if (constant_value(whole - padding) or 0) < 0:
            fail(call, f"axis {index}: the padding takes more than the {whole} elements there are")
        extents.append(simplified(whole - padding))
    return result(out.from_canonical(extents, order), dtype, vdevice=info.vdevice)


def _canonical(call: Call, index: int, order: str, attr: str) -> tuple[Layout, list[Extent]]:
    """The layout of an argument of a convolution, and its dimensions in the order of letters."""
    letters = order + _SPATIAL[_spatial_rank(call)]
    layout = parse_layout(call.attrs[attr], letters, f"{call.op.name}: {attr}")
    return layout, layout.to_canonical(dims(call.args[index]), letters)


def _direct(rank: int, te: TensorExpression) -> Rule:
    def rule(bb: Builder, call: Call) -> RelaxExpr:
        attrs = call.attrs
        layouts = (attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"])
        if is_blocked(*layouts):
            return call if splits_space(*layouts) else _blocked(bb, call, rank, layouts)
        convolved = bb.call_te(
            te, *call.args, strides=plain(attrs["strides"]), padding=plain(attrs["padding"]),
            dilation=plain(attrs["dilation"]), groups=attrs["groups"],
            data_layout=attrs["data_layout"], kernel_layout=attrs["kernel_layout"],
            out_dtype=plain(attrs["out_dtype"]), primfunc_name_hint=f"conv{rank}d",
        )  # fmt: skip
        return in_layout(bb, convolved, attrs["data_layout"], attrs["out_layout"])

    return rule


def _blocked(bb: Builder, call: Call, rank: int, layouts: tuple[str, str, str]) -> RelaxExpr:
    attrs = call.attrs
    return bb.call_te(
        conv_blocked, *call.args, plain(attrs["strides"]), plain(attrs["padding"]),
        plain(attrs["dilation"]), attrs["groups"], layouts, plain(attrs["out_dtype"]),
        primfunc_name_hint=f"conv{rank}d",
    )  # fmt: skip


def _transposed(rank: int) -> Rule:
    data_layout, kernel_layout = f"NC{_SPATIAL[rank]}", f"IO{_SPATIAL[rank]}"

    def rule(bb: Builder, call: Call) -> RelaxExpr:
        attrs = call.attrs
        if is_blocked(attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"]):
            return call
        data = operand_in_layout(bb, call.args[0], attrs["data_layout"], data_layout)
        weight = operand_in_layout(bb, call.args[1], attrs["kernel_layout"], kernel_layout)
        convolved = bb.call_te(
            conv_transpose, data, weight, plain(attrs["strides"]),
            plain(attrs["padding"]),
            plain(attrs["out_dtype"]), plain(attrs["output_padding"]), attrs["groups"],
            plain(attrs["dilation"]), primfunc_name_hint=f"conv{rank}d_transpose",
        )  # fmt: skip
        return in_layout(bb, convolved, data_layout, attrs["out_layout"])

    return rule


def _convolution(call: Call) -> Required:
    """The data has the weight's input channels, for each group."""
    layout, (batch, _, *space) = _canonical(call, 0, "NC", "data_layout")
    channels = _canonical(call, 1, "OI", "kernel_layout")[1][1] * call.attrs["groups"]
    order = "NC" + "DHW"[3 - len(space) :]
    return {0: layout.from_canonical([batch, simplified(channels), *space], order)}


def _transposed_convolution(call: Call) -> Required:
    """The weight has an entry for each channel of the data."""
    channels = _canonical(call, 0, "NC", "data_layout")[1][1]
    layout, (_, outputs, *space) = _canonical(call, 1, "IO", "kernel_layout")
    order = "IO" + "DHW"[3 - len(space) :]
    return {1: layout.from_canonical([channels, outputs, *space], order)}


def _attrs(
    rank: int, strides: Ints, padding: Ints, dilation: Ints, layout: str, out: str | None
) -> Replacements:
    return {
        "strides": each(strides, rank, "strides"),
        "padding": both_sides(padding, rank),
        "dilation": each(dilation, rank, "dilation"),
        "out_layout": layout if out is None else out,
    }


@operator(
    "relax.nn.conv1d",
    infer_conv,
    legalize=_direct(1, topi.nn.conv1d),
    requires=_convolution,
    window=kernel_reach,
    numpy=reference.conv(1),
    traits=Trait.CONTRACTION,
)
def conv1d(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "OIW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Replacements:  # fmt: skip
    """Convolution over one spatial axis."""
    return _attrs(1, strides, padding, dilation, data_layout, out_layout)


@operator(
    "relax.nn.conv2d",
    infer_conv,
    legalize=_direct(2, topi.nn.conv2d),
    requires=_convolution,
    window=kernel_reach,
    numpy=reference.conv(2),
    traits=Trait.CONTRACTION,
)
def conv2d(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Replacements:  # fmt: skip
    """Convolution over two spatial axes; padding is (top, left, bottom, right)."""
    return _attrs(2, strides, padding, dilation, data_layout, out_layout)


@operator(
    "relax.nn.conv3d",
    infer_conv,
    legalize=_direct(3, topi.nn.conv3d),
    requires=_convolution,
    window=kernel_reach,
    numpy=reference.conv(3),
    traits=Trait.CONTRACTION,
)
def conv3d(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    groups: int = 1, data_layout: str = "NCDHW", kernel_layout: str = "OIDHW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Replacements:  # fmt: skip
    """Convolution over three spatial axes."""
    return _attrs(3, strides, padding, dilation, data_layout, out_layout)


@operator(
    "relax.nn.conv1d_transpose",
    infer_conv_transpose,
    legalize=_transposed(1),
    requires=_transposed_convolution,
    numpy=reference.conv_transpose(1),
    traits=Trait.CONTRACTION,
)
def conv1d_transpose(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
    dilation: Ints = 1, groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "IOW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Replacements:  # fmt: skip
    """The transpose of conv1d."""
    attributes = _attrs(1, strides, padding, dilation, data_layout, out_layout)
    return {**attributes, "output_padding": each(output_padding, 1, "output_padding")}


@operator(
    "relax.nn.conv2d_transpose",
    infer_conv_transpose,
    legalize=_transposed(2),
    requires=_transposed_convolution,
    numpy=reference.conv_transpose(2),
    traits=Trait.CONTRACTION,
)
def conv2d_transpose(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
    dilation: Ints = 1, groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "IOHW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Replacements:  # fmt: skip
    """The transpose of conv2d."""
    attributes = _attrs(2, strides, padding, dilation, data_layout, out_layout)
    return {**attributes, "output_padding": each(output_padding, 2, "output_padding")}


@operator(
    "relax.nn.conv3d_transpose",
    infer_conv_transpose,
    legalize=_transposed(3),
    requires=_transposed_convolution,
    numpy=reference.conv_transpose(3),
    traits=Trait.CONTRACTION,
)
def conv3d_transpose(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
    dilation: Ints = 1, groups: int = 1, data_layout: str = "NCDHW", kernel_layout: str = "IODHW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Replacements:  # fmt: skip
    """The transpose of conv3d."""
    attributes = _attrs(3, strides, padding, dilation, data_layout, out_layout)
    return {**attributes, "output_padding": each(output_padding, 3, "output_padding")}


CONVOLUTIONS: Final = {1: conv1d, 2: conv2d, 3: conv3d}
"""The convolutions, by how many axes they go over."""

TRANSPOSED: Final = {1: conv1d_transpose, 2: conv2d_transpose, 3: conv3d_transpose}
"""The transposes of convolutions, by how many axes they go over."""

IMAGE_CONVOLUTION: Final = Op.get("relax.nn.conv2d")
"""The operator that passes over layouts of images are about."""
