"""Expressions of several integer types, casts and conditions among them: what is known holds."""

from __future__ import annotations

import random

import pytest

from tests.lib.wrapping import ARITHMETIC, COMPARISONS, IndexOverflow, value_of, wrapped
from weft.arith.analyzer import Analyzer, ProofStrength
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.interval import neg_inf, pos_inf
from weft.ir.expr import IntImm, Range, integer_range
from weft.support.dtype import DataType
from weft.tir import expr as nodes

TYPES = ("int32", "int64", "int8", "uint8", "uint32", "int16")
DIVISIONS = (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod)


class Mixed:
    """Random expressions over variables of several types, two of each and two of bool."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.types = rng.sample(TYPES, 2) if rng.random() < 0.7 else [rng.choice(TYPES)]
        self.variables = {
            dtype: [nodes.Var(f"{name}_{dtype}", dtype) for name in "xy"] for dtype in self.types
        }
        self.flags = [nodes.Var("p", "bool"), nodes.Var("q", "bool")]
        self.ends = {}
        for dtype in self.types:
            low, high = integer_range(DataType(dtype))
            if dtype in ("int32", "int64"):  # sums of these are taken to stay in their range
                low, high = -1000, 1000
            for var in self.variables[dtype]:
                begin = rng.choice([0, 0, max(low, -7), low, 1])
                extent = rng.choice([1, 4, 17, min(100, high - begin), min(127, high - begin)])
                self.ends[var] = begin, begin + extent - 1

    def constant(self, dtype):
        low, high = integer_range(DataType(dtype))
        value = self.rng.choice([-7, -1, 0, 1, 2, 3, 4, 8, 100, low, high])
        if dtype in ("int32", "int64") and abs(value) > 1000:
            value = 16
        return IntImm(dtype, wrapped(value, dtype))

    def of(self, dtype, depth):
        """An expression of a type."""
        rng, kind = self.rng, self.rng.random()
        if depth == 0 or kind < 0.1:
            return rng.choice([*self.variables[dtype], self.constant(dtype)])
        if kind < 0.25:
            return nodes.Cast(dtype, self.of(rng.choice(self.types), depth - 1))
        if kind < 0.32:
            return nodes.Select(
                self.condition(depth - 1), self.of(dtype, depth - 1), self.of(dtype, 0)
            )
        operation = rng.choice(list(ARITHMETIC))
        a = self.of(dtype, depth - 1)
        if operation in DIVISIONS:
            return operation(a, IntImm(dtype, rng.choice([1, 2, 3, 5, 8, 100])))
        return operation(a, self.of(dtype, rng.randrange(depth)))

    def condition(self, depth):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.1:
            return rng.choice(self.flags)
        if depth > 0 and kind < 0.4:
            if kind < 0.2:
                return nodes.Not(self.condition(depth - 1))
            join = rng.choice([nodes.And, nodes.Or])
            return join(self.condition(depth - 1), self.condition(depth - 1))
        dtype = rng.choice(self.types)
        compare = rng.choice(list(COMPARISONS))
        return compare(self.of(dtype, min(depth, 2)), self.of(dtype, rng.randrange(2)))

    def any(self):
        """An expression of one of the types, or a condition."""
        if self.rng.random() < 0.4:
            return self.condition(2)
        return self.of(self.rng.choice(self.types), self.rng.choice([1, 2, 3]))

    def analyzer(self):
        """An Analyzer that knows the ranges."""
        analyzer = Analyzer()
        for var, (low, high) in self.ends.items():
            extent = IntImm(var.dtype, high - low + 1)
            analyzer.bind(var, Range.from_min_extent(IntImm(var.dtype, low), extent))
        return analyzer

    def scopes(self, count=30):
        """Values of all variables, at the ends of their ranges more often than between."""
        for _ in range(count):
            scope = {flag.name: self.rng.random() < 0.5 for flag in self.flags}
            for var, (low, high) in self.ends.items():
                scope[var.name] = self.rng.choice([low, high, self.rng.randint(low, high)])
            yield scope

    def values(self, *exprs, where=None):
        """(scope, the values of the expressions) wherever ``where`` holds and all have a value."""
        for scope in self.scopes():
            try:
                if where is None or value_of(where, scope):
                    yield scope, [value_of(expr, scope) for expr in exprs]
            except IndexOverflow:
                continue


@pytest.mark.parametrize("method", ["simplify", "rewrite_simplify", "canonical_simplify"])
def test_simplified_expressions_keep_their_values(method):
    for seed in range(250):
        mixed = Mixed(seed)
        expr = mixed.any()
        result = getattr(mixed.analyzer(), method)(expr)
        assert result.dtype == expr.dtype
        for scope, (wanted, got) in mixed.values(expr, result):
            assert got == wanted, f"seed {seed}: {expr} became {result} at {scope}"


def test_a_simplified_expression_is_simple():
    for seed in range(1000, 1200):
        mixed = Mixed(seed)
        expr = mixed.any()
        once = mixed.analyzer().simplify(expr)
        again = mixed.analyzer().simplify(once)
        assert expr_deep_equal(once, again), f"seed {seed}: {expr} became {once}, then {again}"


def test_bounds_and_remainders_hold():
    for seed in range(2000, 2400):
        mixed = Mixed(seed)
        expr = mixed.of(mixed.types[0], 3)
        analyzer = mixed.analyzer()
        bound, modular = analyzer.const_int_bound(expr), analyzer.modular_set(expr)
        for scope, (value,) in mixed.values(expr):
            assert bound.min_value <= value <= bound.max_value, f"seed {seed}: {expr} at {scope}"
            rest = value - modular.base
            assert rest % modular.coeff == 0 if modular.coeff else rest == 0, f"{seed}: {expr}"


def test_sets_hold():
    for seed in range(3000, 3300):
        mixed = Mixed(seed)
        expr = mixed.of(mixed.types[0], 2)
        found = mixed.analyzer().int_set(expr)
        ends = [end for end in (found.min_value, found.max_value)
                if end is not neg_inf() and end is not pos_inf()]  # fmt: skip
        for scope, (value, *known) in mixed.values(expr, *ends):
            if found.min_value is not neg_inf():
                assert known.pop(0) <= value, f"seed {seed}: {expr} in {found} at {scope}"
            if found.max_value is not pos_inf():
                assert value <= known.pop(), f"seed {seed}: {expr} in {found} at {scope}"


@pytest.mark.parametrize("strength", list(ProofStrength))
def test_what_is_proved_is_true(strength):
    proved = 0
    for seed in range(4000, 4300):
        mixed = Mixed(seed)
        condition = mixed.condition(1)
        if mixed.analyzer().can_prove(condition, strength):
            proved += 1
            for scope, (value,) in mixed.values(condition):
                assert value, f"seed {seed}: {condition} at {scope}"
    assert proved > 20


def test_what_holds_under_a_condition_holds_where_it_is_true():
    for seed in range(5000, 5130):
        mixed = Mixed(seed)
        condition, expr = mixed.condition(1), mixed.any()
        analyzer = mixed.analyzer()
        with analyzer.constraint_scope(condition):
            result, bound = analyzer.simplify(expr), analyzer.const_int_bound(expr)
        for scope, (wanted, got) in mixed.values(expr, result, where=condition):
            text = f"seed {seed}: {expr} became {result} where {condition} at {scope}"
            assert got == wanted, text
            assert bound.min_value <= wanted <= bound.max_value, text
        after = analyzer.simplify(expr)  # the condition is forgotten
        for scope, (wanted, got) in mixed.values(expr, after):
            assert got == wanted, f"seed {seed}: {expr} became {after} after the scope at {scope}"


def test_equal_expressions_are_equal():
    for seed in range(6000, 6200):
        mixed = Mixed(seed)
        dtype = mixed.types[0]
        a = mixed.of(dtype, 2)
        b = mixed.rng.choice([mixed.of(dtype, 1), mixed.analyzer().simplify(a), mixed.of(dtype, 0)])
        if mixed.analyzer().can_prove_equal(a, b):
            for scope, (left, right) in mixed.values(a, b):
                assert left == right, f"seed {seed}: {a} and {b} at {scope}"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (IntImm("int32", 300), nodes.Var("x", "uint8")),
        (nodes.Var("x", "uint8"), IntImm("int32", -1)),
        (IntImm("int64", 2**40), nodes.Var("x", "int32")),
        (IntImm("uint32", 2**32 - 1), IntImm("int32", -1)),
        (nodes.Var("x", "uint32"), nodes.Var("y", "int32")),
    ],
    ids=str,
)
def test_what_one_type_cannot_say_equals_nothing_of_it(a, b):
    assert not Analyzer().can_prove_equal(a, b)
    assert not Analyzer().can_prove_equal(b, a)


def test_equal_numbers_of_two_types_are_equal():
    i, wide = nodes.Var("i", "int32"), nodes.Var("w", "int64")
    analyzer = Analyzer()
    analyzer.bind(wide, nodes.Cast("int64", i))
    assert analyzer.can_prove_equal(i, wide)
    assert analyzer.can_prove_equal(wide, i)
    assert analyzer.can_prove_equal(IntImm("int64", 7), IntImm("int32", 7))
    assert not analyzer.can_prove_equal(i, wide + 1)
