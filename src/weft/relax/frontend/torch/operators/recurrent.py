"""Recurrent layers: LSTM, GRU and the plain network, of several layers and both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.support.errors import UnsupportedError
from weft.topi.nn.recurrent_layer import GATES

Weights = Sequence[Expr | None]
"""(weight_ih, weight_hh, bias_ih, bias_hh, weight_hr) of one direction of a layer."""
Layer = Callable[[Expr, Weights, Sequence[Expr], bool], Expr | list[Expr]]
"""(data, weights, states, reverse) -> (outputs, states ...)."""


def layers(
    context: Context,
    data: Expr,
    states: Sequence[Expr],
    params: Sequence[Expr],
    options: Sequence[float],
    layer: Layer,
) -> list[Expr]:
    """All layers: (outputs, each last state of all layers and directions).

    ``options`` are torch's: has_biases, num_layers, dropout, train, bidirectional, batch_first.
    """
    has_biases, layer_count, dropout, train, bidirectional, batch_first = options
    count = int(layer_count)
    if dropout and train:
        raise UnsupportedError(
            f"{context.node.target}: dropout={dropout} between layers while training; call "
            "model.eval() before the model is captured"
        )
    batched = context.rank(data) == 3
    if not batched:
        data = context.emit(op.expand_dims(data, 1))
        states = [context.emit(op.expand_dims(state, 1)) for state in states]
    elif batch_first:
        data = context.emit(op.permute_dims(data, [1, 0, 2]))
    directions = 2 if bidirectional else 1
    width = len(params) // (directions * count)
    ends: list[list[Expr]] = [[] for _ in states]
    for number in range(count):
        outputs = []
        for direction in range(directions):
            place = number * directions + direction
            given = params[place * width : (place + 1) * width]
            weights = _weights(given, bool(has_biases))
            first = [_state(context, state, place) for state in states]
            whole = layer(data, weights, first, direction == 1)
            output, *last_states = _parts(context, whole, 1 + len(states))
            outputs.append(output)
            for end, last in zip(ends, last_states, strict=True):
                end.append(last)
        data = outputs[0] if directions == 1 else context.emit(op.concat(outputs, 2))
    lasts = [context.emit(op.stack(end, 0)) for end in ends]
    if not batched:
        return [op.squeeze(item, [1]) for item in (data, *lasts)]
    return [op.permute_dims(data, [1, 0, 2]) if batch_first else data, *lasts]


def _weights(given: Sequence[Expr], has_biases: bool) -> Weights:
    """(weight_ih, weight_hh, bias_ih, bias_hh, weight_hr) of one direction of a layer."""
    matrices, biases, projection = given[:2], given[2:4], given[4:]
    if not has_biases:
        biases, projection = (), given[2:]
    return [*matrices, *(biases or (None, None)), *(projection or (None,))]


def _parts(context: Context, results: Expr | list[Expr], count: int) -> list[Expr]:
    if isinstance(results, list):
        return results
    whole = context.emit(results)
    return [context.emit(TupleGetItem(whole, index)) for index in range(count)]


def _state(context: Context, state: Expr, place: int) -> Expr:
    return context.emit(op.squeeze(op.strided_slice(state, [0], [place], [place + 1]), [0]))


@converter("aten.lstm.input")
def lstm(
    context: Context, input: Expr, hx: Sequence[Expr], params: Sequence[Expr], *options: float
) -> list[Expr]:
    """(outputs, last hidden, last cell)."""

    def layer(
        data: Expr, weights: Weights, states: Sequence[Expr], reverse: bool
    ) -> Expr | list[Expr]:
        w_ih, w_hh, b_ih, b_hh, w_hr = weights
        hidden, cell = states
        if w_hr is not None:
            return _projected(context, data, weights, states, reverse)
        return op.nn.lstm(data, w_ih, w_hh, b_ih, b_hh, hidden, cell, reverse)

    return layers(context, input, hx, params, options, layer)


def _projected(
    context: Context, data: Expr, weights: Weights, states: Sequence[Expr], reverse: bool
) -> list[Expr]:
    """An LSTM whose hidden state is W_hr h (Sak et al., 2014), by one without a projection.

    The state enters the gates as W_hh (W_hr h), so that W_hh W_hr is the recurrent weight of h.
    The first state, which is no projection of anything, comes in as features of the first step.
    """
    emit = context.emit
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    hidden, cell = states
    steps, batch, _ = context.dims(data)
    begin = emit(op.expand_dims(hidden, 0))
    rest = emit(op.zeros([steps - 1, batch, context.dims(hidden)[1]], context.dtype_of(data)))
    states_in = emit(op.concat([rest, begin] if reverse else [begin, rest], 0))
    features = emit(op.concat([data, states_in], 2))
    entering = emit(op.concat([w_ih, w_hh], 1))
    recurrent = emit(op.matmul(w_hh, w_hr))
    none = emit(op.zeros_like(cell))
    whole = op.nn.lstm(features, entering, recurrent, b_ih, b_hh, none, cell, reverse)
    outputs, last, last_cell = _parts(context, whole, 3)
    back = emit(op.permute_dims(w_hr))
    return [emit(op.matmul(outputs, back)), emit(op.matmul(last, back)), last_cell]


@converter("aten.gru.input")
def gru(
    context: Context, input: Expr, hx: Expr, params: Sequence[Expr], *options: float
) -> list[Expr]:
    """(outputs, last hidden)."""

    def layer(data: Expr, weights: Weights, states: Sequence[Expr], reverse: bool) -> Expr:
        w_ih, w_hh, b_ih, b_hh, _ = weights
        (hidden,) = states
        return op.nn.gru(data, w_ih, w_hh, b_ih, b_hh, hidden, reverse)

    return layers(context, input, [hx], params, options, layer)


def _plain(activation: str) -> Callable[..., list[Expr]]:
    def rnn(
        context: Context, input: Expr, hx: Expr, params: Sequence[Expr], *options: float
    ) -> list[Expr]:
        def layer(data: Expr, weights: Weights, states: Sequence[Expr], reverse: bool) -> Expr:
            w_ih, w_hh, b_ih, b_hh, _ = weights
            (hidden,) = states
            return op.nn.rnn(data, w_ih, w_hh, b_ih, b_hh, hidden, activation, reverse)

        return layers(context, input, [hx], params, options, layer)

    return rnn


converter("aten.rnn_tanh.input")(_plain("tanh"))
converter("aten.rnn_relu.input")(_plain("relu"))


_ORDERS: Final = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}
"""Where the gates of ``nn.recurrent_layer`` stand in PyTorch's weights."""


