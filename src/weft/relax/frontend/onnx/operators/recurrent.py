"""Recurrent layers: RNN, GRU and LSTM with all activations, directions and options.

A direction is one ``nn.recurrent_layer``; a number of steps, a batch and lengths of sequences that
only the run knows are fine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Dim, Value
from weft.topi.nn.recurrent_layer import ACTIVATIONS, DEFAULTS, GATES


@dataclass(frozen=True)
class Inputs:
    """The inputs of a node."""

    x: Value
    w: Value
    r: Value
    bias: Value | None
    lengths: Value | None
    states: Sequence[Value | None]
    peephole: Value | None = None
    quantize_state: bool = False
    factors: Value | None = None
    """Of ``r``, where that is int8: what each of its rows is multiplied with."""
    products: Sequence[Value] = ()
    """The products of ``x`` and ``w`` for each direction, where they are computed already."""


class LayerAttributes(TypedDict, total=False):
    """The attributes of a node."""

    direction: str
    activations: Sequence[str]
    activation_alpha: Sequence[float]
    activation_beta: Sequence[float]
    clip: float
    hidden_size: int
    input_forget: int
    layout: int
    linear_before_reset: int
    output_sequence: int


@dataclass(frozen=True)
class Activation:
    """The name of an activation, and its numbers."""

    name: str
    alpha: float
    beta: float


@dataclass(frozen=True)
class Layer:
    """What a node says of its layer."""

    kind: str
    direction: str
    activations: list[Activation]
    clip: float = 0.0
    linear_before_reset: bool = False
    input_forget: bool = False
    batch_first: bool = False

    @property
    def directions(self) -> int:
        """One or two."""
        return 2 if self.direction == "bidirectional" else 1


def layer_of(context: Context, kind: str, attributes: LayerAttributes) -> Layer:
    """The layer that a node's attributes describe."""
    direction = attributes.get("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        context.fail(f"direction: expected forward, reverse or bidirectional, got {direction!r}")
    count = 2 if direction == "bidirectional" else 1
    names = attributes.get("activations") or [*DEFAULTS[kind]] * count
    wanted = len(DEFAULTS[kind]) * count
    if len(names) < wanted:
        context.fail(f"activations: expected {wanted} names, got {len(names)}")
    alphas = list(attributes.get("activation_alpha", ()))
    betas = list(attributes.get("activation_beta", ()))
    # the schema's default for RNN is two names, for one direction too
    activations = [_activation(context, name, alphas, betas) for name in names[:wanted]]
    return Layer(
        kind,
        direction,
        activations,
        attributes.get("clip") or 0.0,
        bool(attributes.get("linear_before_reset")),
        bool(attributes.get("input_forget")),
        bool(attributes.get("layout")),
    )


def _activation(context: Context, name: str, alphas: list[float], betas: list[float]) -> Activation:
    """An activation with its numbers; it takes alpha and beta off the lists if it has them."""
    if name.lower() not in ACTIVATIONS:
        context.fail(f"activations: expected one of {', '.join(ACTIVATIONS)}, got {name!r}")
    defaults = ACTIVATIONS[name.lower()][0]
    numbers = [
        values.pop(0) if values else default
        for values, default in zip((alphas, betas), defaults, strict=False)
    ]
    return Activation(name.lower(), *numbers, *[0.0] * (2 - len(numbers)))


def recurrent(
    context: Context, kind: str, inputs: Inputs, attributes: LayerAttributes
) -> list[Expr]:
    """(outputs of all steps, last states ...) of a node, in ONNX's layouts."""
    layer, emit = layer_of(context, kind, attributes), context.emit
    for what, value in (("X", inputs.x), ("W", inputs.w), ("R", inputs.r)):
        rank = len(context.shape(value, what))
        if rank != 3:
            context.fail(f"its input {what}: expected 3 dimensions, got {rank}")
    data = [item.expr for item in inputs.products or [inputs.x] * layer.directions]
    if layer.batch_first:
        data = [emit(op.permute_dims(item, [1, 0, 2])) for item in data]
    directions = [
        _direction(context, layer, direction, item, inputs) for direction, item in enumerate(data)
    ]
    outputs = emit(op.stack([item[0] for item in directions], 2 if layer.batch_first else 1))
    if layer.batch_first:
        outputs = emit(op.permute_dims(outputs, [1, 0, 2, 3]))
    ends = zip(*[item[1:] for item in directions], strict=True)
    return [outputs, *[emit(op.stack(list(end), int(layer.batch_first))) for end in ends]]


def _operands(
    context: Context, layer: Layer, inputs: Inputs, direction: int
) -> tuple[list[Expr], list[Expr]]:
    """(weights and biases, states) of a direction."""
    emit, size, dtype = context.emit, context.shape(inputs.r, "R")[2], inputs.x.dtype
    batch = context.shape(inputs.x, "X")[0 if layer.batch_first else 1]
    no_columns = [size * GATES[layer.kind], 0]
    parts = [
        emit(op.zeros(no_columns, dtype))
        if inputs.products
        else _part(context, inputs.w, direction, 0),
        _part(context, inputs.r, direction, 0),
    ]
    parts += _biases(context, inputs.bias, direction, (GATES[layer.kind], size, dtype))
    firsts = [
        emit(op.zeros([batch, size], dtype))
        if item is None
        else _part(context, item, direction, int(layer.batch_first))
        for item in inputs.states
    ]
    if layer.kind == "lstm":
        firsts.append(
            emit(op.zeros([size * 3], dtype))
            if inputs.peephole is None
            else _part(context, inputs.peephole, direction, 0)
        )
    if inputs.factors is not None:
        firsts.append(_part(context, inputs.factors, direction, 0))
    return parts, firsts


def _part(context: Context, value: Value, direction: int, axis: int) -> Expr:
    """A direction's part of a tensor."""
    place = context.constant(direction, "int64").expr
    return context.emit(op.take(value.expr, place, axis))


def _biases(
    context: Context, bias: Value | None, direction: int, sizes: tuple[int, Dim, str]
) -> list[Expr]:
    gates, size, dtype = sizes
    if bias is None:
        zeros = context.emit(op.zeros([size * gates], dtype))
        return [zeros, zeros]
    both = _part(context, bias, direction, 0)
    half = size * gates
    return [
        context.emit(op.strided_slice(both, [0], [low], [high]))
        for low, high in ((0, half), (half, half * 2))
    ]


def _direction(
    context: Context, layer: Layer, direction: int, data: Expr, inputs: Inputs
) -> list[Expr]:
    """(outputs of all steps, last states ...) of one direction."""
    parts, states = _operands(context, layer, inputs, direction)
    lengths = inputs.lengths
    count = len(layer.activations) // layer.directions
    activations = layer.activations[count * direction : count * (direction + 1)]
    layers = context.emit(
        op.nn.recurrent_layer(
            data,
            *parts,
            states,
            None if lengths is None else lengths.expr,
            layer.kind,
            direction == 1 or layer.direction == "reverse",
            [item.name for item in activations],
            [item.alpha for item in activations],
            [item.beta for item in activations],
            layer.clip,
            layer.linear_before_reset,
            layer.input_forget,
            inputs.quantize_state,
            bool(inputs.products),
        )
    )
    fields = 3 if layer.kind == "lstm" else 2
    return [context.emit(TupleGetItem(layers, index)) for index in range(fields)]


@converter("RNN")
def rnn(
    context: Context,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lengths: Value | None = None,
    initial_h: Value | None = None,
    **attributes: Unpack[LayerAttributes],
) -> list[Expr]:
    """h = f(W x + R h + b)."""
    return recurrent(context, "rnn", Inputs(x, w, r, b, lengths, [initial_h]), attributes)


@converter("GRU")
def gru(
    context: Context,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lengths: Value | None = None,
    initial_h: Value | None = None,
    **attributes: Unpack[LayerAttributes],
) -> list[Expr]:
    """The gated recurrent unit; gates: update, reset, new."""
    return recurrent(context, "gru", Inputs(x, w, r, b, lengths, [initial_h]), attributes)


@converter("LSTM")
def lstm(
    context: Context,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lengths: Value | None = None,
    initial_h: Value | None = None,
    initial_c: Value | None = None,
    p: Value | None = None,
    **attributes: Unpack[LayerAttributes],
) -> list[Expr]:
    """The long short-term memory; gates: input, output, forget, cell."""
    inputs = Inputs(x, w, r, b, lengths, [initial_h, initial_c], p)
    return recurrent(context, "lstm", inputs, attributes)
