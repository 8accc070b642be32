"""Lowering of the operators of neural networks."""

from __future__ import annotations

import math
from typing import Any

from weft import te, topi
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Var
from weft.relax.op.manipulate import permute_dims
from weft.relax.shape_arith import constant_value
from weft.relax.transform.legalize.rule import Rule, dims, plain, table, unary, with_attrs
from weft.tir.op import const as tir_const
from weft.tir.op import if_then_else, max_value, min_value
from weft.tir.op import round as tir_round


def _conv(te_func: Any, hint: str) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        if _is_blocked(attrs["data_layout"], attrs["kernel_layout"], attrs["out_layout"]):
            return call
        made = bb.call_te(
            te_func, *call.args, strides=plain(attrs["strides"]), padding=plain(attrs["padding"]),
            dilation=plain(attrs["dilation"]), groups=attrs["groups"],
            data_layout=attrs["data_layout"], kernel_layout=attrs["kernel_layout"],
            out_dtype=plain(attrs["out_dtype"]), primfunc_name_hint=hint,
        )  # fmt: skip
        return _in_layout(bb, made, attrs["data_layout"], attrs["out_layout"])

    return rule


def _is_blocked(*layouts: str) -> bool:
    """Whether a layout splits an axis, as NCHW16c does: topi has no operator for those."""
    return any(letter.islower() for layout in layouts for letter in layout)


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


def _pool(te_func: Any, kind: str, hint: str) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        if _is_blocked(attrs["layout"], attrs["out_layout"]):
            return call
        made = bb.call_te(
            te_func, call.args[0], plain(attrs["pool_size"]), plain(attrs["strides"]),
            plain(attrs["dilation"]), plain(attrs["padding"]), kind, attrs["ceil_mode"],
            attrs["layout"], attrs["count_include_pad"], primfunc_name_hint=hint,
        )  # fmt: skip
        return _in_layout(bb, made, attrs["layout"], attrs["out_layout"])

    return rule


