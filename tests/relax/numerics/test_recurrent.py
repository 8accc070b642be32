"""Recurrent layers against PyTorch's, which have the same weights, and ONNX's definition."""

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, row, t
from weft.relax.op.definition import FUNCTIONS as F

torch = pytest.importorskip("torch")
STEPS = ({"s": 0, "b": 2}, {"s": 1, "b": 1}, {"s": 5, "b": 3}, {"s": 3, "b": 0})
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def operands(name, features=4, hidden=3, dtype="float32"):
    gates = GATES[name] * hidden
    states = 2 if name == "lstm" else 1
    return [
        t("s", "b", features, dtype=dtype), t(gates, features, dtype=dtype),
        t(gates, hidden, dtype=dtype), t(gates, dtype=dtype), t(gates, dtype=dtype),
        *[t("b", hidden, dtype=dtype)] * states,
    ]  # fmt: skip


def by_steps(name, reverse=False, order="IFGO", activation="tanh"):
    """A loop of PyTorch's cells."""

    def run(data, weight, recurrent, bias, recurrent_bias, *states):
        given = [torch.from_numpy(np.ascontiguousarray(a)) for a in (data, *states)]
        weights = [torch.from_numpy(np.ascontiguousarray(a)) for a in
                   (weight, recurrent, bias, recurrent_bias)]  # fmt: skip
        if name == "lstm":  # PyTorch's order is IFGO
            parts = [w.chunk(4) for w in weights]
            weights = [torch.cat([p[order.index(c)] for c in "IFGO"]) for p in parts]
        cell = {
            "lstm": torch.lstm_cell, "gru": torch.gru_cell,
            "rnn": torch.rnn_tanh_cell if activation == "tanh" else torch.rnn_relu_cell,
        }[name]  # fmt: skip
        sequence, *state = given
        outputs = [None] * len(sequence)
        for step in range(len(sequence))[:: -1 if reverse else 1]:
            made = cell(sequence[step], state if name == "lstm" else state[0], *weights)
            state = list(made) if name == "lstm" else [made]
            outputs[step] = state[0]
        empty = torch.zeros(0, *state[0].shape, dtype=state[0].dtype)
        stacked = torch.stack(outputs) if outputs else empty
        return [item.numpy() for item in (stacked, *state)]

    return run


def layers():
    for name in GATES:
        for reverse in (False, True):
            yield row(f"nn.{name}", operands(name), by_steps(name, reverse), sizes=STEPS,
                      reverse=reverse, note=f"reverse {reverse}")  # fmt: skip
        yield row(f"nn.{name}", operands(name, dtype="float64"), by_steps(name), sizes=STEPS[2:3])
        yield row(f"nn.{name}", operands(name, 16, 8, "float16"), by_steps(name),
                  sizes=STEPS[2:3])  # fmt: skip
        yield row(f"nn.{name}", operands(name, 1, 1), by_steps(name), sizes=STEPS[1:3],
                  note="size 1")  # fmt: skip
    yield row("nn.lstm", operands("lstm"), by_steps("lstm", order="OGIF"), sizes=STEPS[2:3],
              weight_layout="OGIF", note="OGIF")  # fmt: skip
    yield row("nn.rnn", operands("rnn"), by_steps("rnn", activation="relu"), sizes=STEPS[2:3],
              activation="relu", note="relu")  # fmt: skip


def without_biases():
    for name in GATES:
        function = by_steps(name)

        def reference(data, weight, recurrent, function=function, name=name):
            gates, size = recurrent.shape
            state = [np.zeros((data.shape[1], size))] * (2 if name == "lstm" else 1)
            return function(data, weight, recurrent, np.zeros(gates), np.zeros(gates), *state)

        yield Case(f"nn.{name}", F[f"nn.{name}"], operands(name)[:3], reference, STEPS[:3],
                   note="zeros")  # fmt: skip


