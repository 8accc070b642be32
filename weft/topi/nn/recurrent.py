"""Recurrent layers over a sequence, as loops: the LSTM, the GRU and the plain recurrent network.

Data is (steps, batch, features), weights (gates * hidden, features) and (gates * hidden, hidden).
The products with the data of all steps are one matrix product before the loop; inside it a step
reads the state of the one before. Sums of 16-bit floats are float32. Sources: Hochreiter and
Schmidhuber 1997 with the forget gate of Gers et al. 2000; Cho et al. 2014 (the reset gate applied
after the product, as in cuDNN and PyTorch).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.ir.expr import PrimExpr
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import extern, reduce_axis
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import decl_buffer
from weft.topi.extents import compute_ax, may_be_equal, shape_text
from weft.topi.moments import wide

Cell = Callable[[Callable[[int], PrimExpr], Callable[[int], PrimExpr], PrimExpr, Any], PrimExpr]
"""(data part of a gate, state part of a gate, hidden, the other state) -> the new hidden value."""


def _check_shapes(name: str, gates: int, tensors: Sequence[Tensor]) -> None:
    """Raise IRValueError unless data, weights, biases and state fit together."""
    data, weight, recurrent, bias, recurrent_bias, hidden, *others = tensors
    _, batch, features = data.shape
    size = hidden.shape[1]
    expected = [
        ("weight_ih", weight, [size * gates, features]),
        ("weight_hh", recurrent, [size * gates, size]),
        ("bias_ih", bias, [size * gates]),
        ("bias_hh", recurrent_bias, [size * gates]),
        *[("state", state, [batch, size]) for state in (hidden, *others)],
    ]
    for what, tensor, shape in expected:
        pairs = zip(tensor.shape, shape, strict=False)
        if tensor.ndim != len(shape) or not all(may_be_equal(a, b) for a, b in pairs):
            raise IRValueError(
                f"{name}: {what}: expected the shape {shape_text(shape)}, got "
                f"{shape_text(tensor.shape)}"
            )


def _of_data(data: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """What the data adds to every gate at every step: (steps, batch, gates * hidden)."""
    kind = wide(data.dtype)
    k = reduce_axis((0, data.shape[2]), name="k")
    product = compute_ax(
        [data.shape[0], data.shape[1], weight.shape[0]],
        lambda s, b, j: te_reduction.sum(
            op.cast(kind, data(s, b, k.var)) * op.cast(kind, weight(j, k.var)), axis=k
        ),
        "data_gates",
    )
    return compute_ax(
        product.shape, lambda s, b, j: product(s, b, j) + op.cast(kind, bias(j)), "data_gates_bias"
    )


def _sequence(
    name: str, gates: int, tensors: Sequence[Tensor], cell: Cell, reverse: bool
) -> list[Tensor]:
    """Outputs of all steps, then the last states; ``cell`` gives the new hidden value."""
    _check_shapes(name, gates, tensors)
    data, weight, recurrent, bias, recurrent_bias, *states = tensors
    ready = _of_data(data, weight, bias)
    steps, batch, _ = data.shape
    size, kind = states[0].shape[1], wide(data.dtype)

    def body(ins: Any, outs: Any) -> Any:
        ib = ir_builder.create()
        mine, weights, biases, *first = [ib.buffer_ptr(buffer) for buffer in ins]
        out, *last = [ib.buffer_ptr(buffer) for buffer in outs]
        running = [ib.allocate(kind, [size], "running") for _ in last]
        sums = ib.allocate(kind, [gates * size], "sums")
        with ib.for_range(0, batch, "b") as b:
            with ib.for_range(0, size, "j") as j:
                for state, start in zip(running, first, strict=True):
                    state[j] = op.cast(kind, start[b, j])
            with ib.for_range(0, steps, "t") as t:
                step = steps - 1 - t if reverse else t
                with ib.for_range(0, gates * size, "g") as g:
                    sums[g] = op.cast(kind, biases[g])
                    with ib.for_range(0, size, "k") as k:
                        weight = op.cast(kind, weights[g, k])
                        sums[g] = sums[g] + weight * running[0][k]
                with ib.for_range(0, size, "j") as j:
                    value = cell(
                        lambda gate: mine[step, b, j + size * gate],
                        lambda gate: sums[j + size * gate],
                        running[0][j],
                        (running[1:], j),
                    )
                    running[0][j] = value
                    out[step, b, j] = op.cast(data.dtype, running[0][j])
            with ib.for_range(0, size, "j") as j:
                for state, end in zip(running, last, strict=True):
                    end[b, j] = op.cast(data.dtype, state[j])
        return ib.get()

    inputs = [ready, recurrent, recurrent_bias, *states]
    shapes = [[steps, batch, size], *[[batch, size]] * len(states)]
    reads = [decl_buffer(t.shape, t.dtype, t.op.name) for t in inputs]
    writes = [decl_buffer(shape, data.dtype, f"out{i}") for i, shape in enumerate(shapes)]
    made = extern(
        shapes, inputs, body, name=name, dtype=[data.dtype] * len(shapes), in_buffers=reads,
        out_buffers=writes, tag=name,
    )  # fmt: skip
    return list(made)


def lstm(
    data: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor,
    hidden: Tensor, cell: Tensor, reverse: bool = False, weight_layout: str = "IFGO",
) -> list[Tensor]:  # fmt: skip
    """[outputs, last hidden, last cell]; the gates lie in the order of ``weight_layout``."""
    if sorted(weight_layout) != sorted("IFGO"):
        raise IRValueError(f"lstm: weight_layout: expected the letters IFGO, got {weight_layout!r}")

    def step(mine: Any, sums: Any, _hidden: Any, others: Any) -> PrimExpr:
        (state,), j = others
        gate = {letter: mine(i) + sums(i) for i, letter in enumerate(weight_layout)}
        kept = op.sigmoid(gate["F"]) * state[j]
        state[j] = kept + op.sigmoid(gate["I"]) * op.tanh(gate["G"])
        made: PrimExpr = op.sigmoid(gate["O"]) * op.tanh(state[j])
        return made

    tensors = [data, weight_ih, weight_hh, bias_ih, bias_hh, hidden, cell]
    return _sequence("lstm", 4, tensors, step, reverse)


def gru(
    data: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor,
    hidden: Tensor, reverse: bool = False,
) -> list[Tensor]:  # fmt: skip
    """[outputs, last hidden]; gates: reset, update, new."""

    def step(mine: Any, sums: Any, before: Any, _others: Any) -> PrimExpr:
        reset, update = op.sigmoid(mine(0) + sums(0)), op.sigmoid(mine(1) + sums(1))
        new = op.tanh(mine(2) + reset * sums(2))
        made: PrimExpr = (op.const(1, new.dtype) - update) * new + update * before
        return made

    tensors = [data, weight_ih, weight_hh, bias_ih, bias_hh, hidden]
    return _sequence("gru", 3, tensors, step, reverse)


def rnn(
    data: Tensor, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor, bias_hh: Tensor,
    hidden: Tensor, activation: str = "tanh", reverse: bool = False,
) -> list[Tensor]:  # fmt: skip
    """[outputs, last hidden] of hidden = activation(data part + state part): tanh or relu."""
    if activation not in ("tanh", "relu"):
        raise IRValueError(f"rnn: activation: expected tanh or relu, got {activation!r}")

    def step(mine: Any, sums: Any, _before: Any, _others: Any) -> PrimExpr:
        total = mine(0) + sums(0)
        made: PrimExpr = op.maximum(total, op.const(0, total.dtype))
        return op.tanh(total) if activation == "tanh" else made

    tensors = [data, weight_ih, weight_hh, bias_ih, bias_hh, hidden]
    return _sequence("rnn", 1, tensors, step, reverse)
