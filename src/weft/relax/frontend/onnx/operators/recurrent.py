"""Recurrent layers: RNN, GRU and LSTM with all activations, directions and options.

One kernel a direction (topi.nn.recurrence) with the loop over the steps; a number of steps, a
batch and lengths of sequences that only the run knows are fine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value
from weft.te.tensor import Tensor
from weft.tir import op as tir
from weft.tir.intrinsic import expm1
from weft.topi.nn.recurrent import recurrence

Function = Callable[[Any], Any]


def _number(value: float, like: Any) -> Any:
    return tir.const(value, like.dtype)


def _positive(x: Any, above: Any, below: Any) -> Any:
    return tir.select(x > _number(0, x), above, below)


ACTIVATIONS: Final[dict[str, tuple[tuple[float, ...], Callable[..., Any]]]] = {
    "sigmoid": ((), tir.sigmoid),
    "tanh": ((), tir.tanh),
    "relu": ((), lambda x: tir.maximum(x, _number(0, x))),
    "softsign": ((), lambda x: x / (tir.abs(x) + _number(1, x))),
    "softplus": ((), lambda x: tir.maximum(x, _number(0, x)) + tir.log1p(tir.exp(-tir.abs(x)))),
    "affine": ((1.0, 0.0), lambda x, a, b: x * _number(a, x) + _number(b, x)),
    "leakyrelu": ((0.01,), lambda x, a: _positive(x, x, x * _number(a, x))),
    "thresholdedrelu": ((1.0,), lambda x, a: tir.select(x > _number(a, x), x, _number(0, x))),
    "scaledtanh": ((1.0, 1.0), lambda x, a, b: tir.tanh(x * _number(b, x)) * _number(a, x)),
    "hardsigmoid": ((0.2, 0.5), lambda x, a, b: tir.minimum(tir.maximum(
        x * _number(a, x) + _number(b, x), _number(0, x)), _number(1, x))),
    "elu": ((1.0,), lambda x, a: _positive(x, x, expm1(x) * _number(a, x))),
}  # fmt: skip
"""Activation -> the defaults of its alpha and beta (as many as it has), the function."""


@dataclass(frozen=True)
class Layer:
    """What a node says of its layer."""

    kind: str
    gates: int
    direction: str
    functions: list[Function]
    linear_before_reset: bool = False
    input_forget: bool = False
    batch_first: bool = False

    @property
    def directions(self) -> int:
        """One or two."""
        return 2 if self.direction == "bidirectional" else 1


DEFAULTS: Final = {
    "RNN": (1, ["Tanh"]), "GRU": (3, ["Sigmoid", "Tanh"]), "LSTM": (4, ["Sigmoid", "Tanh", "Tanh"]),
}  # fmt: skip
"""Layer -> gates, activations."""


def layer_of(context: Context, kind: str, attributes: dict[str, Any]) -> Layer:
    """The layer that a node's attributes describe."""
    gates, defaults = DEFAULTS[kind]
    direction = attributes.get("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        context.fail(f"direction: expected forward, reverse or bidirectional, got {direction!r}")
    count = 2 if direction == "bidirectional" else 1
    names = attributes.get("activations") or defaults * count
    wanted = len(defaults) * count
    if len(names) < wanted:
        context.fail(f"activations: expected {wanted} names, got {len(names)}")
    alphas, betas = (list(attributes.get(f"activation_{name}", ())) for name in ("alpha", "beta"))
    clip = attributes.get("clip")
    # the schema's default for RNN is two names, for one direction too
    functions = [_function(context, name, alphas, betas, clip) for name in names[:wanted]]
    return Layer(
        kind, gates, direction, functions, bool(attributes.get("linear_before_reset")),
        bool(attributes.get("input_forget")), bool(attributes.get("layout")),
    )  # fmt: skip


def _function(
    context: Context, name: str, alphas: list[float], betas: list[float], clip: float | None
) -> Function:
    """An activation with its numbers; it takes alpha and beta off the lists if it has them."""
    if name.lower() not in ACTIVATIONS:
        context.fail(f"activations: expected one of {', '.join(ACTIVATIONS)}, got {name!r}")
    defaults, function = ACTIVATIONS[name.lower()]
    numbers = [
        given.pop(0) if given else default
        for given, default in zip((alphas, betas), defaults, strict=False)
    ]

    def apply(x: Any) -> Any:
        if clip:
            x = tir.maximum(tir.minimum(x, _number(clip, x)), _number(-clip, x))
        return function(x, *numbers)

    return apply


# Cells


def _rnn_cell(_layer: Layer, functions: Sequence[Function]) -> Any:
    def cell(mine: Any, sums: Any, _hidden: Any, _others: Any) -> Any:
        return functions[0](mine(0) + sums(0))

    return cell


def _gru_cell(layer: Layer, functions: Sequence[Function]) -> Any:
    gate, new_value = functions

    def cell(mine: Any, sums: Any, before: Any, _others: Any) -> Any:
        update = gate(mine(0) + sums(0))
        state = gate(mine(1) + sums(1)) * sums(2) if layer.linear_before_reset else sums(2)
        new = new_value(mine(2) + state)
        return (_number(1, new) - update) * new + update * before

    return cell


def _lstm_cell(layer: Layer, functions: Sequence[Function]) -> Any:
    gate, new_value, output = functions

    def cell(mine: Any, sums: Any, _hidden: Any, others: Any) -> Any:
        (state,), j, (peephole, *_) = others
        size = peephole.buffer.shape[0] // 3
        old = state[j]
        add = gate(mine(0) + sums(0) + peephole[j] * old)
        keep = gate(mine(2) + sums(2) + peephole[j + size * 2] * old)
        if layer.input_forget:
            keep = _number(1, add) - add
        state[j] = keep * old + add * new_value(mine(3) + sums(3))
        out = gate(mine(1) + sums(1) + peephole[j + size] * state[j])
        return out * output(state[j])

    return cell


CELLS: Final = {"RNN": _rnn_cell, "GRU": _gru_cell, "LSTM": _lstm_cell}


# Converters


def _converted(
    context: Context, kind: str, inputs: Sequence[Any], attributes: dict[str, Any]
) -> list[Expr]:
    """(outputs of all steps, last states ...) of a node, in ONNX's layouts."""
    layer, emit = layer_of(context, kind, attributes), context.emit
    for what, value in zip(("X", "W", "R"), inputs, strict=False):
        rank = len(context.shape(value, what))
        if rank != 3:
            context.fail(f"its input {what}: expected 3 dimensions, got {rank}")
    data = inputs[0].expr
    if layer.batch_first:
        data = emit(op.permute_dims(data, [1, 0, 2]))
    found = []
    for direction in range(layer.directions):
        parts, extras = _operands(context, layer, inputs, direction)
        found.append(_direction(context, layer, direction, (data, parts, extras)))
    outputs = emit(op.stack([item[0] for item in found], 2 if layer.batch_first else 1))
    if layer.batch_first:
        outputs = emit(op.permute_dims(outputs, [1, 0, 2, 3]))
    ends = zip(*[item[1:] for item in found], strict=True)
    return [outputs, *[emit(op.stack(list(end), int(layer.batch_first))) for end in ends]]


def _operands(
    context: Context, layer: Layer, inputs: Sequence[Any], direction: int
) -> tuple[list[Expr], list[Expr]]:
    """(weights, biases and first states; peephole and lengths) of a direction."""
    x, w, r, b, lengths, *states = inputs
    emit, size = context.emit, context.shape(r, "R")[2]
    batch = context.shape(x, "X")[0 if layer.batch_first else 1]
    peephole = states.pop() if layer.kind == "LSTM" else None
    parts = [_part(context, item, direction, 0) for item in (w, r)]
    parts += _biases(context, b, direction, (layer.gates, size, x.dtype))
    parts += [
        emit(op.zeros([batch, size], x.dtype)) if item is None
        else _part(context, item, direction, int(layer.batch_first)) for item in states
    ]  # fmt: skip
    extras = []
    if layer.kind == "LSTM":
        extras = [emit(op.zeros([size * 3], x.dtype)) if peephole is None
                  else _part(context, peephole, direction, 0)]  # fmt: skip
    if lengths is not None:
        extras.append(lengths.expr)
    return parts, extras


def _part(context: Context, value: Value, direction: int, axis: int) -> Expr:
    """A direction's part of a tensor."""
    place = context.constant(direction, "int64").expr
    return context.emit(op.take(value.expr, place, axis))


def _biases(context: Context, bias: Value | None, direction: int, sizes: Any) -> list[Expr]:
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


def _direction(context: Context, layer: Layer, direction: int, given: Any) -> list[Expr]:
    data, parts, extras = given
    count = len(layer.functions) // layer.directions
    functions = layer.functions[count * direction : count * (direction + 1)]
    cell = CELLS[layer.kind](layer, functions)
    reset = None
    if layer.kind == "GRU" and not layer.linear_before_reset:
        def reset(mine: Any, sums: Any) -> Any:
            return functions[0](mine(1) + sums(1))
    reverse = direction == 1 or layer.direction == "reverse"
    has_lengths = len(extras) > (layer.kind == "LSTM")

    def kernel(*tensors: Tensor) -> list[Tensor]:
        count = 1 + len(parts)
        rest = list(tensors[count:])
        lengths = rest.pop() if has_lengths else None
        return recurrence(layer.kind.lower(), layer.gates, tensors[:count], cell, reverse,
                          lengths, rest, reset)  # fmt: skip

    made = context.te(kernel, data, *parts, *extras)
    states = len(parts) - 4
    return [context.emit(TupleGetItem(made, index)) for index in range(1 + states)]


@converter("RNN")
def rnn(
    context: Context, x: Value, w: Value, r: Value, b: Value | None = None,
    lengths: Value | None = None, initial_h: Value | None = None, **attributes: Any,
) -> list[Expr]:  # fmt: skip
    """h = f(W x + R h + b)."""
    return _converted(context, "RNN", [x, w, r, b, lengths, initial_h], attributes)


@converter("GRU")
def gru(
    context: Context, x: Value, w: Value, r: Value, b: Value | None = None,
    lengths: Value | None = None, initial_h: Value | None = None, **attributes: Any,
) -> list[Expr]:  # fmt: skip
    """The gated recurrent unit; gates: update, reset, new."""
    return _converted(context, "GRU", [x, w, r, b, lengths, initial_h], attributes)


@converter("LSTM")
def lstm(
    context: Context, x: Value, w: Value, r: Value, b: Value | None = None,
    lengths: Value | None = None, initial_h: Value | None = None,
    initial_c: Value | None = None, p: Value | None = None, **attributes: Any,
) -> list[Expr]:  # fmt: skip
    """The long short-term memory; gates: input, output, forget, cell."""
    inputs = [x, w, r, b, lengths, initial_h, initial_c, p]
    return _converted(context, "LSTM", inputs, attributes)
