"""Splits and sums: their algebra keeps values, and their printed order is one."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.lib.wrapping import value_of
from weft.arith.linear_form import Split, Sum
from weft.ir.expr import IntImm
from weft.support.dtype import DataType
from weft.tir.arithmetic import truncated_quotient, truncated_remainder
from weft.tir.expr import Var

INT32 = DataType("int32")
X, Y, Z = (Var(name, "int32") for name in "xyz")
DIGITS = [(1, None), (4, None), (1, 4), (1, 8), (2, 8), (4, 8), (4, 16), (8, 16)]


def digit(value, lower, upper, floor=True):
    """``(value % upper) // lower``, rounded down or towards zero."""
    if upper is not None:
        value = value % upper if floor else truncated_remainder(value, upper)
    return value // lower if floor else truncated_quotient(value, lower)


def number(expr, **scope):
    return value_of(expr, {"x": 0, "y": 0, "z": 0, **scope})


@pytest.mark.parametrize("floor", [True, False], ids=["floor", "truncate"])
@pytest.mark.parametrize(("lower", "upper"), DIGITS)
@pytest.mark.parametrize("scale", [-3, 1, 5])
def test_a_split_builds_what_it_says(lower, upper, scale, floor):
    split = Split(X, lower, upper, scale, floor)
    for x in range(-20, 21):
        assert number(split.build(), x=x) == digit(x, lower, upper, floor) * scale
        assert number(split.build(-1), x=x) == -digit(x, lower, upper, floor) * scale
        assert number(split.unit(), x=x) == digit(x, lower, upper, floor)


TEXTS = [
    (Split(X), "x"), (Split(X, scale=3), "x * 3"), (Split(X, 4), "x // 4"),
    (Split(X, 1, 4), "x % 4"), (Split(X, 2, 8), "x % 8 // 2"),
    (Split(X, 2, 8, -5), "x % 8 // 2 * -5"),
    (Split(X, 4, floor=False), "T.Div(x, 4)"), (Split(X, 1, 4, floor=False), "T.truncmod(x, 4)"),
]  # fmt: skip