def _adaptive(te_func: Any, hint: str) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        if _is_blocked(attrs["layout"], attrs["out_layout"]):
            return call
        size = plain(attrs["output_size"])
        if size is None:
            shape = dims(call.args[0])
            size = [shape[attrs["layout"].index(c)] for c in attrs["layout"] if c not in "NC"]
        made = bb.call_te(
            te_func, call.args[0], size, "avg", attrs["layout"], primfunc_name_hint=hint
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


def te_attention(
    query: Any, key: Any, value: Any, bias: Any, scale: Any, causal_mask: Any, window: Any
) -> Any:
    """softmax(query key^T * scale + bias) value, per batch and head."""
    batch, length, heads, features = query.shape
    key_length, out_features = key.shape[1], value.shape[3]

    def split_heads(x: Any, size: Any, width: Any) -> Any:
        return topi.reshape(topi.transpose(x, [0, 2, 1, 3]), [batch * heads, size, width])

    scores = topi.nn.batch_matmul(
        split_heads(query, length, features), split_heads(key, key_length, features)
    )
    if scale is not None:
        scores = topi.multiply(scores, tir_const(float(scale), query.dtype))
    elif constant_value(features) is not None:
        factor = 1.0 / math.sqrt(float(constant_value(features) or 1))
        scores = topi.multiply(scores, tir_const(factor, query.dtype))
    else:
        root = topi.sqrt(te.compute([1], lambda i: features.astype(query.dtype), name="width"))
        scores = topi.divide(scores, root)
    if bias is not None:
        whole = topi.reshape(scores, [batch, heads, length, key_length])
        scores = topi.reshape(topi.add(whole, bias), [batch * heads, length, key_length])
    if causal_mask is not None or window is not None:
        scores = _masked(scores, causal_mask, window)
    weights = topi.nn.softmax(scores, axis=2)
    out = topi.nn.batch_matmul(
        weights, split_heads(value, key_length, out_features), transpose_b=False
    )
    whole = topi.reshape(out, [batch, heads, length, out_features])
    return topi.transpose(whole, [0, 2, 1, 3])


def _masked(scores: Any, causal_mask: Any, window: Any) -> Any:
    """Scores of forbidden pairs as the smallest value."""
    _, length, key_length = scores.shape
    shift = key_length - length if causal_mask == "BottomRight" else 0
    lowest = min_value(scores.dtype)

    def element(b: Any, i: Any, j: Any) -> Any:
        made = scores(b, i, j)
        if causal_mask is not None:
            made = if_then_else(j <= i + shift, made, lowest)
        if window is not None:
            made = if_then_else(j > i + shift - window, made, lowest)
        return made

    return te.compute(scores.shape, element, name="masked")


def _attention(bb: BlockBuilder, call: Call) -> Any:
    attrs, args = call.attrs, list(call.args)
    bias = args[3] if len(args) > 3 else None
    return bb.call_te(
        te_attention, *args[:3], bias, attrs["scale"], attrs["causal_mask"], attrs["window_size"],
        primfunc_name_hint="attention",
    )  # fmt: skip


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


def _resize2d(bb: BlockBuilder, call: Call) -> Any:
    attrs, info = call.attrs, call.args[1].struct_info
    return bb.call_te(
        topi.image.resize2d, call.args[0], plain(attrs["roi"]), list(info.values),
        layout=attrs["layout"], method=attrs["method"],
        coordinate_transformation_mode=attrs["coordinate_transformation_mode"],
        rounding_method=attrs["rounding_method"], bicubic_alpha=attrs["cubic_alpha"],
        bicubic_exclude=attrs["cubic_exclude"], extrapolation_value=attrs["extrapolation_value"],
        out_dtype=plain(attrs["out_dtype"]), primfunc_name_hint="resize2d",
    )  # fmt: skip


def _parameter(tensor: Any, index: Any, axis: int) -> Any:
    """Scale or zero point for an element: one for all, or one for each index of the axis."""
    if not len(tensor.shape):
        return tensor()
    return tensor(0 if constant_value(tensor.shape[0]) == 1 else index[axis])


def te_quantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    """round(data / scale) + zero point, limited to the type."""
    low, high = min_value(out_dtype), max_value(out_dtype)

    def element(*index: Any) -> Any:
        place = axis % len(data.shape)
        scaled = tir_round(data(*index) / _parameter(scale, index, place))
        value = scaled + _parameter(zero_point, index, place).astype(str(data.dtype))
        bounds = [limit.astype(str(data.dtype)) for limit in (low, high)]
        return te.max(te.min(value, bounds[1]), bounds[0]).astype(out_dtype)

    return te.compute(data.shape, element, name="quantized")


def te_dequantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    """scale * (data - zero point)."""

    def element(*index: Any) -> Any:
        place = axis % len(data.shape)
        zero = _parameter(zero_point, index, place).astype("int32")
        distance = (data(*index).astype("int32") - zero).astype(out_dtype)
        return distance * _parameter(scale, index, place).astype(out_dtype)

    return te.compute(data.shape, element, name="dequantized")


def te_nll_loss(
    predictions: Any, targets: Any, weights: Any, reduction: str, ignore_index: int
) -> Any:
    """The weighted negative log likelihood of the targets."""
    has_batch = len(predictions.shape) > len(targets.shape)
    shape = targets.shape if len(targets.shape) else [1]

    def weight_at(*indices: Any) -> Any:
        target = targets(*indices[: len(targets.shape)])
        one = tir_const(1.0, predictions.dtype)
        chosen = one if weights is None else weights(target)
        return if_then_else(target == ignore_index, tir_const(0.0, predictions.dtype), chosen)

    def loss_at(*indices: Any) -> Any:
        own = indices[: len(targets.shape)]
        target = targets(*own)
        place = [own[0], target, *own[1:]] if has_batch and own else [target]
        value = -predictions(*place) * weight_at(*indices)
        zero = tir_const(0.0, predictions.dtype)
        return if_then_else(target == ignore_index, zero, value)

    losses = te.compute(shape, loss_at, name="nll_loss")
    if reduction == "none":
        return losses if len(targets.shape) else topi.reshape(losses, [])
    total = topi.sum(losses)
    if reduction == "sum":
        return total
    return topi.divide(total, topi.sum(te.compute(shape, weight_at, name="nll_weights")))


def _nll_loss(bb: BlockBuilder, call: Call) -> Any:
    args = list(call.args)
    weights = args[2] if len(args) > 2 else None
    return bb.call_te(
        te_nll_loss, args[0], args[1], weights, call.attrs["reduction"],
        call.attrs["ignore_index"], primfunc_name_hint="nll_loss",
    )  # fmt: skip


TABLE = table(
    {
        "image.resize2d": _resize2d,
        "quantize": with_attrs(te_quantize, "axis", "out_dtype", hint="quantize"),
        "dequantize": with_attrs(te_dequantize, "axis", "out_dtype", hint="dequantize"),
        "nn.relu": unary(topi.nn.relu),
        "nn.relu6": unary(topi.nn.relu6),
        "nn.leakyrelu": with_attrs(topi.nn.leaky_relu, "alpha"),
        "nn.prelu": with_attrs(topi.nn.prelu, "axis"),
        "nn.softplus": with_attrs(topi.nn.softplus, "beta", "threshold"),
        "nn.gelu": unary(topi.nn.gelu),
        "nn.gelu_tanh": unary(topi.nn.gelu_tanh),
        "nn.selu": unary(topi.nn.selu),
        "nn.silu": unary(topi.nn.silu),
        "nn.softmax": with_attrs(topi.nn.softmax, "axis"),
        "nn.log_softmax": with_attrs(topi.nn.log_softmax, "axis"),
        "nn.conv1d": _conv(topi.nn.conv1d, "conv1d"),
        "nn.conv2d": _conv(topi.nn.conv2d, "conv2d"),
        "nn.conv3d": _conv(topi.nn.conv3d, "conv3d"),
        "nn.conv1d_transpose": _conv_transpose("conv1d_transpose", "NCW", "IOW"),
        "nn.conv2d_transpose": _conv_transpose("conv2d_transpose", "NCHW", "IOHW"),
        "nn.max_pool1d": _pool(topi.nn.pool1d, "max", "max_pool1d"),
        "nn.max_pool2d": _pool(topi.nn.pool2d, "max", "max_pool2d"),
        "nn.max_pool3d": _pool(topi.nn.pool3d, "max", "max_pool3d"),
        "nn.avg_pool1d": _pool(topi.nn.pool1d, "avg", "avg_pool1d"),
        "nn.avg_pool2d": _pool(topi.nn.pool2d, "avg", "avg_pool2d"),
        "nn.avg_pool3d": _pool(topi.nn.pool3d, "avg", "avg_pool3d"),
        "nn.adaptive_avg_pool1d": _adaptive(topi.nn.adaptive_pool1d, "adaptive_avg_pool1d"),
        "nn.adaptive_avg_pool2d": _adaptive(topi.nn.adaptive_pool, "adaptive_avg_pool2d"),
        "nn.adaptive_avg_pool3d": _adaptive(topi.nn.adaptive_pool3d, "adaptive_avg_pool3d"),
        "nn.batch_norm": _batch_norm,
        "nn.layer_norm": _affine_norm(topi.nn.layer_norm, "axes", "epsilon"),
        "nn.rms_norm": with_attrs(topi.nn.rms_norm, "axes", "epsilon"),
        "nn.group_norm": _affine_norm(
            topi.nn.group_norm, "num_groups", "channel_axis", "axes", "epsilon"
        ),
        "nn.attention": _attention,
        "nn.cross_entropy_with_logits": with_attrs(
            te_cross_entropy, hint="cross_entropy_with_logits"
        ),
        "nn.nll_loss": _nll_loss,
        "nn.pad": _pad,
    }
)