def with_options(kind, functions, clip=99.0, reverse=False, after=False, coupled=False):
    """ONNX's layers by their definition; the data of a sequence after its end is not looked at."""
    gate, new_value, output = [
        lambda x, f=f: f(np.clip(x, -clip, clip)) for f in (*functions, np.tanh, np.tanh)[:3]
    ]

    def run(data, weight, recurrent, bias, recurrent_bias, lengths, hidden, *more):
        h, c = hidden.copy(), more[0].copy() if more else None
        outputs = np.zeros((len(data), *h.shape))
        for b, count in enumerate(lengths):
            for step in reversed(range(count)) if reverse else range(count):
                mine = (weight @ data[step, b] + bias).reshape(GATES[kind], -1)
                sums = (recurrent @ h[b] + recurrent_bias).reshape(GATES[kind], -1)
                both = mine + sums
                if kind == "rnn":
                    h[b] = gate(both[0])
                elif kind == "gru":
                    update, reset = gate(both[:2])
                    size = len(update)
                    late = recurrent[2 * size :] @ (reset * h[b]) + recurrent_bias[2 * size :]
                    new = new_value(mine[2] + (reset * sums[2] if after else late))
                    h[b] = (1 - update) * new + update * h[b]
                else:
                    p = more[1].reshape(3, -1)
                    take = gate(both[0] + p[0] * c[b])
                    keep = 1 - take if coupled else gate(both[2] + p[2] * c[b])
                    c[b] = keep * c[b] + take * new_value(both[3])
                    h[b] = gate(both[1] + p[1] * c[b]) * output(c[b])
                outputs[step, b] = h[b]
        return [outputs, h, *([c] if more else [])]

    return run


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softsign(x):
    return x / (1 + np.abs(x))


def of_onnx():
    ways = [
        ("rnn", {"activations": ["softsign"], "clip": 0.3}, ((softsign,), 0.3)),
        ("rnn", {"activations": ["affine"], "alphas": [0.5], "betas": [0.25], "reverse": True},
         ((lambda x: 0.5 * x + 0.25,), 99.0, True)),
        ("gru", {}, ((sigmoid,),)), ("gru", {"reset_after": True}, ((sigmoid,), 99.0, False, True)),
        ("lstm", {"clip": 0.4}, ((sigmoid,), 0.4)),
        ("lstm", {"input_forget": True, "reverse": True},
         ((sigmoid,), 99.0, True, False, True)),
    ]  # fmt: skip
    for kind, attributes, options in ways:

        def layer(*tensors, kind=kind, attributes=attributes):
            *parts, lengths, hidden = tensors[:7]
            states = [hidden, *tensors[7:]]
            return F["nn.recurrent_layer"](*parts, states, lengths, kind, **attributes)

        given = operands(kind)
        lengths = t("b", dtype="int64", fill=lambda generator, shape: generator.integers(
            0, 4, shape))  # fmt: skip
        more = [t(9)] if kind == "lstm" else []
        yield Case("nn.recurrent_layer", layer, [*given[:5], lengths, *given[5:], *more],
                   with_options(kind, *options), ({"s": 3, "b": 3},),
                   note=f"{kind} {attributes}")  # fmt: skip


def rounded(state):
    """A state as bytes hold it."""
    low, high = min(state.min(initial=0), 0), max(state.max(initial=0), 0)
    scale = (high - low) / 255 if high > low else 1
    codes = np.round(state / scale) + np.round(-low / scale)
    return (np.clip(codes, 0, 255) - np.round(-low / scale)) * scale


def with_rounded_state(reverse):
    """All sequences take each step together: one range holds the states of all."""

    def run(data, weight, recurrent, bias, recurrent_bias, hidden, lengths=None):
        h, steps = hidden.astype("float64"), len(data)
        outputs = np.zeros((steps, *h.shape))
        ends = [steps] * len(h) if lengths is None else lengths.tolist()
        for step in range(steps):
            read = rounded(h)
            for b, end in enumerate(ends):
                if step < end:
                    at = end - 1 - step if reverse else step
                    mine = weight @ data[at, b] + bias
                    h[b] = outputs[at, b] = np.tanh(mine + recurrent @ read[b] + recurrent_bias)
        return [outputs, h]

    return run


