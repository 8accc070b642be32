"""Which extents of an operator's arguments must agree: what is compared when a function runs.

The struct-info rules refuse extents that are known to differ. Where they are not known (two
symbols), a kernel would read too little of one argument, or outside of it. Each entry gives, for a
call whose shapes are known up to symbols, the dimensions that arguments must have; what is not
proved becomes a ``match_cast`` with both shapes in its error (``rule.agreeing``). Extents that
broadcast are compared by the kernel itself (``topi.extents.broadcast_indices``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.op import Op
from weft.relax.expr import Call
from weft.relax.ir.shape_arith import constant_value, same_dim, simplified
from weft.relax.op.index import sliced_extent
from weft.relax.op.layout import Layout, parse_layout
from weft.relax.op.nn.recurrent import operand_shapes
from weft.relax.op.scatter import chosen_dims
from weft.relax.transform.legalize.rule import Wanted, dims
from weft.tir.op import floordiv
from weft.tir.op import max as tir_max


def same_as(first: int, second: int) -> Callable[[Call], Wanted]:
    """Two arguments of one shape."""
    return lambda call: {second: dims(call.args[first])}


def _recurrent(call: Call) -> Wanted:
    data, recurrent = (dims(call.args[index]) for index in (0, 2))
    shapes = operand_shapes(call, data, recurrent[1])
    return {index: list(shape) for index, shape in enumerate(shapes) if shape is not None}


def _nll_loss(call: Call) -> Wanted:
    """Targets are the predictions without classes, weights one for each class."""
    shape = dims(call.args[0])
    classes, places = (shape[0], []) if len(shape) == 1 else (shape[1], [shape[0], *shape[2:]])
    return {1: places, 2: [classes]} if len(call.args) > 2 else {1: places}


def _scatter_nd(call: Call) -> Wanted:
    chosen = chosen_dims(call, 0)
    return {} if chosen is None else {2: list(chosen)}


def _gather_nd(call: Call) -> Wanted:
    batch = call.attrs["batch_dims"]
    return {1: [*dims(call.args[0])[:batch], *dims(call.args[1])[batch:]]}


def _slice_scatter(call: Call) -> Wanted:
    """The source is as large as what it replaces."""
    start, end, step = (getattr(arg, "value", None) for arg in call.args[2:5])
    if start is None or end is None or step is None or constant_value(step) is None:
        return {}
    shape = dims(call.args[0])
    axis = call.attrs["axis"]
    shape[axis] = sliced_extent(shape[axis], start, end, step, assume_inbound=False)
    return {1: shape}


def _canonical(call: Call, index: int, order: str, attr: str) -> tuple[Layout, list[Any]]:
    """The layout of an argument of a convolution, and its dimensions in the order of letters."""
    letters = order + {1: "W", 2: "HW", 3: "DHW"}[int(call.op.name.split("conv")[1][0])]
    layout = parse_layout(call.attrs[attr], letters, f"{call.op.name}: {attr}")
    return layout, layout.to_canonical(dims(call.args[index]), letters)


def _convolution(call: Call) -> Wanted:
    """The data has the weight's input channels, for each group."""
    layout, (batch, _, *space) = _canonical(call, 0, "NC", "data_layout")
    channels = _canonical(call, 1, "OI", "kernel_layout")[1][1] * call.attrs["groups"]
    order = "NC" + "DHW"[3 - len(space) :]
    return {0: layout.from_canonical([batch, simplified(channels), *space], order)}


def _transposed_convolution(call: Call) -> Wanted:
    """The weight has an entry for each channel of the data."""
    channels = _canonical(call, 0, "NC", "data_layout")[1][1]
    layout, (_, outputs, *space) = _canonical(call, 1, "IO", "kernel_layout")
    order = "IO" + "DHW"[3 - len(space) :]
    return {1: layout.from_canonical([channels, outputs, *space], order)}


def per_channel(axis: str) -> Callable[[Call], Wanted]:
    """The other arguments are vectors with an element for each channel."""

    def wanted(call: Call) -> Wanted:
        channels = dims(call.args[0])[call.attrs[axis]]
        return {index: [channels] for index in range(1, len(call.args))}

    return wanted


def _along_axes(call: Call) -> Wanted:
    """The weights of a norm have the dimensions of the data along its axes."""
    extents = dims(call.args[0])
    shape = [extents[int(axis)] for axis in call.attrs["axes"]]
    return dict.fromkeys(range(1, len(call.args)), shape)


