"""What the loops of a recurrent layer start from: its operands' shapes, and terms of the data."""

from __future__ import annotations

from collections.abc import Sequence

from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi.extents import compute_ax, may_be_equal, shape_text
from weft.topi.moments import wide


def check_shapes(name: str, gates: int, tensors: Sequence[Tensor], projected: bool = False) -> None:
    """Raise IRValueError unless data, weights, biases and state fit together."""
    data, weight, recurrent, bias, recurrent_bias, hidden, *others = tensors
    steps, batch, features = data.shape
    size = hidden.shape[1]
    expected = [("data", data, [steps, batch, size * gates])] if projected else []
    expected += [
        ("weight_ih", weight, [size * gates, op.const(0, "int64") if projected else features]),
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


def of_data(data: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The term of the data for every step and gate: (steps, batch, gates * hidden)."""
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


def both_biases(bias: Tensor, recurrent_bias: Tensor, kind: DataType) -> Tensor:
    """The biases of the data's terms and of the state's, added up."""
    return compute_ax(
        bias.shape,
        lambda j: op.cast(kind, bias(j)) + op.cast(kind, recurrent_bias(j)),
        "both_biases",
    )
