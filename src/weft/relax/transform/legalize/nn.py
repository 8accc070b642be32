"""Lowering of the operators of neural networks."""

from __future__ import annotations

from typing import Any

from weft import topi
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Tuple, Var
from weft.relax.op.create import ones_like
from weft.relax.op.manipulate import permute_dims
from weft.relax.transform.legalize.rule import (
    Rule,
    dims,
    plain,
    table,
    unary,
    with_attrs,
)
from weft.tir.op import const as tir_const
from weft.topi.nn.convolution_blocked import conv_blocked


def _conv(te_func: Any, hint: str) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        layouts = (attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"])
        if _is_blocked(*layouts):
            return call if _splits_space(*layouts) else _conv_blocked(bb, call, layouts, hint)
        made = bb.call_te(
            te_func, *call.args, strides=plain(attrs["strides"]), padding=plain(attrs["padding"]),
            dilation=plain(attrs["dilation"]), groups=attrs["groups"],
            data_layout=attrs["data_layout"], kernel_layout=attrs["kernel_layout"],
            out_dtype=plain(attrs["out_dtype"]), primfunc_name_hint=hint,
        )  # fmt: skip
        return _in_layout(bb, made, attrs["data_layout"], attrs["out_layout"])

    return rule


def _conv_blocked(bb: BlockBuilder, call: Call, layouts: tuple[str, str, str], hint: str) -> Any:
    attrs = call.attrs
    return bb.call_te(
        conv_blocked, *call.args, plain(attrs["strides"]), plain(attrs["padding"]),
        plain(attrs["dilation"]), attrs["groups"], layouts, plain(attrs["out_dtype"]),
        primfunc_name_hint=hint,
    )  # fmt: skip


def _is_blocked(*layouts: str) -> bool:
    """Whether a layout splits an axis, as NCHW16c does."""
    return any(letter.islower() for layout in layouts for letter in layout)


def _splits_space(*layouts: str) -> bool:
    """Whether a layout splits a spatial axis: topi has no operator for those."""
    return any(letter in "dhw" for layout in layouts for letter in layout)


def _in_layout(bb: BlockBuilder, tensor: Any, layout: str, wanted: str) -> Any:
    """A tensor with its axes in another order; itself if that is the order that it has."""
    if layout == wanted:
        return tensor
    source = tensor if isinstance(tensor, Var) else bb.emit(tensor)
    return permute_dims(source, [layout.index(letter) for letter in wanted])


def _operand_in_layout(bb: BlockBuilder, arg: Any, layout: str, wanted: str) -> Any:
    """An argument with its axes in another order, as a variable."""
    made = _in_layout(bb, arg, layout, wanted)
    return arg if made is arg else bb.emit(made)


def _conv_transpose(hint: str, data_layout: str, kernel_layout: str) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        if _is_blocked(attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"]):
            return call
        data = _operand_in_layout(bb, call.args[0], attrs["data_layout"], data_layout)
        weight = _operand_in_layout(bb, call.args[1], attrs["kernel_layout"], kernel_layout)
        made = bb.call_te(
            topi.nn.conv_transpose, data, weight, plain(attrs["strides"]),
            plain(attrs["padding"]),
            plain(attrs["out_dtype"]), plain(attrs["output_padding"]), attrs["groups"],
            plain(attrs["dilation"]), primfunc_name_hint=hint,
        )  # fmt: skip
        return _in_layout(bb, made, data_layout, attrs["out_layout"])

    return rule


def _pooled_layout(attrs: Any) -> str | None:
    """The layout with a letter for each axis (NCHWc for NCHW16c), or None if topi cannot take it.

    Pooling leaves split channels alone; it cannot change from one blocked layout to another.
    """
    layout: str = attrs["layout"]
    if not _is_blocked(layout, attrs["out_layout"]):
        return layout
    letters = "".join(letter for letter in layout if not letter.isdigit())
    return letters if layout == attrs["out_layout"] and not _splits_space(layout) else None


def _pool(te_func: Any, kind: str, hint: str) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        layout = _pooled_layout(attrs)
        if layout is None:
            return call
        made = bb.call_te(
            te_func, call.args[0], plain(attrs["pool_size"]), plain(attrs["strides"]),
            plain(attrs["dilation"]), plain(attrs["padding"]), kind, attrs["ceil_mode"],
            layout, attrs["count_include_pad"], primfunc_name_hint=hint,
        )  # fmt: skip
        return _in_layout(bb, made, attrs["layout"], attrs["out_layout"])

    return rule


def _adaptive(te_func: Any, kind: str, hint: str) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        layout = _pooled_layout(attrs)
        if layout is None:
            return call
        size = plain(attrs["output_size"])
        if size is None:
            shape = dims(call.args[0])
            size = [shape[layout.index(letter)] for letter in layout if letter in "DHW"]
        made = bb.call_te(
            te_func, call.args[0], size, kind, layout, primfunc_name_hint=hint
        )
        return _in_layout(bb, made, attrs["layout"], attrs["out_layout"])

    return rule


def _affine_norm(te_func: Any, *names: str) -> Any:
    """A norm with gamma if it scales, with beta if it centers."""

    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        gamma = call.args[1] if attrs["scale"] else None
        beta = call.args[2] if attrs["center"] else None
        values = [plain(attrs[name]) for name in names]
        return bb.call_te(te_func, call.args[0], gamma, beta, *values)

    return rule


def _batch_norm(bb: BlockBuilder, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(
        topi.nn.batch_norm, *call.args, axis=attrs["axis"], epsilon=attrs["epsilon"],
        center=attrs["center"], scale=attrs["scale"], training=attrs["training"],
        momentum=attrs["momentum"],
    )  # fmt: skip


def _dropout(bb: BlockBuilder, call: Call) -> Any:
    """As inference has it: nothing is dropped, so the mask is ones everywhere."""
    data = call.args[0]
    return Tuple([data, bb.emit(ones_like(data))])


def te_cross_entropy(predictions: Any, labels: Any) -> Any:
    """-sum(predictions * labels), divided by the batch."""
    loss = topi.negative(topi.sum(topi.multiply(predictions, labels)))
    if len(predictions.shape) > 1:
        loss = topi.divide(loss, predictions.shape[0].astype(predictions.dtype))
    return loss


def _pad(bb: BlockBuilder, call: Call) -> Any:
    attrs = call.attrs
    widths = list(attrs["pad_width"])
    before, after = widths[0::2], widths[1::2]
    mode = attrs["pad_mode"]
    te_func = {
        "reflect": topi.nn.reflect_pad, "replicate": topi.nn.replicate_pad,
        "circular": topi.nn.circular_pad,
    }.get(mode)  # fmt: skip
    if te_func is not None:
        return bb.call_te(te_func, call.args[0], before, after, primfunc_name_hint="pad")
    value = tir_const(attrs["pad_value"], str(call.struct_info.dtype))
    return bb.call_te(topi.nn.pad, call.args[0], before, after, value, primfunc_name_hint="pad")


def _nll_loss(bb: BlockBuilder, call: Call) -> Any:
    args = list(call.args)
    weights = args[2] if len(args) > 2 else None
    return bb.call_te(
        topi.nn.nll_loss, args[0], args[1], weights, call.attrs["reduction"],
        call.attrs["ignore_index"], primfunc_name_hint="nll_loss",
    )  # fmt: skip


POOLS = {1: topi.nn.pool1d, 2: topi.nn.pool2d, 3: topi.nn.pool3d}
ADAPTIVE = {
    1: topi.nn.adaptive_pool1d, 2: topi.nn.adaptive_pool, 3: topi.nn.adaptive_pool3d
}  # fmt: skip

TABLE = table(
    {
        "nn.relu": unary(topi.nn.relu),
        "nn.relu6": unary(topi.nn.relu6),
        "nn.leakyrelu": with_attrs(topi.nn.leaky_relu, "alpha"),
        "nn.prelu": with_attrs(topi.nn.prelu, "axis"),
        "nn.softplus": with_attrs(topi.nn.softplus, "beta", "threshold"),
        "nn.gelu": unary(topi.nn.gelu),
        "nn.gelu_tanh": unary(topi.nn.gelu_tanh),
        "nn.selu": unary(topi.nn.selu),
        "nn.silu": unary(topi.nn.silu),
        "nn.elu": with_attrs(topi.nn.elu, "alpha"),
        "nn.celu": with_attrs(topi.nn.celu, "alpha"),
        "nn.mish": unary(topi.nn.mish),
        "nn.softsign": unary(topi.nn.softsign),
        "nn.log_sigmoid": unary(topi.nn.log_sigmoid),
        "nn.hardsigmoid": unary(topi.nn.hardsigmoid),
        "nn.hardswish": unary(topi.nn.hardswish),
        "nn.hardtanh": with_attrs(topi.nn.hardtanh, "min_val", "max_val"),
        "nn.hardshrink": with_attrs(topi.nn.hardshrink, "lambd"),
        "nn.softshrink": with_attrs(topi.nn.softshrink, "lambd"),
        "nn.tanhshrink": unary(topi.nn.tanhshrink),
        "nn.softmax": with_attrs(topi.nn.softmax, "axis"),
        "nn.log_softmax": with_attrs(topi.nn.log_softmax, "axis"),
        "nn.conv1d": _conv(topi.nn.conv1d, "conv1d"),
        "nn.conv2d": _conv(topi.nn.conv2d, "conv2d"),
        "nn.conv3d": _conv(topi.nn.conv3d, "conv3d"),
        "nn.conv1d_transpose": _conv_transpose("conv1d_transpose", "NCW", "IOW"),
        "nn.conv2d_transpose": _conv_transpose("conv2d_transpose", "NCHW", "IOHW"),
        "nn.conv3d_transpose": _conv_transpose("conv3d_transpose", "NCDHW", "IODHW"),
        **{
            f"nn.{kind}_pool{rank}d": _pool(te_func, kind, f"{kind}_pool{rank}d")
            for kind in ("avg", "max")
            for rank, te_func in POOLS.items()
        },
        **{
            f"nn.adaptive_{kind}_pool{rank}d": _adaptive(
                te_func, kind, f"adaptive_{kind}_pool{rank}d"
            )
            for kind in ("avg", "max")
            for rank, te_func in ADAPTIVE.items()
        },
        "nn.batch_norm": _batch_norm,
        "nn.layer_norm": _affine_norm(topi.nn.layer_norm, "axes", "epsilon"),
        "nn.rms_norm": with_attrs(topi.nn.rms_norm, "axes", "epsilon"),
        "nn.group_norm": _affine_norm(
            topi.nn.group_norm, "num_groups", "channel_axis", "axes", "epsilon"
        ),
        "nn.instance_norm": _affine_norm(topi.nn.instance_norm, "channel_axis", "axes", "epsilon"),
        "nn.pixel_shuffle": with_attrs(topi.nn.pixel_shuffle, "upscale_factor"),
        "nn.dropout": _dropout,
        "nn.cross_entropy_with_logits": with_attrs(
            te_cross_entropy, hint="cross_entropy_with_logits"
        ),
        "nn.nll_loss": _nll_loss,
        "nn.pad": _pad,
    }
)
