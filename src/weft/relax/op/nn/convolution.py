"""Convolutions and their transposes, in one to three spatial dimensions, in every layout."""

from __future__ import annotations

from typing import Any

from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, differ, simplified
from weft.relax.op.definition import Dtype, Ints, operator
from weft.relax.op.infer import (
    VOID,
    check_rank,
    common_dtype,
    dims_of,
    fail,
    result,
    show_dims,
)
from weft.relax.op.layout import parse_layout
from weft.relax.op.nn.padding import both_sides, check_window, each
from weft.relax.struct_info import TensorStructInfo
from weft.tir.op import floordiv

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
    made = [x[0], w[0]]
    for index in range(spatial):
        padded = x[2 + index] + attrs["padding"][index] + attrs["padding"][spatial + index]
        reach = (w[2 + index] - 1) * attrs["dilation"][index] + 1
        steps = simplified(floordiv(padded - reach, attrs["strides"][index]) + 1)
        check_window(call, f"axis {index}: the kernel", (padded, reach, steps))
        made.append(steps)
    return result(out.from_canonical(made, order), dtype, vdevice=info.vdevice)


def infer_conv_transpose(call: Call) -> TensorStructInfo:
    """(N, O * groups, (size - 1) * stride - padding + dilation * (kernel - 1) + out_pad + 1)."""
    x, w, out, order, dtype, info = _operands(call, in_first=True)
    if x is None:
        return result(None, dtype, out.ndim, info.vdevice)
    groups, attrs, spatial = call.attrs["groups"], call.attrs, len(x) - 2
    if differ(x[1], w[0]):
        fail(call, f"the data has {x[1]} channels, the weight {show_dims(w)} needs {w[0]}")
    made = [x[0], simplified(w[1] * groups)]
    for index in range(spatial):
        stride, extra = attrs["strides"][index], attrs["output_padding"][index]
        if extra >= stride:
            fail(call, f"output_padding {extra} must be below the stride {stride}")
        padding = attrs["padding"][index] + attrs["padding"][spatial + index]
        reach = (w[2 + index] - 1) * attrs["dilation"][index]
        whole = simplified((x[2 + index] - 1) * stride + reach + extra + 1)
        if (constant_value(whole - padding) or 0) < 0:
            fail(call, f"axis {index}: the padding takes more than the {whole} elements there are")
        made.append(simplified(whole - padding))
    return result(out.from_canonical(made, order), dtype, vdevice=info.vdevice)


def _attrs(rank: int, strides: Any, padding: Any, dilation: Any, layout: str, out: Any) -> Any:
    return {
        "strides": each(strides, rank, "strides"),
        "padding": both_sides(padding, rank),
        "dilation": each(dilation, rank, "dilation"),
        "out_layout": layout if out is None else out,
    }


@operator("relax.nn.conv1d", infer_conv, traits=Trait.CONTRACTION)
def conv1d(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "OIW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Any:  # fmt: skip
    """Convolution over one spatial axis."""
    return _attrs(1, strides, padding, dilation, data_layout, out_layout)


@operator("relax.nn.conv2d", infer_conv, traits=Trait.CONTRACTION)
def conv2d(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Any:  # fmt: skip
    """Convolution over two spatial axes; padding is (top, left, bottom, right)."""
    return _attrs(2, strides, padding, dilation, data_layout, out_layout)


@operator("relax.nn.conv3d", infer_conv, traits=Trait.CONTRACTION)
def conv3d(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
    groups: int = 1, data_layout: str = "NCDHW", kernel_layout: str = "OIDHW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Any:  # fmt: skip
    """Convolution over three spatial axes."""
    return _attrs(3, strides, padding, dilation, data_layout, out_layout)


@operator("relax.nn.conv1d_transpose", infer_conv_transpose, traits=Trait.CONTRACTION)
def conv1d_transpose(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
    dilation: Ints = 1, groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "IOW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Any:  # fmt: skip
    """The transpose of conv1d."""
    made = _attrs(1, strides, padding, dilation, data_layout, out_layout)
    return {**made, "output_padding": each(output_padding, 1, "output_padding")}


@operator("relax.nn.conv2d_transpose", infer_conv_transpose, traits=Trait.CONTRACTION)
def conv2d_transpose(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
    dilation: Ints = 1, groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "IOHW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Any:  # fmt: skip
    """The transpose of conv2d."""
    made = _attrs(2, strides, padding, dilation, data_layout, out_layout)
    return {**made, "output_padding": each(output_padding, 2, "output_padding")}


@operator("relax.nn.conv3d_transpose", infer_conv_transpose, traits=Trait.CONTRACTION)
def conv3d_transpose(
    data: Expr, weight: Expr, strides: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
    dilation: Ints = 1, groups: int = 1, data_layout: str = "NCDHW", kernel_layout: str = "IODHW",
    out_layout: str | None = None, out_dtype: Dtype | None = None,
) -> Any:  # fmt: skip
    """The transpose of conv3d."""
    made = _attrs(3, strides, padding, dilation, data_layout, out_layout)
    return {**made, "output_padding": each(output_padding, 3, "output_padding")}
