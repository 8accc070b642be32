"""Deduced bounds: every value inside makes the condition true; constants give the exact bound."""

from __future__ import annotations

import itertools
import random

import pytest

from weft.arith.common_subexpr import detect_common_subexpr
from weft.arith.deduce import deduce_bound
from weft.arith.interval import IntervalSet, neg_inf, pos_inf
from weft.ir.expr import IntImm, Range
from weft.ir.structural import structural_equal
from weft.support.errors import TVMError
from weft.testing.constraints import check_bool_expr_is_true, conjunction
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.expr import Var

A, B, C = (Var(name, "int32") for name in "abc")
KINDS = [nodes.LT, nodes.LE, nodes.GT, nodes.GE]


def inside(found):
    """The condition that the value lies in the interval."""
    parts = [A >= found.min_value] if found.min_value is not neg_inf() else []
    parts += [found.max_value >= A] if found.max_value is not pos_inf() else []
    return conjunction(parts)


@pytest.mark.parametrize("factor", [4, -4, 3, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_bound_is_exact_without_other_variables(kind, factor):
    for offset, limit in itertools.product(range(-5, 6, 2), range(-9, 10, 3)):
        for condition in (
            kind(A * factor + offset, IntImm("int32", limit)),
            kind(IntImm("int32", limit), offset - A * factor),
            kind(op.floordiv(A + offset, factor) * 2, IntImm("int32", limit)),
        ):
            found = deduce_bound(A, condition)
            assert not found.is_nothing()
            check_bool_expr_is_true(condition, {A: Range(-30, 31)}, inside(found))
            check_bool_expr_is_true(inside(found), {A: Range(-30, 31)}, condition)


def test_bound_holds_for_every_value_of_relaxed_variables():
    rng = random.Random(7)
    for _ in range(60):
        low = rng.randint(-4, 4)
        span = range(low, low + rng.randint(1, 4))
        sets = {B: IntervalSet(IntImm("int32", span[0]), IntImm("int32", span[-1]))}
        expr = (B * rng.randint(-3, 3) + A * rng.choice([-4, -2, 3, 5])) * rng.choice([1, 4])
        condition = rng.choice(KINDS)(expr + B, IntImm("int32", rng.randint(-20, 20)))
        found = deduce_bound(A, condition, sets, sets)
        assert not found.is_nothing()
        ranges = {A: Range(-20, 21), B: Range(span[0], span[-1] + 1)}
        check_bool_expr_is_true(condition, ranges, inside(found))


def test_symbols_stay_and_hints_give_the_sign():
    hint = {B: IntervalSet(IntImm("int32", 2), IntImm("int32", 3))}
    found = deduce_bound(A, A * B + C <= 0, hint, {})
    assert structural_equal(found.max_value, op.floordiv(0 - C, B))
    assert deduce_bound(A, A * B + C <= 0, {}, {}).is_nothing()


def test_equalities():
    assert deduce_bound(A, nodes.EQ(A, B)).max_value is B
    found = deduce_bound(A, nodes.EQ(A * 5, IntImm("int32", -10)))
    assert (found.min_value.value, found.max_value.value) == (-2, -2)
    assert deduce_bound(A, nodes.EQ(A * 4, B)).is_nothing()


@pytest.mark.parametrize(
    "condition", [A * 2 - A > B, op.minimum(A, B) > 3, A + B, op.floordiv(8, A) >= 2]
)
def test_nothing_is_deduced_from_what_cannot_be_solved(condition):
    assert deduce_bound(A, condition).is_nothing()


def test_common_subexpressions():
    shared = op.floordiv(A + B, 3)
    found = detect_common_subexpr(shared * C + op.floordiv(A + B, 3) + (B + A), 2)
    ((key, count),) = found.items()
    assert key is shared
    assert count == 2
    ((key, count),) = detect_common_subexpr((A + B) * C + op.maximum(B + A, 1), 2).items()
    assert (str(key), count) == ("a + b", 2)
    assert not detect_common_subexpr(A + B, 2)
    with pytest.raises(TVMError, match="expected threshold >= 0, got -1"):
        detect_common_subexpr(A + B, -1)
