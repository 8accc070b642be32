"""Arithmetic of types narrower than an index wraps, that of loop variables too: proofs know it."""

from __future__ import annotations

import random

import pytest

from tests.lib.wrapping import ARITHMETIC, COMPARISONS, value_of
from weft.arith.analyzer import Analyzer
from weft.arith.interval import neg_inf, pos_inf
from weft.ir.expr import IntImm, Range, integer_range
from weft.support.dtype import DataType
from weft.tir import expr as nodes

TYPES = ("int8", "uint8", "int16", "uint16")


class Expressions:
    """Random expressions over three variables of a narrow type."""

    def __init__(self, rng, dtype):
        self.rng, self.dtype = rng, dtype
        self.variables = [nodes.Var(name, dtype) for name in "ijk"]
        low, high = integer_range(DataType(dtype))
        self.ranges = {}
        for var in self.variables:
            begin = rng.choice([0, 0, max(low, -5), max(low, -100), 1])
            self.ranges[var.name] = begin, rng.choice([3, 17, 100, min(high, high - begin)])

    def constant(self, dtype):
        low, high = integer_range(DataType(dtype))
        high = min(high, 1000)  # arithmetic of int32 is taken to stay in its range
        return IntImm(dtype, self.rng.choice([max(low, -7), -1 if low else 0, 0, 1, 2, 3, 8, high]))

    def narrow(self, depth):
        if depth == 0:
            return self.rng.choice([*self.variables, self.constant(self.dtype)])
        kind = self.rng.choice(list(ARITHMETIC))
        a = self.narrow(depth - 1)
        if kind in (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod):
            return kind(a, IntImm(self.dtype, self.rng.choice([1, 2, 3, 5, 8, 100])))
        return kind(a, self.narrow(self.rng.randrange(depth)))

    def wide(self, depth):
        """An index: casts of narrow arithmetic, and arithmetic of these."""
        if depth == 0:
            return nodes.Cast("int32", self.narrow(self.rng.randrange(3)))
        kind = self.rng.choice([nodes.Add, nodes.Sub, nodes.Min, nodes.Max])
        return kind(self.wide(depth - 1), self.rng.choice([self.constant("int32"), self.wide(0)]))

    def condition(self):
        kind = self.rng.choice(list(COMPARISONS))
        if self.rng.random() < 0.5:
            return kind(self.narrow(self.rng.randrange(3)), self.narrow(self.rng.randrange(2)))
        return kind(self.wide(self.rng.randrange(2)), self.rng.choice([
            self.constant("int32"), self.wide(0)
        ]))  # fmt: skip

    def any(self):
        return self.rng.choice([self.condition, lambda: self.wide(1), lambda: self.narrow(2)])()

    def analyzer(self):
        analyzer = Analyzer()
        for var in self.variables:
            low, extent = self.ranges[var.name]
            analyzer.bind(
                var, Range.from_min_extent(IntImm(self.dtype, low), IntImm(self.dtype, extent))
            )
        return analyzer

    def scopes(self):
        ends = {name: (low, low + extent - 1) for name, (low, extent) in self.ranges.items()}
        for _ in range(40):
            yield {
                name: self.rng.choice([low, high, self.rng.randint(low, high)])
                for name, (low, high) in ends.items()
            }


def test_a_sum_of_loop_variables_of_int8_may_be_negative():
    i = nodes.Var("i", "int8")
    analyzer = Analyzer()
    analyzer.bind(i, Range.from_min_extent(IntImm("int8", 0), IntImm("int8", 124)))
    bound = analyzer.const_int_bound(i + i)
    assert (bound.min_value, bound.max_value) == (-128, 127)
    assert not analyzer.can_prove(nodes.Cast("int32", i + i) >= 0)
    assert analyzer.can_prove(nodes.Cast("int32", i) >= 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_simplified_expressions_wrap_as_they_did(dtype):
    for seed in range(500):
        expressions = Expressions(random.Random(seed), dtype)
        expr = expressions.any()
        result = expressions.analyzer().simplify(expr)
        for scope in expressions.scopes():
            wanted, got = value_of(expr, scope), value_of(result, scope)
            assert got == wanted, f"seed {seed}: {expr} became {result} at {scope}"


@pytest.mark.parametrize("dtype", TYPES)
def test_bounds_and_remainders_hold_where_arithmetic_wraps(dtype):
    for seed in range(500):
        expressions = Expressions(random.Random(1000 + seed), dtype)
        expr = expressions.rng.choice([expressions.narrow, expressions.wide])(2)
        analyzer = expressions.analyzer()
        bound, modular = analyzer.const_int_bound(expr), analyzer.modular_set(expr)
        for scope in expressions.scopes():
            value = value_of(expr, scope)
            assert bound.min_value <= value <= bound.max_value, f"seed {seed}: {expr} at {scope}"
            rest = value - modular.base
            assert rest % modular.coeff == 0 if modular.coeff else rest == 0, f"seed {seed}: {expr}"


@pytest.mark.parametrize("dtype", TYPES)
def test_sets_hold_where_arithmetic_wraps(dtype):
    for seed in range(500):
        expressions = Expressions(random.Random(2000 + seed), dtype)
        expr = expressions.rng.choice([expressions.narrow, expressions.wide])(2)
        values = expressions.analyzer().int_set(expr)
        for scope in expressions.scopes():
            value = value_of(expr, scope)
            low, high = values.min_value, values.max_value
            assert low is neg_inf() or value_of(low, scope) <= value, f"seed {seed}: {expr}"
            assert high is pos_inf() or value <= value_of(high, scope), f"seed {seed}: {expr}"
