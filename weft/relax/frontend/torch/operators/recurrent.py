"""Recurrent layers: LSTM, GRU and the plain network, of several layers and both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.relax import op
from weft.relax.expr import Expr, TupleGetItem
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.support.errors import UnsupportedError

Layer = Callable[[Expr, Sequence[Expr | None], Sequence[Expr], bool], Expr]
"""(data, (weights and biases), states of the direction, reverse) -> (outputs, states ...)."""


def layers(
    context: Context, data: Expr, states: Sequence[Expr], params: Sequence[Expr],
    options: Sequence[Any], layer: Layer,
) -> list[Expr]:  # fmt: skip
    """All layers: (outputs, each last state of all layers and directions).

    ``options`` are torch's: has_biases, num_layers, dropout, train, bidirectional, batch_first.
    """
    has_biases, count, dropout, train, bidirectional, batch_first = options
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
    width = 4 if has_biases else 2
    _check_projection(context, params, width * directions * count)
    ends: list[list[Expr]] = [[] for _ in states]
    for number in range(count):
        outputs = []
        for direction in range(directions):
            place = number * directions + direction
            weights: list[Expr | None] = list(params[place * width : (place + 1) * width])
            weights += [None] * (4 - width)
            first = [_state(context, state, place) for state in states]
            made = context.emit(layer(data, weights, first, direction == 1))
            outputs.append(context.emit(TupleGetItem(made, 0)))
            for end, index in zip(ends, range(1, len(states) + 1), strict=True):
                end.append(context.emit(TupleGetItem(made, index)))
        data = outputs[0] if directions == 1 else context.emit(op.concat(outputs, 2))
    lasts = [context.emit(op.stack(end, 0)) for end in ends]
    if not batched:
        return [op.squeeze(item, [1]) for item in (data, *lasts)]
    return [op.permute_dims(data, [1, 0, 2]) if batch_first else data, *lasts]


def _check_projection(context: Context, params: Sequence[Expr], expected: int) -> None:
    if len(params) != expected:
        raise UnsupportedError(
            f"{context.node.target}: expected {expected} weights, got {len(params)}: layers with "
            "proj_size have no counterpart; leave proj_size=0 and add a Linear"
        )


def _state(context: Context, state: Expr, place: int) -> Expr:
    return context.emit(op.squeeze(op.strided_slice(state, [0], [place], [place + 1]), [0]))


@converter("aten.lstm.input")
def lstm(
    context: Context, input: Expr, hx: Sequence[Expr], params: Sequence[Expr], *options: Any
) -> list[Expr]:
    """(outputs, last hidden, last cell)."""

    def layer(data: Expr, weights: Any, states: Any, reverse: bool) -> Expr:
        w_ih, w_hh, b_ih, b_hh = weights
        hidden, cell = states
        return op.nn.lstm(data, w_ih, w_hh, b_ih, b_hh, hidden, cell, reverse)

    return layers(context, input, hx, params, options, layer)


@converter("aten.gru.input")
def gru(
    context: Context, input: Expr, hx: Expr, params: Sequence[Expr], *options: Any
) -> list[Expr]:
    """(outputs, last hidden)."""

    def layer(data: Expr, weights: Any, states: Any, reverse: bool) -> Expr:
        w_ih, w_hh, b_ih, b_hh = weights
        (hidden,) = states
        return op.nn.gru(data, w_ih, w_hh, b_ih, b_hh, hidden, reverse)

    return layers(context, input, [hx], params, options, layer)


def _plain(activation: str) -> Callable[..., list[Expr]]:
    def rnn(
        context: Context, input: Expr, hx: Expr, params: Sequence[Expr], *options: Any
    ) -> list[Expr]:
        def layer(data: Expr, weights: Any, states: Any, reverse: bool) -> Expr:
            w_ih, w_hh, b_ih, b_hh = weights
            (hidden,) = states
            return op.nn.rnn(data, w_ih, w_hh, b_ih, b_hh, hidden, activation, reverse)

        return layers(context, input, [hx], params, options, layer)

    return rnn


converter("aten.rnn_tanh.input")(_plain("tanh"))
converter("aten.rnn_relu.input")(_plain("relu"))