@pytest.mark.parametrize(("split", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_how_a_split_reads(split, text):
    assert str(split.build()) == text


def test_a_scale_beyond_the_type_becomes_several_products():
    """Only x = 0 does not overflow then, but for the scale 2**31 also x = -1."""
    assert str(Split(X, scale=1 << 31).build()) == "x * 2147483647 + x"
    long = Split(X, scale=(1 << 32) + 3).build()
    assert str(long) == "x * 2147483647 + x * 2147483647 + x * 5"


def test_plain_splits_round_in_no_way():
    plain, down, to_zero = Split(X), Split(X, 4), Split(X, 4, floor=False)
    assert plain.is_plain
    assert not down.is_plain
    assert not Split(X, 1, 4).is_plain
    assert plain.same_mode(to_zero)
    assert to_zero.same_mode(plain)
    assert not down.same_mode(to_zero)


def test_splits_of_equal_expressions_have_the_same_index():
    assert Split(X + 1).same_index(Split(X + 1, 4))
    assert not Split(X + 1).same_index(Split(X + 2))
    assert not Split(X).same_index(Split(Var("x", "int32")))


def random_sum(rng):
    """A sum of random splits of x, y and z, no two of them the same digit."""
    chosen = rng.sample(list(itertools.product((X, Y, Z), DIGITS)), rng.randint(0, 4))
    splits = tuple(Split(var, *limits, rng.choice([-4, -1, 1, 2, 4, 8])) for var, limits in chosen)
    return Sum(INT32, splits, rng.randint(-20, 20))


def total(form, scope):
    """The value of a sum, by its definition."""
    parts = [digit(scope[s.index.name], s.lower, s.upper, s.floor) * s.scale for s in form.splits]
    return sum(parts) + form.base


def points(rng, count=12):
    for _ in range(count):
        yield {name: rng.randint(-40, 40) for name in "xyz"}


def test_sums_are_added_subtracted_and_multiplied():
    rng = random.Random(1)
    for _ in range(150):
        a, b, factor = random_sum(rng), random_sum(rng), rng.randint(-4, 4)
        for scope in points(rng):
            assert total(a.plus(b), scope) == total(a, scope) + total(b, scope)
            assert total(a.plus(b, -1), scope) == total(a, scope) - total(b, scope)
            assert total(a.times(factor), scope) == total(a, scope) * factor


def test_a_sum_minus_itself_is_nothing():
    rng = random.Random(2)
    for _ in range(50):
        form = random_sum(rng)
        assert form.plus(form, -1) == Sum(INT32)
        assert form.times(0) == Sum(INT32)


def test_a_built_sum_has_its_value_and_keeps_it_when_digits_join():
    rng = random.Random(3)
    for _ in range(300):
        form = random_sum(rng)
        expr = form.build()
        for scope in points(rng):
            assert value_of(expr, scope) == total(form, scope), (form, str(expr))


@pytest.mark.parametrize("factor", [2, 3, 4, 8])
def test_the_terms_that_a_factor_divides_are_separated(factor):
    rng = random.Random(factor)
    for _ in range(60):
        form = random_sum(rng)
        inside, outside = form.separate(factor)
        assert all(split.scale % factor == 0 for split in inside.splits)
        assert all(split.scale % factor for split in outside.splits)
        assert inside.base + outside.base == form.base
        assert inside.base == 0 or outside.base == 0
        for scope in points(rng, 4):
            assert total(inside, scope) + total(outside, scope) == total(form, scope)
            assert total(inside.divided(factor), scope) * factor == total(inside, scope)


def test_terms_of_one_digit_become_one_term():
    twice = Sum(INT32, (Split(X, 4),)).plus(Sum(INT32, (Split(X, 4, scale=2),)))
    assert twice.splits == (Split(X, 4, scale=3),)
    apart = Sum(INT32, (Split(X, 4),)).plus(Sum(INT32, (Split(X, 4, floor=False),)))
    assert len(apart.splits) == 2  # one rounds down, the other towards zero


JOINS = [
    # splits; how their sum reads
    ([Split(X, 4, scale=4), Split(X, 1, 4)], "x"),
    ([Split(X, 1, 4), Split(X, 4, scale=4)], "x"),
    ([Split(X, 4, 16, 4), Split(X, 1, 4)], "x % 16"),
    ([Split(X, 8, 16, 8), Split(X, 4, 8, 4), Split(X, 1, 4)], "x % 16"),
    ([Split(X, 4, scale=8), Split(X, 1, 4, 2)], "x * 2"),
    ([Split(X, 4, scale=-4), Split(X, 1, 4, -1)], "0 - x"),
    ([Split(X, 8, scale=2), Split(X, 4, 8)], "x // 4"),
    ([Split(X, 4, scale=4), Split(X, 1, 8)], "x // 4 * 4 + x % 8"),
    ([Split(X, 4, scale=3), Split(X, 1, 4)], "x // 4 * 3 + x % 4"),
    ([Split(X, 4, scale=4), Split(Y, 1, 4)], "x // 4 * 4 + y % 4"),
    ([Split(X, 4, scale=4, floor=False), Split(X, 1, 4)], "T.Div(x, 4) * 4 + x % 4"),
    ([Split(X, 4, scale=4, floor=False), Split(X, 1, 4, floor=False)], "x"),
]


@pytest.mark.parametrize(("splits", "text"), JOINS)
def test_digits_that_continue_each_other_are_joined_and_no_others(splits, text):
    assert str(Sum(INT32, tuple(splits)).build()) == text


ORDER = [
    ([Split(X), Split(Y, scale=4), Split(Z, scale=2)], 0, "y * 4 + z * 2 + x"),
    ([Split(X), Split(Y, scale=-2)], 5, "x + 5 - y * 2"),
    ([Split(X), Split(Y)], -5, "x + y - 5"),
    ([Split(X, scale=-1)], 7, "7 - x"),
    ([Split(X, scale=-1)], -7, "-7 - x"),
    ([Split(X, 1, 4), Split(X, 4)], 0, "x // 4 + x % 4"),
    ([], -3, "-3"),
]


@pytest.mark.parametrize(("splits", "base", "text"), ORDER, ids=[row[2] for row in ORDER])
def test_terms_are_built_from_the_largest_scale_to_what_is_subtracted(splits, base, text):
    assert str(Sum(INT32, tuple(splits), base).build()) == text


def test_a_base_beyond_the_type_wraps():
    assert Sum(INT32, (), (1 << 32) + 5).build().value == 5
    assert isinstance(Sum(INT32, (), 5).build(), IntImm)


def test_a_term_that_is_a_sum_is_opened_where_digits_join():
    """``(x*10 + y) // 2 * 2 + (x*10 + y) % 2`` is ``x*10 + y``: two terms, not one."""
    inner = X * 10 + Y
    joined = Sum(INT32, (Split(inner, 2, scale=2), Split(inner, 1, 2), Split(Y, scale=-1)))
    assert str(joined.build()) == "x * 10"