def of_rounded_states():
    ends = t("b", dtype="int64", fill=lambda generator, shape: generator.integers(0, 5, shape))
    for size, reverse, more in ((3, False, []), (8, True, []), (16, False, [ends]),
                                (3, True, [ends])):  # fmt: skip

        def layer(*tensors, reverse=reverse):
            *parts, state = tensors[:6]
            return F["nn.recurrent_layer"](*parts, [state], *[*tensors[6:], None][:1],
                                           reverse=reverse, quantize_state=True)  # fmt: skip

        yield Case("nn.recurrent_layer", layer, [*operands("rnn", 4, size), *more],
                   with_rounded_state(reverse), ({"s": 4, "b": 1}, {"s": 4, "b": 5}),
                   note=f"{size} rounded {reverse} {len(more)}")  # fmt: skip


def of_small_weights():
    """Weights of the state in int8, with a factor for each row."""

    def drawn(generator, shape):
        return generator.integers(-128, 128, shape)

    for kind, size in (("rnn", 3), ("rnn", 16), ("lstm", 1), ("lstm", 8)):
        gates, more = GATES[kind] * size, [t(3 * size, fill=lambda _, shape: np.zeros(shape))]
        data, weight, _, *rest = operands(kind, 4, size)
        tensors = [data, weight, t(gates, size, dtype="int8", fill=drawn), *rest,
                   *more[: kind == "lstm"], t(gates)]  # fmt: skip

        def layer(*tensors, kind=kind):
            return F["nn.recurrent_layer"](*tensors[:5], list(tensors[5:]), None, kind)

        def wanted(data, weight, recurrent, bias, recurrent_bias, *states, kind=kind):
            whole = recurrent.astype("float32") * states[-1][:, None]
            count = 2 if kind == "lstm" else 1
            return by_steps(kind, order="IOFG")(
                data, weight, whole, bias, recurrent_bias, *states[:count]
            )

        yield Case("nn.recurrent_layer", layer, tensors, wanted,
                   ({"s": 4, "b": 1}, {"s": 3, "b": 5}),
                   note=f"int8 {kind} {size}")  # fmt: skip


def of_bytes():
    """Weights in int8 and a rounded state, which are multiplied as bytes."""

    def drawn(generator, shape):
        return generator.integers(-128, 128, shape)

    ends = t("b", dtype="int64", fill=lambda generator, shape: generator.integers(0, 5, shape))
    for size, reverse, projected, more in (
        (1, False, False, []), (3, True, True, []), (4, False, True, [ends]), (7, True, False, []),
        (16, False, False, [ends]), (33, True, True, []), (24, False, True, []),
    ):  # fmt: skip
        data, weight, _, *rest = operands("rnn", 4, size)
        if projected:
            data, weight = t("s", "b", size), t(size, 0)
        tensors = [data, weight, t(size, size, dtype="int8", fill=drawn), *rest,
                   t(size, fill=lambda generator, shape: generator.uniform(0, 0.01, shape)),
                   *more]  # fmt: skip
        options = {"reverse": reverse, "quantize_state": True, "projected": projected}

        def layer(*tensors, options=options):
            parts, states, ends = tensors[:5], list(tensors[5:7]), [*tensors[7:], None][0]
            return F["nn.recurrent_layer"](*parts, states, ends, **options)

        def wanted(data, weight, recurrent, bias, recurrent_bias, state, factors, *more,
                   reverse=reverse, projected=projected):  # fmt: skip
            whole = recurrent.astype("float64") * factors[:, None]
            weight = np.eye(len(bias)) if projected else weight
            parts = data, weight, whole, bias, recurrent_bias, state
            return with_rounded_state(reverse)(*parts, *more)

        sizes = ({"s": 4, "b": 1}, {"s": 4, "b": 7}, {"s": 0, "b": 2}, {"s": 3, "b": 0})
        yield Case("nn.recurrent_layer", layer, tensors, wanted, sizes,
                   note=f"bytes {size} {reverse} {projected} {len(more)}")  # fmt: skip


TABLE = Table([*layers(), *without_biases(), *of_onnx(), *of_rounded_states(), *of_small_weights(),
               *of_bytes()])  # fmt: skip


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_layer(case):
    TABLE.check(case)
