"""Recurrent layers with every option of ONNX: activations, limits, peepholes, lengths, resets.

The loop over the steps is in ``topi.nn.recurrent``; the cells are here. Gates have ONNX's order:
update, reset, new for a GRU; input, output, forget, cell for an LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import PrimExpr
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.intrinsic import expm1
from weft.topi.nn.recurrent import Cell, Others, Part, recurrence

Function = Callable[[PrimExpr], PrimExpr]
GATES: Final = {"rnn": 1, "gru": 3, "lstm": 4}
DEFAULTS: Final = {
    "rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh"),
}  # fmt: skip
"""Layer -> its activations: for the gates, for the new value, for an LSTM's output."""


def _number(value: float, like: PrimExpr) -> PrimExpr:
    return op.const(value, like.dtype)


def _softplus(x: PrimExpr, _a: float, _b: float) -> PrimExpr:
    return op.maximum(x, _number(0, x)) + op.log1p(op.exp(-op.abs(x)))


def _hard_sigmoid(x: PrimExpr, a: float, b: float) -> PrimExpr:
    line = x * _number(a, x) + _number(b, x)
    return op.minimum(op.maximum(line, _number(0, x)), _number(1, x))


ACTIVATIONS: Final[dict[str, tuple[tuple[float, ...], Callable[..., PrimExpr]]]] = {
    "sigmoid": ((), lambda x, a, b: op.sigmoid(x)),
    "tanh": ((), lambda x, a, b: op.tanh(x)),
    "relu": ((), lambda x, a, b: op.maximum(x, _number(0, x))),
    "softsign": ((), lambda x, a, b: x / (op.abs(x) + _number(1, x))),
    "softplus": ((), _softplus),
    "affine": ((1.0, 0.0), lambda x, a, b: x * _number(a, x) + _number(b, x)),
    "leakyrelu": ((0.01,), lambda x, a, b: op.select(x > _number(0, x), x, x * _number(a, x))),
    "thresholdedrelu": ((1.0,), lambda x, a, b: op.select(x > _number(a, x), x, _number(0, x))),
    "scaledtanh": ((1.0, 1.0), lambda x, a, b: op.tanh(x * _number(b, x)) * _number(a, x)),
    "hardsigmoid": ((0.2, 0.5), _hard_sigmoid),
    "elu": ((1.0,), lambda x, a, b: op.select(x > _number(0, x), x, expm1(x) * _number(a, x))),
}
"""Activation -> the defaults of its parameters (alpha, beta), and the function."""


@dataclass(frozen=True)
class _Options:
    """The activations of a layer with their parameters, and the options of its cell."""

    functions: list[Function]
    reset_after: bool
    input_forget: bool


def _activation(name: str, alpha: float, beta: float, clip: float) -> Function:
    function = ACTIVATIONS[name][1]

    def apply(x: PrimExpr) -> PrimExpr:
        if clip:
            x = op.maximum(op.minimum(x, _number(clip, x)), _number(-clip, x))
        return function(x, alpha, beta)

    return apply


def _rnn_cell(options: _Options) -> Cell:
    def cell(mine: Part, sums: Part, _hidden: PrimExpr, _others: Others) -> PrimExpr:
        return options.functions[0](mine(0) + sums(0))

    return cell


def _gru_cell(options: _Options) -> Cell:
    gate, new_value = options.functions

    def cell(mine: Part, sums: Part, before: PrimExpr, _others: Others) -> PrimExpr:
        update = gate(mine(0) + sums(0))
        state = gate(mine(1) + sums(1)) * sums(2) if options.reset_after else sums(2)
        new = new_value(mine(2) + state)
        return (_number(1, new) - update) * new + update * before

    return cell


def _lstm_cell(options: _Options) -> Cell:
    gate, new_value, output = options.functions

    def cell(mine: Part, sums: Part, _hidden: PrimExpr, others: Others) -> PrimExpr:
        (state,), j, (peephole, *_) = others
        size = op.floordiv(peephole.buffer.shape[0], 3)
        old = state[j]
        add = gate(mine(0) + sums(0) + peephole[j] * old)
        keep = gate(mine(2) + sums(2) + peephole[j + size * 2] * old)
        if options.input_forget:
            keep = _number(1, add) - add
        state[j] = keep * old + add * new_value(mine(3) + sums(3))
        out = gate(mine(1) + sums(1) + peephole[j + size] * state[j])
        return out * output(state[j])

    return cell


_CELLS: Final[dict[str, Callable[[_Options], Cell]]] = {
    "rnn": _rnn_cell, "gru": _gru_cell, "lstm": _lstm_cell,
}  # fmt: skip


def recurrent_layer(  # noqa: PLR0913 - the options of ONNX's layers
    data: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor,
    bias_hh: Tensor,
    states: Sequence[Tensor],
    lengths: Tensor | None,
    kind: str,
    reverse: bool,
    activations: Sequence[str],
    alphas: Sequence[float],
    betas: Sequence[float],
    clip: float,
    reset_after: bool,
    input_forget: bool,
    quantize_state: bool = False,
    projected: bool = False,
) -> list[Tensor]:
    """[outputs, last hidden] of an rnn or a gru; an lstm also returns the last cell state.

    ``states`` are the first hidden state and, for an lstm, the first cell state and the peepholes
    (3 * hidden: input, output, forget); where ``weight_hh`` is int8, then a factor for each of its
    rows (gates * hidden). For the rest see ``relax.op.nn.recurrent_layer``.
    """
    numbers = zip(activations, alphas, betas, strict=True)
    functions = [_activation(name, alpha, beta, clip) for name, alpha, beta in numbers]
    options = _Options(functions, reset_after, input_forget)
    reset = None
    if kind == "gru" and not reset_after:

        def reset(mine: Part, sums: Part) -> PrimExpr:
            return functions[0](mine(1) + sums(1))

    count = 2 if kind == "lstm" else 1
    factors = states[-1] if weight_hh.dtype == "int8" else None
    states = states if factors is None else states[:-1]
    tensors = [data, weight_ih, weight_hh, bias_ih, bias_hh, *states[:count]]
    return recurrence(
        kind, GATES[kind], tensors, _CELLS[kind](options), reverse, lengths, states[count:], reset,
        quantize_state, factors, projected,
    )  # fmt: skip
