"""Reference of the recurrent layer with ONNX's options: a loop over the steps of each sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft.relax.op.reference.rule import in_float64

Function = Callable[[np.ndarray], np.ndarray]

_FUNCTIONS: Final[dict[str, Callable[[np.ndarray, float, float], np.ndarray]]] = {
    "sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "tanh": lambda x, a, b: np.tanh(x),
    "relu": lambda x, a, b: np.maximum(x, 0),
    "softsign": lambda x, a, b: x / (np.abs(x) + 1),
    "softplus": lambda x, a, b: np.logaddexp(x, 0),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: np.where(x > 0, x, a * x),
    "thresholdedrelu": lambda x, a, b: np.where(x > a, x, 0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0))),
}


@in_float64
def recurrent_layer(  # noqa: PLR0913 - the options of ONNX's layers
    data: np.ndarray,
    weight: np.ndarray,
    recurrent: np.ndarray,
    bias: np.ndarray,
    recurrent_bias: np.ndarray,
    states: Sequence[np.ndarray],
    lengths: np.ndarray | None = None,
    kind: str = "rnn",
    reverse: bool = False,
    activations: Sequence[str] = (),
    alphas: Sequence[float] = (),
    betas: Sequence[float] = (),
    clip: float = 0.0,
    reset_after: bool = False,
    input_forget: bool = False,
    quantize_state: bool = False,
    projected: bool = False,
) -> tuple[np.ndarray, ...]:
    """The outputs of all steps, then the last states."""
    steps, batch, _ = data.shape
    if len(states) == (4 if kind == "lstm" else 2):  # the factors of int8 weights
        recurrent = recurrent * np.asarray(states[-1], "float64")[:, None]
    hidden = np.array(states[0], "float64")
    cell = np.array(states[1], "float64") if kind == "lstm" else np.zeros_like(hidden)
    outputs = np.zeros((steps, *hidden.shape))
    numbers = zip(activations, alphas, betas, strict=True)
    functions = [_limited(name, alpha, beta, clip) for name, alpha, beta in numbers]
    peephole = np.split(np.asarray(states[2], "float64"), 3) if kind == "lstm" else []
    size = hidden.shape[1]
    for t in range(steps):
        read = _quantized(hidden) if quantize_state else hidden.copy()
        for b in range(batch):
            count = steps if lengths is None else int(lengths[b])
            if t >= count:
                continue
            at = count - 1 - t if reverse else t
            term = data[at, b] if projected else data[at, b] @ weight.T
            mine = np.split(term + bias, len(weight) // max(size, 1))
            sums = np.split(read[b] @ recurrent.T + recurrent_bias, len(mine))
            if kind == "rnn":
                hidden[b] = functions[0](mine[0] + sums[0])
            elif kind == "gru":
                last = (hidden[b], recurrent[2 * size :], recurrent_bias[2 * size :])
                hidden[b] = _gru(functions, mine, sums, last, reset_after)
            else:
                hidden[b], cell[b] = _lstm(functions, mine, sums, cell[b], peephole, input_forget)
            outputs[at, b] = hidden[b]
    return (outputs, hidden, cell) if kind == "lstm" else (outputs, hidden)


def _quantized(state: np.ndarray) -> np.ndarray:
    """Rounded to 256 steps of its range, which holds 0; 0 is a step."""
    low, high = min(state.min(initial=0), 0), max(state.max(initial=0), 0)
    scale = (high - low) / 255 or 1.0
    place = np.round(np.clip(-low / scale, 0, 255))
    return np.asarray((np.clip(np.round(state / scale) + place, 0, 255) - place) * scale)


def _limited(name: str, alpha: float, beta: float, clip: float) -> Function:
    def apply(x: np.ndarray) -> np.ndarray:
        limited = np.clip(x, -clip, clip) if clip else x
        return np.asarray(_FUNCTIONS[name](limited, alpha, beta))

    return apply


def _gru(
    functions: Sequence[Function],
    mine: Sequence[np.ndarray],
    sums: Sequence[np.ndarray],
    last: tuple[np.ndarray, np.ndarray, np.ndarray],
    reset_after: bool,
) -> np.ndarray:
    gate, new_value = functions
    hidden, weight, bias = last
    update, reset = gate(mine[0] + sums[0]), gate(mine[1] + sums[1])
    inner = reset * sums[2] if reset_after else (reset * hidden) @ weight.T + bias
    return np.asarray((1 - update) * new_value(mine[2] + inner) + update * hidden)


def _lstm(
    functions: Sequence[Function],
    mine: Sequence[np.ndarray],
    sums: Sequence[np.ndarray],
    cell: np.ndarray,
    peephole: Sequence[np.ndarray],
    input_forget: bool,
) -> tuple[np.ndarray, np.ndarray]:
    gate, new_value, output = functions
    parts = [a + b for a, b in zip(mine, sums, strict=True)]
    add = gate(parts[0] + peephole[0] * cell)
    keep = 1 - add if input_forget else gate(parts[2] + peephole[2] * cell)
    new = keep * cell + add * new_value(parts[3])
    return gate(parts[1] + peephole[1] * new) * output(new), new
