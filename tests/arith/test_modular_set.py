"""Remainders of every node: what is said holds for all ``coeff * k + base``, and is not vague."""

from __future__ import annotations

import itertools
from math import gcd

import pytest

from tests.lib.wrapping import ARITHMETIC
from weft.arith.analyzer import Analyzer
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.modular_set import ModularSet, meet
from weft.ir.expr import IntImm, Range
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import decl_buffer

X, Y = (nodes.Var(name, "int32") for name in "xy")
SETS = [(coeff, base) for coeff in (0, 1, 2, 3, 4, 6, 12) for base in range(max(1, coeff))[:3]]
STEPS = range(-13, 14)


def known(x, y=(1, 0), nonnegative=False):
    """An Analyzer that knows the remainders of x and y."""
    analyzer = Analyzer()
    for var, entry in ((X, x), (Y, y)):
        analyzer.update(var, ModularSet(*entry))
        if nonnegative:
            analyzer.update(var, ConstIntBound(0, 1 << 20))
    return analyzer


def members(entry):
    """Some numbers of a set, around zero."""
    return {entry[0] * step + entry[1] for step in STEPS}


def finest(numbers):
    """(coeff, base) of the finest set that holds all of the numbers."""
    first, *rest = sorted(numbers)
    coeff = 0
    for number in rest:
        coeff = gcd(coeff, number - first)
    return (coeff, first % coeff) if coeff else (0, first)


def holds(entry, numbers):
    """Whether every number is in the set."""
    coeff, base = entry
    return all((number - base) % coeff == 0 if coeff else number == base for number in numbers)


def found(analyzer, expr):
    entry = analyzer.modular_set(expr)
    return entry.coeff, entry.base


@pytest.mark.parametrize("kind", [nodes.Add, nodes.Sub], ids=lambda kind: kind.__name__)
def test_sums_and_differences_are_as_fine_as_can_be(kind):
    for x, y in itertools.product(SETS, repeat=2):
        numbers = {ARITHMETIC[kind](a, b) for a in members(x) for b in members(y)}
        assert found(known(x, y), kind(X, Y)) == finest(numbers), (x, y)


def test_products_are_as_fine_as_can_be():
    for x, y in itertools.product(SETS, repeat=2):
        numbers = {a * b for a in members(x) for b in members(y)}
        assert found(known(x, y), X * Y) == finest(numbers), (x, y)


@pytest.mark.parametrize("kind", [nodes.Min, nodes.Max], ids=lambda kind: kind.__name__)
def test_the_smaller_and_the_larger_may_be_either(kind):
    for x, y in itertools.product(SETS, repeat=2):
        either = found(known(x, y), kind(X, Y))
        assert either == finest(members(x) | members(y)), (x, y)
        assert found(known(x, y), nodes.Select(nodes.Var("p", "bool"), X, Y)) == either


