from __future__ import annotations

import pytest

from weft.tir import op
from weft.tir.expr import Var
from weft.tir.linear_difference import constant_difference

i, j = Var("i", "int32"), Var("j", "int32")


@pytest.mark.parametrize(
    ("lhs", "rhs", "expected"),
    [
        (i, i, 0),
        (i + 3, i, 3),
        (i, i + 3, -3),
        (i * 4 + j + 7, j + i * 4 + 2, 5),
        ((i + 1) * 4, i * 4, 4),
        (i - j + 2, i - j, 2),
        (i // 3 + 1, i // 3, 1),
        (op.const(9), op.const(2), 7),
    ],
)
def test_constant(lhs, rhs, expected):
    assert constant_difference(lhs, rhs) == expected


@pytest.mark.parametrize(("lhs", "rhs"), [(i, j), (i * 4, i * 3), (i * j, i), (i // 3, i // 4)])
def test_not_constant(lhs, rhs):
    assert constant_difference(lhs, rhs) is None
