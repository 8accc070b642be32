"""Recurrent layers over a sequence: ``lstm``, ``gru`` and ``rnn`` (operators of weft's own).

Data is (steps, batch, features); a cell is a sequence of one step. Biases and initial states may be
None, which means zeros. Weights are laid out as in PyTorch: (gates * hidden, features) and
(gates * hidden, hidden).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft import topi
from weft.ir.expr import Extent
from weft.ir.op import Op
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import differ, simplified
from weft.relax.op.create import zeros
from weft.relax.op.definition import FUNCTIONS, operator
from weft.relax.op.infer import (
    check_float,
    check_rank,
    common_dtype,
    dims_of,
    fail,
    result,
    show_dims,
)
from weft.relax.op.lowering import dims
from weft.relax.op.reference.nn import recurrent as reference
from weft.relax.op.requirements import Required
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.support.errors import IRTypeError
from weft.topi.nn.recurrent_layer import GATES as _GATES

_RANKS = (3, 2, 2, 1, 1, 2, 2)


def infer_recurrent(call: Call) -> StructInfo:
    """(outputs of all steps, last hidden state), and for lstm the last cell state."""
    name = call.op.name.rpartition(".")[2]
    infos = [check_rank(call, index, _RANKS[index]) for index in range(len(call.args))]
    dtype = common_dtype(call, infos)
    check_float(call, infos[0])
    data, weight, recurrent, hidden = (dims_of(infos[index]) for index in (0, 1, 2, 5))
    states = len(infos) - 5
    if name == "lstm" and sorted(call.attrs["weight_layout"]) != sorted("IFGO"):
        fail(call, f"weight_layout: expected the letters IFGO, got {call.attrs['weight_layout']!r}")
    if name == "rnn" and call.attrs["activation"] not in ("tanh", "relu"):
        fail(call, f"activation: expected tanh or relu, got {call.attrs['activation']!r}")
    if data is None or weight is None or recurrent is None or hidden is None:
        unknown = result(None, dtype, 2)
        return TupleStructInfo([result(None, dtype, 3), *[unknown] * states])
    steps, batch, _ = data
    size = recurrent[1]
    shapes = operand_shapes(_GATES[name], states, data, size)
    for index, expected in shapes.items():
        _check_dims(call, index, infos[index], expected)
    state = result([batch, size], dtype)
    return TupleStructInfo([result([steps, batch, size], dtype), *[state] * states])


def operand_shapes(
    gates: int, states: int, data: Sequence[Extent], size: Extent
) -> dict[int, Sequence[Extent]]:
    """The shapes that weights, biases and states must have, given the data's dimensions."""
    _, batch, features = data
    rows = simplified(size * gates)
    shapes = {1: (rows, features), 2: (rows, size), 3: (rows,), 4: (rows,)}
    return {**shapes, **{5 + state: (batch, size) for state in range(states)}}


def _check_dims(call: Call, index: int, info: TensorStructInfo, expected: Sequence[Extent]) -> None:
    given = dims_of(info)
    if given is not None and any(differ(a, b) for a, b in zip(given, expected, strict=True)):
        name = call.op.attributes["params"][index]
        fail(call, f"{name}: expected {show_dims(expected)}, got {show_dims(given)}")


def _agreeing(call: Call) -> Required:
    data, recurrent = (dims(call.args[index]) for index in (0, 2))
    gates = _GATES[call.op.name.rpartition(".")[2]]
    shapes = operand_shapes(gates, len(call.args) - 5, data, recurrent[1])
    return dict(shapes.items())


@operator(
    "relax.nn.lstm", infer_recurrent, te=topi.nn.lstm, requires=_agreeing, numpy=reference.lstm
)
def _lstm(
    data: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias_ih: Expr,
    bias_hh: Expr,
    hidden: Expr,
    cell: Expr,
    reverse: bool = False,
    weight_layout: str = "IFGO",
) -> None:
    """The long short-term memory."""


@operator("relax.nn.gru", infer_recurrent, te=topi.nn.gru, requires=_agreeing, numpy=reference.gru)
def _gru(
    data: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias_ih: Expr,
    bias_hh: Expr,
    hidden: Expr,
    reverse: bool = False,
) -> None:
    """The gated recurrent unit."""


@operator("relax.nn.rnn", infer_recurrent, te=topi.nn.rnn, requires=_agreeing, numpy=reference.rnn)
def _rnn(
    data: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias_ih: Expr,
    bias_hh: Expr,
    hidden: Expr,
    activation: str = "tanh",
    reverse: bool = False,
) -> None:
    """The plain recurrent network."""


def _or_zeros(name: str, operands: Sequence[Expr | None]) -> Sequence[Expr | None]:
    """The operands, with zeros for biases and states that are None."""
    data, weight, recurrent, *others = operands
    if all(item is not None for item in others):
        return operands
    infos = [getattr(item, "struct_info", None) for item in (data, recurrent)]
    first, second = [
        (dims_of(info), str(info.dtype)) if isinstance(info, TensorStructInfo) else (None, "")
        for info in infos
    ]
    if first[0] is None or second[0] is None:
        raise IRTypeError(
            f"relax.nn.{name}: the shapes of data and weight_hh are not known, so biases and "
            "states must be given"
        )
    (gates, size), batch, dtype = second[0], first[0][1], first[1]
    shapes = [(gates,), (gates,), *[(batch, size)] * (len(others) - 2)]
    filled = [
        zeros(shape, dtype) if item is None else item
        for item, shape in zip(others, shapes, strict=True)
    ]
    return [data, weight, recurrent, *filled]


def lstm(
    data: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias_ih: Expr | None = None,
    bias_hh: Expr | None = None,
    hidden: Expr | None = None,
    cell: Expr | None = None,
    reverse: bool = False,
    weight_layout: str = "IFGO",
) -> Call:
    """(outputs, last hidden, last cell) of a long short-term memory.

    ``weight_layout`` is the order of the gates in the weights: input (I), forget (F), cell (G) and
    output (O). ``reverse`` runs from the last step to the first.
    """
    operands = [data, weight_ih, weight_hh, bias_ih, bias_hh, hidden, cell]
    return _lstm(*_or_zeros("lstm", operands), reverse, weight_layout)


def gru(
    data: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias_ih: Expr | None = None,
    bias_hh: Expr | None = None,
    hidden: Expr | None = None,
    reverse: bool = False,
) -> Call:
    """(outputs, last hidden) of a gated recurrent unit; gates: reset, update, new."""
    operands = [data, weight_ih, weight_hh, bias_ih, bias_hh, hidden]
    return _gru(*_or_zeros("gru", operands), reverse)


def rnn(
    data: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias_ih: Expr | None = None,
    bias_hh: Expr | None = None,
    hidden: Expr | None = None,
    activation: str = "tanh",
    reverse: bool = False,
) -> Call:
    """(outputs, last hidden) of a plain recurrent network with tanh or relu."""
    operands = [data, weight_ih, weight_hh, bias_ih, bias_hh, hidden]
    return _rnn(*_or_zeros("rnn", operands), activation, reverse)


def _replace_builders(functions: dict[str, Callable[..., Call]]) -> None:
    for name, function in functions.items():
        Op.get(f"relax.nn.{name}").attributes["function"] = function
        FUNCTIONS[f"nn.{name}"] = function


_replace_builders({"lstm": lstm, "gru": gru, "rnn": rnn})
