"""Struct-info rules of search, histograms and running extremes: results, and what is refused."""

import re

import pytest

from weft.relax import op
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.support.errors import IRIndexError, IRTypeError, IRValueError
from weft.tir.expr import Var as TirVar

N = TirVar("n", "int64")


def tensor(*dims, dtype="float32"):
    return TensorStructInfo(dims, dtype)


@pytest.mark.parametrize(
    ("function", "infos", "expected"),
    [
        (op.searchsorted, [tensor(5), tensor(N, 2)], tensor(N, 2, dtype="int64")),
        (lambda x, y: op.searchsorted(x, y, out_int32=True), [tensor(N, 5), tensor(N, 2)],
         tensor(N, 2, dtype="int32")),
        (lambda x, y, z: op.histogram(x, y, z, 7), [tensor(N), tensor(), tensor()], tensor(7)),
        (op.logcumsumexp, [tensor(N, 2)], tensor(N, 2)),
        (op.cummax, [tensor(N)], TupleStructInfo([tensor(N), tensor(N, dtype="int64")])),
    ],
)  # fmt: skip
def test_rule(function, infos, expected, infer):
    assert infer(function, *infos) == expected


@pytest.mark.parametrize(
    ("function", "infos", "error", "message"),
    [
        (op.searchsorted, [tensor(), tensor(2)], IRValueError, "at least 1 dimension, got 0"),
        (op.searchsorted, [tensor(2, 5), tensor(3, 2)], IRValueError,
         "sorted_sequence: expected the rows (3, 5)"),
        (op.searchsorted, [tensor(2, 5), tensor(2)], IRValueError,
         "values: expected 2 dimensions, got 1"),
        (op.searchsorted, [tensor(5), tensor(2, dtype="int32")], IRTypeError, "must be equal"),
        (lambda x, y, z: op.histogram(x, y, z, 0), [tensor(N), tensor(), tensor()], IRValueError,
         "bins: expected 1 or more, got 0"),
        (lambda x, y, z: op.histogram(x, y, z, 2), [tensor(2, 2), tensor(), tensor()],
         IRValueError, "expected 1 dimensions, got 2"),
        (op.logcumsumexp, [tensor(2, dtype="int32")], IRTypeError, "expected a floating-point"),
        (lambda x: op.cummax(x, 1), [tensor(2)], IRIndexError, "axis 1 is out of range"),
        (op.cummin, [tensor(2, dtype="bool")], IRTypeError, "expected numbers, got bool"),
    ],
)  # fmt: skip
def test_refused(function, infos, error, message, build):
    with pytest.raises(error, match=re.escape(message)):
        build(function, *infos)