@converter("weft.recurrent.default")
def ended_early(
    context: Context,
    data: Expr,
    lengths: Expr,
    states: Sequence[Expr],
    params: Sequence[Expr],
    mode: str,
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
) -> list[Expr]:
    """(outputs, last states ...) of layers over padded sequences (``packed_sequences``)."""
    kind = mode.partition("_")[0].lower()
    activations = ["relu" if mode == "RNN_RELU" else "tanh"] if kind == "rnn" else None
    width = context.dims(states[0])[2]

    def zeros(count: Extent) -> Expr:
        return context.emit(op.zeros([count], context.dtype_of(data)))

    def gates(weight: Expr | None) -> Expr:
        if weight is None:
            return zeros(width * GATES[kind])
        order = _ORDERS.get(mode)
        if order is None:
            return weight
        parts = context.emit(op.split(weight, len(order), 0))
        return context.emit(op.concat([TupleGetItem(parts, place) for place in order], 0))

    def layer(data: Expr, weights: Weights, firsts: Sequence[Expr], reverse: bool) -> Expr:
        matrices = [gates(weight) for weight in weights[:4]]
        peepholes = [zeros(width * 3)] if kind == "lstm" else []
        return op.nn.recurrent_layer(
            data, *matrices, [*firsts, *peepholes], lengths, kind, reverse, activations,
            reset_after=kind == "gru",
        )  # fmt: skip

    options = (has_biases, num_layers, 0.0, False, bidirectional, False)
    return layers(context, data, states, params, options, layer)
