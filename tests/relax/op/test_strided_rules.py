"""Struct-info rules of windows and diagonals: what is known of the result, what is refused."""

import re

import pytest

from weft.relax import op
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRIndexError, IRTypeError, IRValueError
from weft.tir.expr import Var as TirVar

N = TirVar("n", "int64")


def tensor(*dims, dtype="float32"):
    return TensorStructInfo(dims, dtype)


@pytest.mark.parametrize(
    ("function", "infos", "expected"),
    [
        (lambda x: op.unfold(x, 1, 3, 2), [tensor(N, 8)], tensor(N, 3, 3)),
        (lambda x: op.unfold(x, 0, 2, 1), [tensor(N)], tensor(N - 1, 2)),
        (lambda x: op.unfold(x, 0, 2, 1), [TensorStructInfo(None, "int8", ndim=2)],
         TensorStructInfo(None, "int8", ndim=3)),
        (op.diagonal, [tensor(N, N, 3)], tensor(3, N)),
        (lambda x: op.diagonal(x, -2, -1, 0), [tensor(5, 2, 4)], tensor(2, 2)),
        (op.diagonal_scatter, [tensor(N, N), tensor(N)], tensor(N, N)),
        (lambda x: op.as_strided(x, (2, 3), (1, 0)), [tensor(N)], tensor(2, 3)),
        (lambda x: op.nn.im2col(x, [3, 2], padding=1), [tensor(N, 2, 5, 6)],
         tensor(N, 2, 3, 2, 5, 7)),
        (lambda x, o: op.nn.deform_im2col(x, o, [3, 2], padding=1),
         [tensor(N, 2, 5, 6), TensorStructInfo(None, "float32", ndim=4)],
         tensor(N, 2, 3, 2, 5, 7)),
        (lambda x: op.nn.col2im(x, (5, N)), [tensor(1, 2, 3, 2, 3, N)], tensor(1, 2, 5, N)),
    ],
)  # fmt: skip
def test_rule(function, infos, expected, infer):
    assert infer(function, *infos) == expected


@pytest.mark.parametrize(
    ("function", "infos", "error", "message"),
    [
        (lambda x: op.unfold(x, 0, 3, 1), [tensor(2)], IRValueError,
         "relax.unfold: a window of 3 elements does not fit into the 2 of axis 0"),
        (lambda x: op.unfold(x, 0, 3, 0), [tensor(2)], IRValueError, "a step of 1 or more"),
        (lambda x: op.unfold(x, 1, 3, 1), [tensor(2)], IRIndexError, "axis 1 is out of range"),
        (op.diagonal, [tensor(2)], IRValueError, "expected at least 2 dimensions, got 1"),
        (lambda x: op.diagonal(x, 0, 1, -1), [tensor(2, 3)], IRValueError, "got 1 twice"),
        (op.diagonal_scatter, [tensor(2, 3), tensor(3)], IRValueError,
         "src: expected the shape (2), got (3)"),
        (op.diagonal_scatter, [tensor(2, 3), tensor(2, dtype="int8")], IRTypeError,
         "the data types must be equal"),
        (lambda x: op.as_strided(x, (2, 3), (1,)), [tensor(4)], IRValueError,
         "strides: expected 2 of them, got 1"),
        (lambda x: op.nn.im2col(x, [3, 3]), [tensor(1, 2, 2, 4)], IRValueError,
         "the window reaches over 3 elements, the padded data has 2"),
        (lambda x, o: op.nn.deform_im2col(x, o, 2), [tensor(1, 2, 4, 4), tensor(1, 8, 4, 4)],
         IRValueError,
         "relax.nn.deform_im2col: offset: expected the shape (1, 8, 3, 3), got (1, 8, 4, 4)"),
        (lambda x, o: op.nn.deform_im2col(x, o, 2, offset_groups=3),
         [tensor(1, 2, 4, 4), tensor(1, 8, 3, 3)], IRValueError,
         "2 channels are not a multiple of offset_groups = 3"),
        (lambda x, o: op.nn.deform_im2col(x, o, 2, offset_groups=0),
         [tensor(1, 2, 4, 4), tensor(1, 8, 3, 3)], IRValueError,
         "offset_groups: expected 1 or more, got 0"),
        (lambda x, o: op.nn.deform_im2col(x, o, (2, 2, 2)),
         [tensor(1, 2, 4, 4), tensor(1, 8, 3, 3)], IRValueError,
         "kernel_size: expected 1 or 2 values, got 3"),
        (lambda x, o: op.nn.deform_im2col(x, o, 5), [tensor(1, 2, 4, 4), tensor(1, 50, 1, 1)],
         IRValueError, "the window reaches over 5 elements, the padded data has 4"),
        (lambda x: op.nn.col2im(x, (4,)), [tensor(1, 2, 3)], IRValueError,
         "columns: expected 4 dimensions, got 3"),
    ],
)  # fmt: skip
def test_refused(function, infos, error, message, build):
    with pytest.raises(error, match=re.escape(message)):
        build(function, *infos)
