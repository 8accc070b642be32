"""Reference of recurrent layers: a loop over the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.relax.op.reference.rule import in_float64

Step = Callable[[Any, Any, list[Any]], list[Any]]
"""(what the data adds to the gates, what the state adds, states) -> new states, hidden first."""


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _layer(step: Step, operands: tuple[Any, ...], reverse: bool) -> tuple[Any, ...]:
    data, weight, recurrent, bias, recurrent_bias, *states = operands
    steps = range(len(data))
    outputs = np.zeros((len(data), *states[0].shape))
    for number in reversed(steps) if reverse else steps:
        mine = data[number] @ weight.T + bias
        states = step(mine, states[0] @ recurrent.T + recurrent_bias, states)
        outputs[number] = states[0]
    return (outputs, *states)


@in_float64
def lstm(*operands: Any, reverse: bool = False, weight_layout: str = "IFGO") -> Any:
    """Long short-term memory."""
    def step(mine: Any, recurrent: Any, states: list[Any]) -> list[Any]:
        parts = np.split(mine + recurrent, 4, axis=-1)
        gate = dict(zip(weight_layout, parts, strict=True))
        kept = _sigmoid(gate["F"]) * states[1]
        cell = kept + _sigmoid(gate["I"]) * np.tanh(gate["G"])
        return [_sigmoid(gate["O"]) * np.tanh(cell), cell]

    return _layer(step, operands, reverse)


@in_float64
def gru(*operands: Any, reverse: bool = False) -> Any:
    """The gated recurrent unit."""
    def step(mine: Any, recurrent: Any, states: list[Any]) -> list[Any]:
        reset, update, new = np.split(mine, 3, axis=-1)
        its_reset, its_update, its_new = np.split(recurrent, 3, axis=-1)
        share = _sigmoid(update + its_update)
        made = np.tanh(new + _sigmoid(reset + its_reset) * its_new)
        return [(1 - share) * made + share * states[0]]

    return _layer(step, operands, reverse)


@in_float64
def rnn(*operands: Any, activation: str = "tanh", reverse: bool = False) -> Any:
    """The plain recurrent network."""
    function = np.tanh if activation == "tanh" else lambda x: np.maximum(x, 0)

    def step(mine: Any, recurrent: Any, _states: list[Any]) -> list[Any]:
        return [function(mine + recurrent)]

    return _layer(step, operands, reverse)
