"""Reference of recurrent layers: a loop over the steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.relax.op.reference.rule import in_float64

States = list[np.ndarray]
Step = Callable[[np.ndarray, np.ndarray, States], States]
"""(the data's part of the gates, the hidden state's part, states) -> new states, hidden first."""


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def _layer(step: Step, operands: tuple[np.ndarray, ...], reverse: bool) -> tuple[np.ndarray, ...]:
    data, weight, recurrent, bias, recurrent_bias, *states = operands
    steps = range(len(data))
    outputs = np.zeros((len(data), *states[0].shape))
    for number in reversed(steps) if reverse else steps:
        mine = data[number] @ weight.T + bias
        states = step(mine, states[0] @ recurrent.T + recurrent_bias, states)
        outputs[number] = states[0]
    return (outputs, *states)


@in_float64
def lstm(
    *operands: np.ndarray, reverse: bool = False, weight_layout: str = "IFGO"
) -> tuple[np.ndarray, ...]:
    """Long short-term memory."""

    def step(mine: np.ndarray, recurrent: np.ndarray, states: States) -> States:
        parts = np.split(mine + recurrent, 4, axis=-1)
        gate = dict(zip(weight_layout, parts, strict=True))
        kept = _sigmoid(gate["F"]) * states[1]
        cell = kept + _sigmoid(gate["I"]) * np.tanh(gate["G"])
        return [_sigmoid(gate["O"]) * np.tanh(cell), cell]

    return _layer(step, operands, reverse)


@in_float64
def gru(*operands: np.ndarray, reverse: bool = False) -> tuple[np.ndarray, ...]:
    """The gated recurrent unit."""

    def step(mine: np.ndarray, recurrent: np.ndarray, states: States) -> States:
        reset, update, new = np.split(mine, 3, axis=-1)
        its_reset, its_update, its_new = np.split(recurrent, 3, axis=-1)
        share = _sigmoid(update + its_update)
        candidate = np.tanh(new + _sigmoid(reset + its_reset) * its_new)
        return [(1 - share) * candidate + share * states[0]]

    return _layer(step, operands, reverse)


@in_float64
def rnn(
    *operands: np.ndarray, activation: str = "tanh", reverse: bool = False
) -> tuple[np.ndarray, ...]:
    """The plain recurrent network."""
    function = np.tanh if activation == "tanh" else lambda x: np.maximum(x, 0)

    def step(mine: np.ndarray, recurrent: np.ndarray, _states: States) -> States:
        return [function(mine + recurrent)]

    return _layer(step, operands, reverse)