@pytest.mark.parametrize("by", [1, 2, 3, 4, 5, 6, -2, -3])
@pytest.mark.parametrize("nonnegative", [False, True], ids=["any", "nonnegative"])
def test_quotients_hold_and_are_fine_where_the_divisor_divides_the_step(by, nonnegative):
    for x in SETS:
        numbers = [n for n in members(x) if n >= 0 or not nonnegative]
        analyzer = known(x, nonnegative=nonnegative)
        for kind in (nodes.FloorDiv, nodes.Div):
            expr = kind(X, IntImm("int32", by))
            entry = found(analyzer, expr)
            assert holds(entry, {ARITHMETIC[kind](number, by) for number in numbers}), (x, kind)
        if x[0] and x[0] % by == 0:
            floor = found(analyzer, nodes.FloorDiv(X, IntImm("int32", by)))
            assert floor[0] == abs(x[0] // by)


@pytest.mark.parametrize("by", [1, 2, 3, 4, 6, 9, -4])
@pytest.mark.parametrize("nonnegative", [False, True], ids=["any", "nonnegative"])
def test_remainders_hold(by, nonnegative):
    for x in SETS:
        numbers = [n for n in members(x) if n >= 0 or not nonnegative]
        analyzer = known(x, nonnegative=nonnegative)
        for kind in (nodes.FloorMod, nodes.Mod):
            entry = found(analyzer, kind(X, IntImm("int32", by)))
            assert holds(entry, {ARITHMETIC[kind](number, by) for number in numbers}), (x, kind)
        entry = found(analyzer, nodes.FloorMod(X, IntImm("int32", by)))
        assert entry[0] == gcd(x[0], by) if x[0] else entry == (0, x[1] % by)


TRUNCATED = [
    # remainder of x, whether x >= 0, expression, its remainder
    ((6, 3), False, nodes.Div(X, IntImm("int32", 3)), (2, 1)),
    ((6, 4), False, nodes.Div(X, IntImm("int32", 3)), (1, 0)),  # -2 / 3 is 0, -2 // 3 is -1
    ((6, 4), True, nodes.Div(X, IntImm("int32", 3)), (2, 1)),
    ((6, 4), True, nodes.Div(X, IntImm("int32", -3)), (1, 0)),
    ((6, 3), False, nodes.Mod(X, IntImm("int32", 9)), (3, 0)),
    ((6, 4), False, nodes.Mod(X, IntImm("int32", 9)), (1, 0)),
    ((6, 4), True, nodes.Mod(X, IntImm("int32", 9)), (3, 1)),
]


@pytest.mark.parametrize(("entry", "nonnegative", "expr", "expected"), TRUNCATED)
def test_truncated_quotients_depend_on_the_sign(entry, nonnegative, expr, expected):
    assert found(known(entry, nonnegative=nonnegative), expr) == expected


def test_a_division_by_zero_or_by_a_symbol_says_nothing():
    analyzer = known((12, 0))
    for kind in (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod):
        assert found(analyzer, kind(X, IntImm("int32", 0))) == (1, 0)
        assert found(analyzer, kind(X, Y)) == (1, 0)


@pytest.mark.parametrize("by", range(4))
def test_right_shifts_are_divisions_by_powers_of_two(by):
    for x in SETS:
        entry = found(known(x), op.shift_right(X, IntImm("int32", by)))
        assert holds(entry, {number >> by for number in members(x)}), x
    assert found(known((24, 8)), op.shift_right(X, IntImm("int32", 3))) == (3, 1)
    assert found(known((24, 8)), op.shift_right(X, Y)) == (1, 0)


@pytest.mark.parametrize("mask", [1, 3, 7, 15, 5, 8])
def test_masks_are_remainders_by_powers_of_two(mask):
    for x in SETS:
        entry = found(known(x), op.bitwise_and(X, IntImm("int32", mask)))
        assert holds(entry, {number & mask for number in members(x)}), x
    assert found(known((12, 6)), op.bitwise_and(X, IntImm("int32", 7))) == (4, 2)
    assert found(known((12, 6)), op.bitwise_and(X, IntImm("int32", 5))) == (1, 0)


@pytest.mark.parametrize(("dtype", "expected"), [
    ("int64", (6, 2)), ("int8", (1, 0)), ("uint64", (1, 0)), ("uint32", (1, 0)), ("bool", (1, 0)),
])  # fmt: skip
def test_only_casts_that_keep_every_value_keep_remainders(dtype, expected):
    assert found(known((6, 2)), nodes.Cast(dtype, X)) == expected


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "uint64", "bool"])
def test_remainders_of_types_that_wrap_are_unknown(dtype):
    """100 * 3 is 44 in int8: no multiple of 3."""
    value = nodes.Var("v", dtype)
    three = IntImm(dtype, 1 if dtype == "bool" else 3)
    assert found(Analyzer(), value * three) == (1, 0)