def _slopes(call: Call) -> Wanted:
    """The slopes of prelu are as many as the data has channels, or one."""
    if len(dims(call.args[1])) != 1 or constant_value(dims(call.args[1])[0]) == 1:
        return {}
    return {1: [dims(call.args[0])[call.attrs["axis"]]]}


def _quantization(call: Call) -> Wanted:
    """Scales and zero points are one for all, or one for each index of the axis."""
    vectors = [
        index for index in (1, 2)
        if len(dims(call.args[index])) and constant_value(dims(call.args[index])[0]) != 1
    ]  # fmt: skip
    if not vectors:
        return {}
    channels = dims(call.args[0])[call.attrs["axis"]]
    return {index: [channels] for index in vectors}


def _heads(call: Call) -> Wanted:
    """Keys have the query's batch and features, values the keys' batch, length and heads."""
    query, key, value = (dims(arg) for arg in call.args[:3])
    wanted = {1: [query[0], *key[1:3], query[3]], 2: [query[0], *key[1:3], value[3]]}
    heads, owners = query[2], key[2]
    if not same_dim(heads, owners):  # as many heads of queries for each of keys
        wanted[0] = [*query[:2], _multiple(heads, owners), query[3]]
    return wanted


def _multiple(extent: Any, of: Any) -> Any:
    """The largest multiple that is not above an extent; 0 of nothing."""
    return simplified(floordiv(extent, tir_max(of, 1)) * of)


def _grid_sample(call: Call) -> Wanted:
    """A grid for each image."""
    return {1: [dims(call.args[0])[0], *dims(call.args[1])[1:]]}


def _pixel_shuffle(call: Call) -> Wanted:
    *outer, channels, height, width = dims(call.args[0])
    factor = call.attrs["upscale_factor"] ** 2
    return {0: [*outer, _multiple(channels, factor), height, width]}


def _squeeze(call: Call) -> Wanted:
    """Axes that are named have the extent 1."""
    shape = dims(call.args[0])
    if call.attrs["axis"] is None:
        return {}
    removed = {axis % len(shape) for axis in call.attrs["axis"]}
    one = simplified(1)
    return {0: [one if axis in removed else dim for axis, dim in enumerate(shape)]}


def _collapsed(call: Call) -> Wanted:
    """What is not summed has the extents of the target."""
    shape, target = dims(call.args[0]), dims(call)
    lead = len(shape) - len(target)
    pairs = zip(shape[lead:], target, strict=True)
    kept = [whole if constant_value(part) == 1 else part for whole, part in pairs]
    return {0: [*shape[:lead], *kept]}


_RULES: dict[str, Callable[[Call], Wanted]] = {
    **dict.fromkeys(("nn.lstm", "nn.gru", "nn.rnn"), _recurrent),
    **dict.fromkeys((f"nn.conv{rank}d" for rank in (1, 2, 3)), _convolution),
    **dict.fromkeys((f"nn.conv{rank}d_transpose" for rank in (1, 2, 3)), _transposed_convolution),
    **dict.fromkeys(("nn.attention", "nn.attention_bias"), _heads),
    **dict.fromkeys(("nn.layer_norm", "nn.rms_norm"), _along_axes),
    **dict.fromkeys(("quantize", "dequantize"), _quantization),
    "collapse_sum_like": _collapsed,
    "collapse_sum_to": _collapsed,
    "gather_nd": _gather_nd,
    "image.grid_sample": _grid_sample,
    "multinomial_from_uniform": same_as(1, 2),
    "nn.batch_norm": per_channel("axis"),
    "nn.cross_entropy_with_logits": same_as(0, 1),
    "nn.group_norm": per_channel("channel_axis"),
    "nn.instance_norm": per_channel("channel_axis"),
    "nn.nll_loss": _nll_loss,
    "nn.pixel_shuffle": _pixel_shuffle,
    "nn.prelu": _slopes,
    "scatter_elements": same_as(1, 2),
    "scatter_nd": _scatter_nd,
    "slice_scatter": _slice_scatter,
    "squeeze": _squeeze,
}  # fmt: skip

AGREEMENT: dict[Op, Callable[[Call], Wanted]] = {
    Op.get(f"relax.{name}"): wanted for name, wanted in _RULES.items()
}
"""The dimensions that arguments of an operator must have, by position."""
