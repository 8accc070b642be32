"""Products of sums are equal where their polynomials are, on wrapping integers, too."""

import random

import pytest

from weft import tir
from weft.arith import Analyzer
from weft.arith.polynomial import same_polynomial

B, Q, R = [tir.Var(name, "int64") for name in "bqr"]
PIECES = tir.floordiv(Q, 4)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (B * (Q + 1) * 80, (Q * 80 + 80) * B, True),
        (B * (PIECES + 1), PIECES * B + B, True),
        ((B + Q) * (B - Q), B * B - Q * Q, True),
        ((B + Q) * (B + Q), B * B + Q * Q, False),
        (B * (Q + 1), B * Q, False),
        (B * (Q - Q), tir.const(0, "int64"), True),
        (tir.max(B, Q) * (R + 2), R * tir.max(B, Q) + 2 * tir.max(B, Q), True),
        (tir.max(B, Q) * R, tir.min(B, Q) * R, False),
    ],
)
def test_polynomials(a, b, expected):
    assert same_polynomial(a, b) is expected
    assert Analyzer().can_prove_equal(a, b) is expected
    assert not expected or Analyzer().can_prove_equal(b, a)


def test_long_polynomials_are_not_compared():
    total = B
    for _ in range(9):
        total = total * (B + Q + R + 1)
    assert not same_polynomial(total, total + 0 * B * Q)


def random_sum(rng, depth):
    if depth == 0:
        return rng.choice([B, Q, R, tir.const(rng.randint(-3, 3), "int64")])
    a, b = random_sum(rng, depth - 1), random_sum(rng, depth - 1)
    return rng.choice([lambda: a + b, lambda: a - b, lambda: a * b])()


def value(expr, numbers):
    known = {var: tir.const(number, "int64") for var, number in numbers.items()}
    return int(Analyzer().simplify(tir.stmt_functor.substitute(expr, known)))


def test_random_polynomials_are_equal_only_where_their_values_are():
    rng = random.Random(0)
    equal = 0
    for _ in range(300):
        a, b = random_sum(rng, 2), random_sum(rng, 2)
        numbers = [{var: rng.randint(-9, 9) for var in (B, Q, R)} for _ in range(6)]
        same = all(value(a, given) == value(b, given) for given in numbers)
        if same_polynomial(a, b):
            assert same
            equal += 1
    assert equal > 0
