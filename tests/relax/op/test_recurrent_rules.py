"""Struct-info rules of recurrent layers."""

import re

import pytest

from tests.lib.rule_cases import check_rule
from weft.relax import op
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.expr import Var as TirVar

N, M = TirVar("n", "int64"), TirVar("m", "int64")


def tensor(*dims, dtype="float32"):
    return TensorStructInfo(dims, dtype)


LSTM = [tensor(7, 2, 4), tensor(12, 4), tensor(12, 3), tensor(12), tensor(12), tensor(2, 3),
        tensor(2, 3)]  # fmt: skip
GRU = [tensor(7, 2, 4), tensor(9, 4), tensor(9, 3), tensor(9), tensor(9), tensor(2, 3)]
RNN = [tensor(7, 2, 4), tensor(3, 4), tensor(3, 3), tensor(3), tensor(3), tensor(2, 3)]
OUT, STATE = tensor(7, 2, 3), tensor(2, 3)

RULES = {
    "lstm": (op.nn.lstm, LSTM, TupleStructInfo([OUT, STATE, STATE])),
    "gru": (op.nn.gru, GRU, TupleStructInfo([OUT, STATE])),
    "rnn": (op.nn.rnn, RNN, TupleStructInfo([OUT, STATE])),
}

SYMBOLIC = [
    (op.nn.gru, [tensor(N, M, 4), *GRU[1:3]], TupleStructInfo([tensor(N, M, 3), tensor(M, 3)])),
    (op.nn.rnn, [tensor(N, 2, 4), tensor(M, 4), tensor(M, M)],
     TupleStructInfo([tensor(N, 2, M), tensor(2, M)])),
]  # fmt: skip

LAYER = [tensor(7, 2, 4), tensor(9, 4), tensor(9, 3), tensor(9), tensor(9), tensor(2, 3)]


def layer(*given, **attributes):
    *parts, hidden = given
    return op.nn.recurrent_layer(*parts, [hidden], **{"kind": "gru", **attributes})


def with_lengths(*given):
    *parts, hidden, lengths = given
    return op.nn.recurrent_layer(*parts, [hidden], lengths, "gru")


ERRORS = [
    (lambda *a: layer(*a, kind="gated"), LAYER, IRValueError,
     "relax.nn.recurrent_layer: kind: expected rnn, gru, lstm, got 'gated'"),
    (lambda *a: layer(*a, kind="lstm"), LAYER, IRValueError,
     "states: expected tensors of [2, 2, 1] dimensions, got [2]"),
    (lambda *a: layer(*a, activations=["sine", "tanh"]), LAYER, IRValueError,
     "elu, got 'sine'"),
    (lambda *a: layer(*a, activations=["tanh"]), LAYER, IRValueError,
     "activations: expected 2 for gru, got 1"),
    (lambda *a: layer(*a, alphas=[1.0]), LAYER, IRValueError, "alphas: expected 2 for gru, got 1"),
    (lambda *a: layer(*a, quantize_state=True), LAYER, IRValueError,
     "quantize_state: expected False for a gru, whose reset gate scales the state"),
    (lambda *a: layer(*a, projected=True), LAYER, IRValueError,
     "projected: expected False for a gru, whose reset gate scales the state"),
    (lambda *a: layer(*a, kind="rnn", projected=True), [RNN[0], tensor(3, 0), *RNN[2:]],
     IRValueError, "data: expected (7, 2, 3), got (7, 2, 4)"),
    (lambda *a: layer(*a, kind="rnn", projected=True), [tensor(7, 2, 3), *RNN[1:]],
     IRValueError, "weight_ih: expected (3, 0), got (3, 4)"),
    (layer, [LAYER[0], tensor(9, 5), *LAYER[2:]], IRValueError,
     "relax.nn.recurrent_layer: weight_ih: expected (9, 4), got (9, 5)"),
    (layer, [*LAYER[:5], tensor(2, 4)], IRValueError, "states: expected (2, 3), got (2, 4)"),
    (layer, [*LAYER[:2], tensor(9, 3, dtype="int8"), *LAYER[3:]], IRValueError,
     "states: expected tensors of [2, 1] dimensions, got [2]"),
    (with_lengths, [*LAYER, tensor(2)], IRTypeError, "lengths: expected integers, got float32"),
    (op.nn.lstm, [*LSTM[:2], tensor(12, 4), *LSTM[3:]], IRValueError,
     "relax.nn.lstm: weight_ih: expected (16, 4), got (12, 4)"),
    (op.nn.gru, [*GRU[:5], tensor(3, 3)], IRValueError, "hidden: expected (2, 3), got (3, 3)"),
    (op.nn.gru, [tensor(7, 4), *GRU[1:]], IRValueError, "data: expected 3 dimensions, got 2"),
    (op.nn.rnn, [TensorStructInfo(None, "float32", ndim=3), *RNN[1:3]], IRTypeError,
     "relax.nn.rnn: the shapes of data and weight_hh are not known"),
    (lambda *a: op.nn.rnn(*a, activation="gelu"), RNN, IRValueError,
     "activation: expected tanh or relu, got 'gelu'"),
    (lambda *a: op.nn.lstm(*a, weight_layout="IFCO"), LSTM, IRValueError,
     "weight_layout: expected the letters IFGO, got 'IFCO'"),
    (op.nn.rnn, [*RNN[:5], tensor(2, 3, dtype="float16")], IRTypeError,
     "the data types must be equal, got float32 and float16"),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(RULES))
def test_rule(name, infer):
    make, infos, expected = RULES[name]
    check_rule(infer, make, infos, expected)


@pytest.mark.parametrize(("make", "infos", "expected"), SYMBOLIC)
def test_symbolic_results(make, infos, expected, infer):
    assert infer(make, *infos) == expected


@pytest.mark.parametrize(("make", "infos", "error", "message"), ERRORS)
def test_errors_name_the_operator_and_the_numbers(make, infos, error, message, build):
    with pytest.raises(error, match=re.escape(message)):
        build(make, *infos)
