"""Random integer expressions: simplification keeps the value and is idempotent."""

from __future__ import annotations

import random

import pytest

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, Range
from weft.tir import expr as nodes
from weft.tir.arithmetic import truncated_quotient, truncated_remainder

VARIABLES = [nodes.Var(name, "int32") for name in "ijkn"]
EXTENTS = {"i": 8, "j": 3, "k": 4, "n": 16}
ARITHMETIC = [nodes.Add, nodes.Sub, nodes.Mul, nodes.FloorDiv, nodes.FloorMod, nodes.Min, nodes.Max,
              nodes.Div, nodes.Mod]  # fmt: skip
COMPARISONS = [nodes.LT, nodes.LE, nodes.GT, nodes.GE, nodes.EQ, nodes.NE]
PYTHON = {
    nodes.Add: lambda a, b: a + b, nodes.Sub: lambda a, b: a - b, nodes.Mul: lambda a, b: a * b,
    nodes.FloorDiv: lambda a, b: a // b, nodes.FloorMod: lambda a, b: a % b, nodes.Min: min,
    nodes.Max: max, nodes.Div: truncated_quotient, nodes.Mod: truncated_remainder,
    nodes.LT: lambda a, b: a < b, nodes.LE: lambda a, b: a <= b, nodes.GT: lambda a, b: a > b,
    nodes.GE: lambda a, b: a >= b, nodes.EQ: lambda a, b: a == b, nodes.NE: lambda a, b: a != b,
    nodes.And: lambda a, b: a and b, nodes.Or: lambda a, b: a or b,
}  # fmt: skip


def constant(rng, *, positive=False):
    low = 1 if positive else -8
    return IntImm("int32", rng.choice([*range(low, 9), 16, 32]))


def integer(rng, depth):
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(VARIABLES) if rng.random() < 0.7 else constant(rng)
    kind = rng.choice(ARITHMETIC)
    if rng.random() < 0.05:
        return nodes.Select(boolean(rng, 1), integer(rng, depth - 1), integer(rng, depth - 1))
    a = integer(rng, depth - 1)
    if kind in (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod):
        return kind(
            a, constant(rng, positive=True) if rng.random() < 0.8 else rng.choice(VARIABLES)
        )
    return kind(a, constant(rng) if rng.random() < 0.3 else integer(rng, depth - 1))


def boolean(rng, depth):
    choice = rng.random()
    if depth == 0 or choice < 0.6:
        return rng.choice(COMPARISONS)(integer(rng, depth), integer(rng, depth))
    if choice < 0.7:
        return nodes.Not(boolean(rng, depth - 1))
    return rng.choice([nodes.And, nodes.Or])(boolean(rng, depth - 1), boolean(rng, depth - 1))


def value(expr, scope):
    kind = type(expr)
    if kind is IntImm:
        return expr.value
    if kind is nodes.Var:
        return scope[expr.name]
    if kind is nodes.Not:
        return not value(expr.a, scope)
    if kind is nodes.Select:
        return value(expr.true_value if value(expr.condition, scope) else expr.false_value, scope)
    if kind is nodes.And:
        return value(expr.a, scope) and value(expr.b, scope)
    if kind is nodes.Or:
        return value(expr.a, scope) or value(expr.b, scope)
    return PYTHON[kind](value(expr.a, scope), value(expr.b, scope))


def scopes(rng, bounded, count=24):
    for _ in range(count):
        if bounded:
            yield {name: rng.randrange(extent) for name, extent in EXTENTS.items()}
        else:
            yield {name: rng.randrange(-40, 41) for name in EXTENTS}


def text(expr):
    kind = type(expr)
    if kind is IntImm:
        return str(expr.value)
    if isinstance(expr, nodes.Var):
        return expr.name
    if isinstance(expr, nodes.BinaryExpr):
        return f"{kind.__name__}({text(expr.a)}, {text(expr.b)})"
    children = ", ".join(text(getattr(expr, name)) for name in expr.CHILDREN)
    return f"{kind.__name__}({children})"


def analyzer_for(bounded):
    analyzer = Analyzer()
    if bounded:
        for var in VARIABLES:
            analyzer.bind(var, Range(0, EXTENTS[var.name]))
    return analyzer


def check(expr, simplify, rng, bounded, name):
    result = simplify(expr)
    for scope in scopes(rng, bounded):
        try:
            expected = value(expr, scope)
        except ZeroDivisionError:
            continue
        got = value(result, scope)
        assert got == expected, f"{name}: {text(expr)} became {text(result)} at {scope}"
    if expr_deep_equal(result, expr):
        assert result is expr, f"{name}: {text(expr)} was rebuilt"
    return result


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("make", [integer, boolean])
def test_simplify_keeps_the_value_and_is_idempotent(make, bounded):
    rng = random.Random(20 + bounded)
    for _ in range(250):
        expr = make(rng, rng.choice([1, 2, 2, 3]))
        result = check(expr, analyzer_for(bounded).simplify, rng, bounded, "simplify")
        again = analyzer_for(bounded).simplify(result)
        assert again is result, f"{text(expr)} -> {text(result)} -> {text(again)}"


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("method", ["rewrite_simplify", "canonical_simplify"])
def test_each_simplifier_keeps_the_value(method, bounded):
    rng = random.Random(40 + bounded)
    for _ in range(200):
        expr = rng.choice([integer, boolean])(rng, rng.choice([1, 2, 3]))
        check(expr, getattr(analyzer_for(bounded), method), rng, bounded, method)


@pytest.mark.parametrize("bounded", [True, False])
def test_bounds_and_modular_sets_hold(bounded):
    rng = random.Random(60 + bounded)
    for _ in range(300):
        expr = integer(rng, rng.choice([1, 2, 3]))
        analyzer = analyzer_for(bounded)
        bound, modular = analyzer.const_int_bound(expr), analyzer.modular_set(expr)
        for scope in scopes(rng, bounded):
            try:
                got = value(expr, scope)
            except ZeroDivisionError:
                continue
            assert bound.min_value <= got <= bound.max_value, (text(expr), scope, bound)
            rest = (got - modular.base) % modular.coeff if modular.coeff else got - modular.base
            assert rest == 0, (text(expr), scope, modular)


def test_constraint_scopes_only_use_what_holds():
    rng = random.Random(80)
    for _ in range(200):
        condition, expr = boolean(rng, 1), rng.choice([integer, boolean])(rng, 2)
        analyzer = analyzer_for(False)
        with analyzer.constraint_scope(condition):
            result = analyzer.simplify(expr)
        for scope in scopes(rng, False):
            try:
                if not value(condition, scope):
                    continue
                expected = value(expr, scope)
            except ZeroDivisionError:
                continue
            assert value(result, scope) == expected, (text(condition), text(expr), text(result))
