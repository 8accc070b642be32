"""RNN, GRU and LSTM against plain steps in numpy."""

import numpy as np
import pytest

from tests.lib.onnx_models import info, model, node, run, uniform
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import OnnxNodeError

pytestmark = [pytest.mark.sampled(3), pytest.mark.onnx]

SIZE, BATCH, STEPS, WIDTH = 3, 2, 4, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {
    "Tanh": np.tanh,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Softsign": lambda x: x / (1 + abs(x)),
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "HardSigmoid": lambda x: np.clip(0.3 * x + 0.4, 0, 1),
    "LeakyRelu": lambda x: np.where(x > 0, x, 0.1 * x),
    "Elu": lambda x: np.where(x > 0, x, 0.7 * (np.exp(x) - 1)),
    "Affine": lambda x: 0.5 * x + 0.25,
    "ScaledTanh": lambda x: 1.5 * np.tanh(0.5 * x),
    "ThresholdedRelu": lambda x: np.where(x > 0.2, x, 0),
}
NUMBERS = {
    "HardSigmoid": (0.3, 0.4), "LeakyRelu": (0.1,), "Elu": (0.7,), "Affine": (0.5, 0.25),
    "ScaledTanh": (1.5, 0.5), "ThresholdedRelu": (0.2,),
}  # fmt: skip
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def step(kind, x, states, weights, functions, options):
    """One step: new (hidden, [cell])."""
    w, r, b, p = weights
    clip = options.get("clip", 1e9)
    f, *rest = [lambda v, g=g: g(np.clip(v, -clip, clip)) for g in functions]
    part, bias = np.split(x @ w.T + b[: len(w)], len(w) // SIZE, -1), b[len(w) :]
    h = states[0]
    own = np.split(h @ r.T + bias, len(w) // SIZE, -1)
    if kind == "RNN":
        return [f(part[0] + own[0])]
    if kind == "GRU":
        update, reset = f(part[0] + own[0]), f(part[1] + own[1])
        if options.get("linear_before_reset"):
            inner = reset * own[2]
        else:
            inner = (reset * h) @ r[2 * SIZE :].T + bias[2 * SIZE :]
        return [(1 - update) * rest[0](part[2] + inner) + update * h]
    c, (pi, po, pf) = states[1], np.split(p, 3)
    i, f_gate = f(part[0] + own[0] + pi * c), f(part[2] + own[2] + pf * c)
    if options.get("input_forget"):
        f_gate = 1 - i
    cell = f_gate * c + i * rest[0](part[3] + own[3])
    return [f(part[1] + own[1] + po * cell) * rest[1](cell), cell]


def direction(kind, x, weights, states, functions, options, reverse):
    """(outputs, last states) of one direction; ``lengths`` ends sequences early."""
    outputs = np.zeros((len(x), BATCH, SIZE))
    lasts = [state.copy() for state in states]
    for batch in range(BATCH):
        count = options.get("lengths", [len(x)] * BATCH)[batch]
        now = [state[batch : batch + 1] for state in states]
        for t in range(count):
            at = count - 1 - t if reverse else t
            now = step(kind, x[at, batch : batch + 1], now, weights, functions, options)
            outputs[at, batch] = now[0]
        for last, state in zip(lasts, now, strict=True):
            last[batch] = state
    return outputs, lasts


def check(kind, names=None, ways="forward", batch_first=False, with_all=False, **options):
    """Compare a node with numpy; its number of steps is a symbol."""
    count = 2 if ways == "bidirectional" else 1
    rows, states = GATES[kind] * SIZE, 2 if kind == "LSTM" else 1
    x, w = uniform(STEPS, BATCH, WIDTH), uniform(count, rows, WIDTH, seed=1)
    r, b = uniform(count, rows, SIZE, seed=2), uniform(count, 2 * rows, seed=3)
    first = [uniform(count, BATCH, SIZE, seed=4 + i) for i in range(states)]
    p = uniform(count, 3 * SIZE, seed=6)
    if not with_all:
        b, p, first = 0 * b, 0 * p, [0 * item for item in first]
    names = (names or DEFAULTS[kind]) * count
    parts = []
    for way in range(count):
        weights, start = (w[way], r[way], b[way], p[way]), [item[way] for item in first]
        chosen = [FUNCTIONS[name] for name in names[: len(DEFAULTS[kind])]]
        parts.append(direction(kind, x, weights, start, chosen, options,
                               way == 1 or ways == "reverse"))  # fmt: skip
    wanted = [np.stack([item[0] for item in parts], 1)]
    wanted += [np.stack([item[1][i] for item in parts]) for i in range(states)]
    if batch_first:
        x, first = x.swapaxes(0, 1), [item.swapaxes(0, 1) for item in first]
        wanted = [wanted[0].transpose(2, 0, 1, 3), *[i.swapaxes(0, 1) for i in wanted[1:]]]
    constants, inputs = {"w": w, "r": r}, "x w r"
    if with_all:
        constants |= {"b": b, "h": first[0]}
        inputs = "x w r b " + ("l" if "lengths" in options else "-") + " h"
        if kind == "LSTM":
            constants |= {"c": first[1], "p": p}
            inputs += " c p"
    elif "lengths" in options:
        inputs += " - l"
    if "lengths" in options:
        constants["l"] = np.array(options["lengths"], "int32")
    attributes = {key: value for key, value in options.items() if key != "lengths"}
    numbers = [NUMBERS.get(name, ()) for name in names]
    attributes |= {
        "activations": names, "hidden_size": SIZE, "direction": ways, "layout": int(batch_first),
        "activation_alpha": [item[0] for item in numbers if item],
        "activation_beta": [item[1] for item in numbers if len(item) > 1],
    }  # fmt: skip
    attributes = {key: value for key, value in attributes.items() if value != []}
    dims = [BATCH, "steps", WIDTH] if batch_first else ["steps", BATCH, WIDTH]
    outputs = ["y", "yh", "yc"][: 1 + states]
    proto = model([node(kind, inputs, " ".join(outputs), **attributes)], [info("x", shape=dims)],
                  outputs, constants=constants)  # fmt: skip
    for got, want in zip(run(from_onnx(proto), x), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", list(GATES))
def test_both_directions_with_all_inputs_and_lengths(kind):
    check(kind, ways="bidirectional", with_all=True, lengths=[4, 2])


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LSTM", {"batch_first": True, "input_forget": 1, "clip": 0.4, "ways": "reverse"}),
        ("GRU", {"linear_before_reset": 1, "batch_first": True}),
        ("RNN", {"clip": 0.3, "lengths": [1, 3]}),
    ],
)
def test_options(kind, options):
    check(kind, **options)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("Tanh", "Sigmoid")])