def test_wrapping_data_keeps_remainders_by_powers_of_two_alone():
    """int32 wraps modulo 2**32, which 4 divides and 3 does not."""
    data = decl_buffer((4,), "int32", "A")[0]
    assert found(Analyzer(), data * 12) == (4, 0)
    assert found(Analyzer(), data * 3) == (1, 0)
    assert found(Analyzer(), data * 12 + 5) == (4, 1)
    assert found(Analyzer(), X * 12 + data * 8) == (4, 0)


def test_a_let_and_a_likely_have_the_remainder_of_what_they_name():
    inner = nodes.Var("t", "int32")
    assert found(known((4, 1)), nodes.Let(inner, X * 2, inner + 1)) == (8, 3)
    assert found(known((4, 1)), op.likely(X)) == (4, 1)


MEETS = [
    ((2, 1), (3, 2), (6, 5)), ((4, 2), (6, 4), (12, 10)), ((4, 3), (2, 1), (4, 3)),
    ((0, 7), (5, 2), (0, 7)), ((5, 2), (0, 7), (0, 7)), ((1, 0), (9, 4), (9, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "expected"), MEETS)
def test_two_facts_join_to_the_numbers_that_fulfil_both(a, b, expected):
    assert meet(a, b) == meet(b, a) == expected


def test_joined_facts_are_those_of_all_common_numbers():
    for a, b in itertools.product([entry for entry in SETS if entry[0]], repeat=2):
        common = [n for n in range(-100, 101) if holds(a, [n]) and holds(b, [n])]
        if common:
            assert meet(a, b) == finest(common), (a, b)


def test_facts_that_exclude_each_other_leave_the_stronger_one():
    assert meet((4, 1), (2, 0)) == (4, 1)
    assert meet((2, 0), (4, 1)) == (4, 1)


def test_facts_whose_product_is_far_too_large_are_not_joined():
    large = (1 << 30) + 1
    assert meet((large, 0), (1 << 20, 0)) == (large, 0)


CONDITIONS = [
    (lambda: X % 8 == 3, X, (8, 3)),
    (lambda: X % 8 == 11, X, (8, 3)),  # never so, yet nothing breaks
    (lambda: nodes.Mod(X, IntImm("int32", 8)) == 3, X, (8, 3)),
    (lambda: (X + Y) % 6 == 2, X + Y, (6, 2)),
    (lambda: (X + Y) % 6 == 2, X, (1, 0)),
    (lambda: X % -8 == 0, X, (1, 0)),
    (lambda: X % 8 < 1, X, (1, 0)),
]


@pytest.mark.parametrize(("condition", "expr", "expected"), CONDITIONS)
def test_what_conditions_say_of_remainders(condition, expr, expected):
    analyzer = Analyzer()
    with analyzer.constraint_scope(condition()):
        assert found(analyzer, expr) == expected
    assert found(analyzer, expr) == (1, 0)


def test_nested_conditions_on_one_variable_are_joined_and_forgotten_in_turn():
    analyzer = Analyzer()
    with analyzer.constraint_scope(X % 4 == 2):
        with analyzer.constraint_scope(X % 3 == 0):
            assert found(analyzer, X) == (12, 6)
            assert analyzer.can_prove(X % 6 == 0)
        assert found(analyzer, X) == (4, 2)
        assert not analyzer.can_prove(X % 6 == 0)
    assert found(analyzer, X) == (1, 0)


def test_binding_to_a_value_gives_its_remainder_and_binding_to_a_range_none():
    analyzer = Analyzer()
    analyzer.bind(X, Y * 8 + 3)
    assert found(analyzer, X) == (8, 3)
    analyzer.bind(X, Range(0, 100), allow_override=True)
    assert found(analyzer, X) == (1, 0)


def test_divisibility_decides_comparisons():
    analyzer = known((8, 0))
    assert analyzer.simplify(X % 4).value == 0
    assert analyzer.can_prove(X + 4 != Y * 8 + 1)
    assert not analyzer.can_prove(X + 4 != Y * 8 + 4)
    assert analyzer.can_prove((X + 3) % 4 == 3)
    assert not analyzer.can_prove(X % 16 == 0)
