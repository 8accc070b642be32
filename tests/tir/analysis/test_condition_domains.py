"""The narrowed domain holds every value that satisfies the condition, for all outer values."""

from __future__ import annotations

import itertools

import pytest

from weft import tir
from weft.arith.analyzer import Analyzer
from weft.arith.int_set import IntSet, eval_set
from weft.ir.functor import substitute
from weft.tir.analysis.condition_domains import narrowed_domains
from weft.tir.expr import Not, Var

a, i, j = Var("a", "int32"), Var("i", "int32"), Var("j", "int32")
A_VALUES, I_VALUES, J_VALUES = range(-3, 6), range(8), range(5)

EXACT = [  # condition, (low, high) of i
    (i < 5, (0, 4)),
    (i <= 5, (0, 5)),
    (i > 2, (3, 7)),
    (i >= 2, (2, 7)),
    (tir.EQ(i, 3), (3, 3)),
    (tir.NE(i, 3), (0, 7)),
    (i * 2 < 7, (0, 3)),
    (7 < i * 2, (4, 7)),
    (Not(i < 5), (5, 7)),
    (tir.And(i > 1, i < 6), (2, 5)),
    (Not(tir.Or(i < 1, i > 6)), (1, 6)),
    (tir.Or(i < 1, i > 6), (0, 7)),
    (tir.likely(i < 5), (0, 4)),
    (i + j < 3, (0, 2)),
    (i - j >= 2, (2, 7)),
    (i * i < 9, (0, 7)),
]


def domains():
    return {i: IntSet.interval(0, 7), j: IntSet.interval(0, 4)}


@pytest.mark.parametrize(("condition", "expected"), EXACT, ids=[str(c) for c, _ in EXACT])
def test_constant_ends(condition, expected):
    found = eval_set(i, narrowed_domains(domains(), condition, Analyzer()))
    assert (found.min_value.value, found.max_value.value) == expected


SOUND = [c for c, _ in EXACT] + [
    a + i < 4,
    i * 3 - j * 2 + a > 4,
    tir.And(a + i < 4, j - i >= a),
    tir.EQ(i * 2 + j, a),
    tir.And(tir.Or(i < a, j < 2), i + j >= a),
]


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("condition", SOUND, ids=str)
def test_every_value_that_satisfies_stays(condition, negated):
    narrowed = narrowed_domains(domains(), condition, Analyzer(), negated=negated)
    for value_a in A_VALUES:
        ends = {}
        for var in (i, j):
            relaxed = eval_set(var, narrowed)
            ends[var] = [
                substitute(end, {a: tir.IntImm("int32", value_a)})
                for end in (relaxed.min_value, relaxed.max_value)
            ]
        numbers = {
            var: [Analyzer().simplify(end).value for end in both] for var, both in ends.items()
        }
        for value_i, value_j in itertools.product(I_VALUES, J_VALUES):
            values = {a: value_a, i: value_i, j: value_j}
            mapping = {var: tir.IntImm("int32", value) for var, value in values.items()}
            holds = bool(Analyzer().simplify(substitute(condition, mapping)).value)
            if holds is not negated:
                assert numbers[i][0] <= value_i <= numbers[i][1]
                assert numbers[j][0] <= value_j <= numbers[j][1]


def test_conditions_on_memory_say_nothing():
    buffer = tir.decl_buffer((8,), "int32", "B")
    before = domains()
    assert narrowed_domains(before, i < buffer[0], Analyzer()) == before


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint32"])
def test_a_condition_on_a_sum_that_wraps_narrows_nothing(dtype):
    """``v + 100 < 120`` of int8 holds for v < 20, and for v > 27, where the sum is negative."""
    v = Var("v", dtype)
    hundred, limit, zero = (tir.IntImm(dtype, number) for number in (100, 120, 0))
    before = {v: IntSet.interval(zero, limit)}
    for condition in (v + hundred < limit, zero < v - hundred, Not(v - hundred >= limit)):
        assert narrowed_domains(before, condition, Analyzer()) is before