def test_activations(name):
    check("RNN", [name])


def test_activations_take_their_numbers_in_order():
    check("LSTM", ["HardSigmoid", "Elu", "ScaledTanh"])


def test_an_unknown_activation():
    proto = model([node("RNN", "x w r", "y", activations=["Sine"])], [info("x", shape=[2, 1, 3])],
                  ["y"], constants={"w": uniform(1, 2, 3), "r": uniform(1, 2, 2)})  # fmt: skip
    with pytest.raises(OnnxNodeError, match="activations: expected one of .*, got 'Sine'"):
        from_onnx(proto)


@pytest.mark.parametrize(("name", "function"), [("Elu", np.expm1), ("Softplus", None)])
def test_activations_keep_the_digits_of_small_results(name, function):
    """Of -1e-6, and of -17: exp(x) - 1 and log(1 + exp(x)) would keep one digit, or none."""
    x = np.array([-1e-6, -17.0, -3e-8, -0.5], "float32").reshape(1, 4, 1)
    proto = model(
        [node("RNN", "x w r", "y", activations=[name], hidden_size=1)],
        [info("x", shape=[1, 4, 1])], ["y"],
        constants={"w": np.ones((1, 1, 1), "float32"), "r": np.zeros((1, 1, 1), "float32")},
    )  # fmt: skip
    wide = x.astype("float64")
    exact = np.log1p(np.exp(wide)) if function is None else function(wide)
    got = run(from_onnx(proto), x)
    np.testing.assert_allclose(got.reshape(-1), exact.reshape(-1), rtol=3e-7)
