"""Struct-info rule of memory.view: what is known of a view, and views that leave their data."""

import re

import pytest

from weft.relax import op
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.expr import Var as TirVar

N = TirVar("n", "int64")


def tensor(*dims, dtype="float32"):
    return TensorStructInfo(dims, dtype)


@pytest.mark.parametrize(
    ("info", "arguments", "expected"),
    [
        (tensor(16), {"shape": (4, 4)}, tensor(4, 4)),
        (tensor(16), {"shape": (8,)}, tensor(8)),
        (tensor(16), {"dtype": "int32"}, tensor(16, dtype="int32")),
        (tensor(16), {"dtype": "float16"}, tensor(16, dtype="float16")),
        (tensor(16), {"shape": (32,), "dtype": "float16"}, tensor(32, dtype="float16")),
        (tensor(16), {"shape": (12,), "relative_byte_offset": 16}, tensor(12)),
        (tensor(N), {"shape": (N // 2,)}, tensor(N // 2)),
        (TensorStructInfo(None, ""), {"dtype": "float32"}, TensorStructInfo(None, "float32")),
        (tensor(16, dtype=""), {"dtype": "int8"}, tensor(16, dtype="int8")),
        (TensorStructInfo(None, "float32"), {"shape": (4,)}, tensor(4)),
        (tensor(16), {"relative_byte_offset": 0}, tensor(16)),
    ],
)
def test_view(info, arguments, expected, infer):
    assert infer(lambda x: op.memory.view(x, **arguments), info) == expected


@pytest.mark.parametrize(
    ("info", "arguments", "error", "message"),
    [
        (tensor(16), {"shape": (17,)}, IRValueError, "the view needs 68 bytes, the data has 64"),
        (tensor(16, dtype=""), {"shape": (17,)}, IRValueError,
         "the view needs 17 elements, the data has 16"),
        (tensor(N), {"shape": (N + 1,)}, IRValueError, "relax.memory.view: the view needs"),
        (tensor(N), {"shape": (N, 2)}, None, ""),
        (tensor(16), {"dtype": "float64"}, IRValueError,
         "a view of float32 as float64 ends after the data; give the shape"),
        (tensor(16), {"shape": (13,), "relative_byte_offset": 16}, IRValueError,
         "the view needs 68 bytes, the data has 64"),
        (TensorStructInfo(None, ""), {"relative_byte_offset": 16}, IRValueError,
         "16 bytes on, ends after the data"),
    ],
)  # fmt: skip
def test_view_beyond_the_data(info, arguments, error, message, build):
    if error is None:  # n may be 0
        build(lambda x: op.memory.view(x, **arguments), info)
        return
    with pytest.raises(error, match=re.escape(message)):
        build(lambda x: op.memory.view(x, **arguments), info)


def test_shape_and_offset_must_be_what_they_are_called(build):
    with pytest.raises(IRTypeError, match="shape: expected a shape"):
        build(lambda x: op.memory.view(x, op.zeros((1,), "int64")), tensor(16))
    with pytest.raises(IRTypeError, match="relative_byte_offset: expected a number of bytes"):
        build(lambda x: op.memory.view(x, relative_byte_offset=x), tensor(16))
