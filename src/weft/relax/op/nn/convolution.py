"""Convolutions and their transposes, in one to three spatial dimensions, in every layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft import topi
from weft.ir.expr import Extent, RelaxExpr
from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, differ, simplified
from weft.relax.op.definition import Dtype, Ints, Replacements, operator
from weft.relax.op.infer import VOID, check_rank, common_dtype, fail, result, show_dims
from weft.relax.op.lowering import Builder, Rule, TensorExpression, plain
from weft.relax.op.nn.geometry import SPATIAL, Geometry, Layouts, geometry_of, layouts_of
from weft.relax.op.nn.layouts import in_layout, is_blocked, operand_in_layout, splits_space
from weft.relax.op.nn.padding import both_sides, check_window, each
from weft.relax.op.reference.nn import convolution as reference
from weft.relax.op.requirements import Required
from weft.relax.struct_info import TensorStructInfo
from weft.support.dtype import DataType
from weft.topi.nn.conv_transpose import conv_transpose
from weft.topi.nn.convolution_blocked import conv_blocked


def _operands(call: Call) -> tuple[Layouts, TensorStructInfo, DataType]:
    """The layouts, the data's info and the result's dtype; raises if a rank does not fit."""
    layouts = layouts_of(call)
    info = check_rank(call, 0, layouts.data.ndim)
    weight = check_rank(call, 1, layouts.kernel.ndim)
    dtype = call.attrs["out_dtype"]
    return layouts, info, common_dtype(call, [info, weight]) if dtype == VOID else dtype


def infer_conv(call: Call) -> TensorStructInfo:
    """(N, O, (size + padding - dilation * (kernel - 1) - 1) // stride + 1 ...)."""
    (*_, out), info, dtype = _operands(call)
    sizes = geometry_of(call)
    if sizes is None:
        return result(None, dtype, out.ndim, info.vdevice)
    groups, expected = sizes.groups, simplified(sizes.depth * sizes.groups)
    if differ(sizes.channels, expected):
        kernel = [sizes.filters, sizes.depth, *[window.size for window in sizes.space]]
        fail(
            call,
            f"the data has {sizes.channels} channels, the weight {show_dims(kernel)} with "
            f"groups={groups} needs {expected}",
        )
    if (constant_value(sizes.filters) or 0) % groups:
        fail(call, f"{sizes.filters} output channels are not a multiple of groups={groups}")
    for index, window in enumerate(sizes.space):
        reach = (window.padded, window.reach, window.count)
        check_window(call, f"axis {index}: the kernel", reach)
    extents = [sizes.batch, sizes.filters, *[window.count for window in sizes.space]]
    return result(out.from_canonical(extents, f"NC{sizes.letters}"), dtype, vdevice=info.vdevice)


def infer_conv_transpose(call: Call) -> TensorStructInfo:
    """(N, O * groups, (size - 1) * stride - padding + dilation * (kernel - 1) + out_pad + 1)."""
    (*_, out), info, dtype = _operands(call)
    sizes = geometry_of(call)
    if sizes is None:
        return result(None, dtype, out.ndim, info.vdevice)
    if differ(sizes.channels, sizes.depth):
        kernel = [sizes.depth, sizes.filters, *[window.size for window in sizes.space]]
        fail(
            call,
            f"the data has {sizes.channels} channels, the weight {show_dims(kernel)} needs "
            f"{sizes.depth}",
        )
    extents = [sizes.batch, simplified(sizes.filters * sizes.groups)]
    for index, (window, extra) in enumerate(
        zip(sizes.space, call.attrs["output_padding"], strict=True)
    ):
        if extra >= window.stride:
            fail(call, f"output_padding {extra} must be below the stride {window.stride}")
        padding = window.before + window.after
        whole = simplified((window.extent - 1) * window.stride + window.reach + extra)
        if (constant_value(whole - padding) or 0) < 0:
            fail(call, f"axis {index}: the padding takes more than the {whole} elements there are")
        extents.append(simplified(whole - padding))
    return result(out.from_canonical(extents, f"NC{sizes.letters}"), dtype, vdevice=info.vdevice)


def _direct(rank: int, te: TensorExpression) -> Rule:
    def rule(bb: Builder, call: Call) -> RelaxExpr:
        attrs = call.attrs
        layouts = (attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"])
        if is_blocked(*layouts):
            return call if splits_space(*layouts) else _blocked(bb, call, rank, layouts)
        convolved = bb.call_te(
            te,
            *call.args,
            strides=plain(attrs["strides"]),
            padding=plain(attrs["padding"]),
            dilation=plain(attrs["dilation"]),
            groups=attrs["groups"],
            data_layout=attrs["data_layout"],
            kernel_layout=attrs["kernel_layout"],
            out_dtype=plain(attrs["out_dtype"]),
            primfunc_name_hint=f"conv{rank}d",
        )
        return in_layout(bb, convolved, attrs["data_layout"], attrs["out_layout"])

    return rule


def _blocked(bb: Builder, call: Call, rank: int, layouts: tuple[str, str, str]) -> RelaxExpr:
    attrs = call.attrs
    return bb.call_te(
        conv_blocked,
        *call.args,
        plain(attrs["strides"]),
        plain(attrs["padding"]),
        plain(attrs["dilation"]),
        attrs["groups"],
        layouts,
        plain(attrs["out_dtype"]),
        primfunc_name_hint=f"conv{rank}d",
    )


def _transposed(rank: int) -> Rule:
    data_layout, kernel_layout = f"NC{SPATIAL[rank]}", f"IO{SPATIAL[rank]}"

    def rule(bb: Builder, call: Call) -> RelaxExpr:
        attrs = call.attrs
        if is_blocked(attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"]):
            return call
        data = operand_in_layout(bb, call.args[0], attrs["data_layout"], data_layout)
        weight = operand_in_layout(bb, call.args[1], attrs["kernel_layout"], kernel_layout)
        convolved = bb.call_te(
            conv_transpose,
            data,
            weight,
            plain(attrs["strides"]),
            plain(attrs["padding"]),
            plain(attrs["out_dtype"]),
            plain(attrs["output_padding"]),
            attrs["groups"],
            plain(attrs["dilation"]),
            primfunc_name_hint=f"conv{rank}d_transpose",
        )
        return in_layout(bb, convolved, data_layout, attrs["out_layout"])

    return rule


def _known(call: Call) -> Geometry:
    """The geometry of a call in LegalizeOps, which calls rules only if shapes are known."""
    sizes = geometry_of(call)
    assert sizes is not None
    return sizes


def _reach(call: Call, _rank: int) -> list[Extent]:
    """The span of a window along each axis: (kernel - 1) * dilation + 1."""
    return [window.reach for window in _known(call).space]


def _convolution(call: Call) -> Required:
    """The data must have the weight's input channels times the number of groups."""
    sizes = _known(call)
    channels = simplified(sizes.depth * sizes.groups)
    extents = [sizes.batch, channels, *[window.extent for window in sizes.space]]
    return {0: sizes.layouts.data.from_canonical(extents, f"NC{sizes.letters}")}


def _transposed_convolution(call: Call) -> Required:
    """The weight must have as many input channels as the data."""
    sizes = _known(call)
    extents = [sizes.channels, sizes.filters, *[window.size for window in sizes.space]]
    return {1: sizes.layouts.kernel.from_canonical(extents, f"IO{sizes.letters}")}


def _attrs(
    rank: int, strides: Ints, padding: Ints, dilation: Ints, layout: str, out: str | None
) -> Replacements:
    return {
        "strides": each(strides, rank, "strides"),
        "padding": both_sides(padding, rank),
        "dilation": each(dilation, rank, "dilation"),
        "out_layout": layout if out is None else out,
    }


def _row(rank: int, te: TensorExpression, text: str) -> Callable[..., Call]:
    """The row of ``conv1d`` and the like."""

    def body(
        data: Expr,
        weight: Expr,
        strides: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        data_layout: str = f"NC{SPATIAL[rank]}",
        kernel_layout: str = f"OI{SPATIAL[rank]}",
        out_layout: str | None = None,
        out_dtype: Dtype | None = None,
    ) -> Replacements:
        return _attrs(rank, strides, padding, dilation, data_layout, out_layout)

    body.__name__, body.__doc__ = f"conv{rank}d", text
    row = operator(
        f"relax.nn.conv{rank}d",
        infer_conv,
        legalize=_direct(rank, te),
        requires=_convolution,
        window=_reach,
        numpy=reference.conv(rank),
        traits=Trait.CONTRACTION | Trait.NARROW,
    )
    return row(body)


def _transposed_row(rank: int) -> Callable[..., Call]:
    """The row of ``conv1d_transpose`` and the like."""

    def body(
        data: Expr,
        weight: Expr,
        strides: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        data_layout: str = f"NC{SPATIAL[rank]}",
        kernel_layout: str = f"IO{SPATIAL[rank]}",
        out_layout: str | None = None,
        out_dtype: Dtype | None = None,
    ) -> Replacements:
        attributes = _attrs(rank, strides, padding, dilation, data_layout, out_layout)
        return {**attributes, "output_padding": each(output_padding, rank, "output_padding")}

    name = body.__name__ = f"conv{rank}d_transpose"
    body.__doc__ = f"The transpose of conv{rank}d."
    row = operator(
        f"relax.nn.{name}",
        infer_conv_transpose,
        legalize=_transposed(rank),
        requires=_transposed_convolution,
        numpy=reference.conv_transpose(rank),
        traits=Trait.CONTRACTION | Trait.NARROW,
    )
    return row(body)


CONVOLUTIONS: Final = {
    1: _row(1, topi.nn.conv1d, "Convolution over one spatial axis."),
    2: _row(
        2,
        topi.nn.conv2d,
        "Convolution over two spatial axes; padding is (top, left, bottom, right).",
    ),
    3: _row(3, topi.nn.conv3d, "Convolution over three spatial axes."),
}
"""Number of spatial axes -> the convolution."""

TRANSPOSED: Final = {rank: _transposed_row(rank) for rank in (1, 2, 3)}
"""Number of spatial axes -> the transposed convolution."""

CONVOLUTION_OPERATORS: Final = frozenset([Op.get(f"relax.nn.conv{rank}d") for rank in CONVOLUTIONS])
"""The convolutions of one to three spatial axes."""

IMAGE_CONVOLUTION: Final = Op.get("relax.nn.conv2d")
"""The operator that passes about image layouts rewrite."""
