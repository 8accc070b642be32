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
        # quotients, whose constants may stand inside or outside
        (tir.floordiv(B * Q - 1, 4), tir.floordiv(Q * B + 3, 4) - 1, True),
        (tir.floordiv(B * Q - 1, 4), tir.floordiv(Q * B + 2, 4) - 1, False),
        (tir.floordiv(B * Q + 9, 4), tir.floordiv(Q * B + 1, 3) + 2, False),
        (
            tir.floordiv(tir.floordiv(B - 1, 4) * tir.floordiv(Q + 3, 4) + Q * B, 6),
            tir.floordiv((tir.floordiv(B + 3, 4) - 1) * tir.floordiv(Q + 3, 4) + B * Q, 6),
            True,
        ),
        (tir.floordiv(B * Q - 4, -4), tir.floordiv(Q * B, -4) - 1, False),
        (tir.floordiv(B * Q - 1, 4) * R, R * tir.floordiv(B * Q + 3, 4) - R, True),
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


def test_quotients_of_integers_that_wrap_around_are_not_taken_apart():
    a, b = tir.Var("a", "int16"), tir.Var("b", "int16")
    four = tir.const(4, "int16")
    assert not same_polynomial(tir.floordiv(a * b - 1, four), tir.floordiv(b * a + 3, four) - 1)


def random_sum(rng, depth):
    if depth == 0:
        return rng.choice([B, Q, R, tir.const(rng.randint(-3, 3), "int64")])
    a, b = random_sum(rng, depth - 1), random_sum(rng, depth - 1)
    by = rng.randint(2, 3)
    kinds = [lambda: a + b, lambda: a - b, lambda: a * b, lambda: tir.floordiv(a + b, by)]
    return rng.choice(kinds)()


def value(expr, numbers):
    known = {var: tir.const(number, "int64") for var, number in numbers.items()}
    return int(Analyzer().simplify(tir.stmt_functor.substitute(expr, known)))


def test_random_polynomials_are_equal_only_where_their_values_are():
    rng = random.Random(0)
    equal = 0
    for _ in range(1500):
        a, b = random_sum(rng, 2), random_sum(rng, 2)
        numbers = [{var: rng.randint(-9, 9) for var in (B, Q, R)} for _ in range(6)]
        same = all(value(a, given) == value(b, given) for given in numbers)
        if same_polynomial(a, b):
            assert same
            equal += 1
    assert equal > 0
