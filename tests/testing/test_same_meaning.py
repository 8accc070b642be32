"""``assert_same_meaning``: what counts as the same result."""

from __future__ import annotations

import pytest

from weft import te
from weft.testing.schedules import assert_same_meaning
from weft.tir import op

INF = op.infinity("float32")
NAN = INF - INF


def storing(first, second):
    """A function that stores two numbers."""
    choice = te.compute((2,), lambda i: op.if_then_else(i == 0, first, second))
    return te.create_prim_func([choice])


@pytest.mark.parametrize("numbers", [(-INF, 1.0), (INF, INF), (NAN, 1.0), (1.0, 1e-9)])
def test_infinity_and_nan_are_themselves(numbers):
    assert_same_meaning(storing(*numbers), storing(*numbers))


@pytest.mark.parametrize(
    ("before", "after"),
    [((INF, 1.0), (-INF, 1.0)), ((INF, 1.0), (INF, 1.1)), ((NAN, 1.0), (0.0, 1.0)),
     ((1.0, 1.0), (1.0, NAN)), ((1.0, 1.0), (1.0, INF)), ((1.0, 1.0), (1.0, 1.001))],
)  # fmt: skip
def test_others_differ(before, after):
    with pytest.raises(AssertionError, match="interpreted: argument 0"):
        assert_same_meaning(storing(*before), storing(*after))
