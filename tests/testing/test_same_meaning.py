"""``assert_same_meaning``: what counts as the same result."""

from __future__ import annotations

import pytest

from tests.lib.random_operators import problem_of
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


def test_a_sum_whose_terms_cancel_is_judged_by_its_terms():
    """0.0072 is left of 16 products of about 0.2: adding in another order changes it by 1.5e-5."""
    assert problem_of("matrix by vector", 927186776220) is None


def test_a_sum_is_not_excused_by_its_terms():
    x = te.placeholder((16,), "float32", "x")
    k = te.reduce_axis((0, 16), "k")
    total = te.compute((1,), lambda _: te.sum(x[k], axis=k))
    off = te.compute((1,), lambda i: total[i] + x[0] * 1e-3)
    with pytest.raises(AssertionError, match="interpreted: argument 1"):
        assert_same_meaning(te.create_prim_func([x, total]), te.create_prim_func([x, off]))
