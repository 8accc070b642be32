"""Constants near the ends of int32: what does not overflow as written must not do so simplified."""

from __future__ import annotations

import random

import pytest

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, integer_range
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.expr import Add, Max, Min, Mul, SizeVar, Sub, Var

LOW, HIGH = integer_range(DataType("int32"))


def number(value):
    return IntImm("int32", value)


def test_two_constants_whose_sum_does_not_fit_stay_two():
    n = SizeVar("n", "int32")
    place = Max(Min(Sub(Sub(n, number(HIGH - 1)), number(7)), number(7)), number(0))
    assert str(Analyzer().simplify(place)) == "0"  # of n = 6 it is max(-2147483647, 0)
    far = Add(Add(number(HIGH - 2), n), number(9))
    assert Analyzer().simplify(Max(far, number(5))).same_as(far) or not Analyzer().can_prove(
        op.less(far, number(0))
    )


def value_of(expr, n, may_overflow=False):
    """The value for one n; OverflowError where a step leaves int32, unless it may."""
    if isinstance(expr, IntImm):
        return expr.value
    if isinstance(expr, Var):
        return n
    a, b = value_of(expr.a, n, may_overflow), value_of(expr.b, n, may_overflow)
    kinds = {Add: a + b, Sub: a - b, Mul: a * b, Min: min(a, b), Max: max(a, b)}
    value = kinds[type(expr)]
    if not (may_overflow or LOW <= value <= HIGH):
        raise OverflowError
    return value


def random_sum(rng, n, steps):
    """Constants near the ends of int32, and multiples of n, added and subtracted in some order."""
    expr = rng.choice([n, number(rng.choice([LOW, HIGH, 5]))])
    for _ in range(steps):
        near = rng.choice([LOW, HIGH, 0]) + rng.randint(-9, 9)
        factor = number(rng.choice([2, -1, 3, HIGH, LOW, HIGH // 2]))
        term = rng.choice([number(min(max(near, LOW), HIGH)), n, Mul(n, factor)])
        expr = rng.choice([Add, Sub])(expr, term)
    return expr


@pytest.mark.parametrize("seed", range(400))
def test_random_sums_keep_their_values(seed):
    rng = random.Random(seed)
    n = rng.choice([SizeVar, Var])("n", "int32")
    total = random_sum(rng, n, rng.randint(1, 4))
    expr = Max(Min(total, number(rng.randint(-9, 9))), number(rng.randint(-9, 9)))
    simple = Analyzer().simplify(expr)
    points = [*range(12), 1000, HIGH // 2, HIGH - 7, HIGH]
    for point in points if type(n) is SizeVar else [*points, -1, -2, -8, LOW, LOW + 6]:
        try:
            value = value_of(expr, point)
        except OverflowError:
            continue  # indices do not overflow: arith promises nothing then
        found = value_of(simple, point, may_overflow=True)  # native code wraps, and comes back
        assert (found - value) % 2**32 == 0, f"{expr} -> {simple} at {point}"
