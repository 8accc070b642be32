"""Every row of the rule tables, compiled: it matches, builds what it says, and index types only."""

from __future__ import annotations

import ast
import itertools
import random

import pytest

from tests.lib.expression_text import expression
from tests.lib.rewrite_rules import applied
from tests.lib.wrapping import IndexOverflow, value_of
from weft.arith.analyzer import Analyzer
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.rule import Rule, compile_rules
from weft.arith.rule_tables import ALL_RULES
from weft.ir.expr import IntImm
from weft.tir import expr as nodes

CONSTANTS = (4, 2, 3, 1, -1, 0, 6, -4, 5, -2, -3, 8)
BOUNDS = (None, (1, 50), (0, 3), (-3, -1))
"""What may be known of all variables of a rule; the first that its conditions accept is taken."""

# What the conditions of some rows ask of their variables together.
RELATIONS = {
    "sub-min-parallel": lambda w, x, y, z: nodes.EQ(x - z - (y - w), IntImm("int32", 0)),
    "sub-max-parallel": lambda w, x, y, z: nodes.EQ(x - z - (y - w), IntImm("int32", 0)),
    "div-below": lambda x, y: x < y,
    "mod-below": lambda x, y: x < y,
    "div-sum-below": lambda w, x, y, z: z < y,
    "mod-sum-of-mod": lambda x, y, z: nodes.EQ(x + z, IntImm("int32", 0)),
}  # fmt: skip


def names_in(rule: Rule):
    """(variables, constants) of a rule, by name."""
    tree = ast.parse(rule.before, mode="eval")
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - called
    constants = sorted(name for name in names if name[0] == "c")
    return sorted(names - set(constants)), constants


def instances(rule: Rule, dtype="int32"):
    """(expression, Analyzer that knows some bounds, variables) for many constants and bounds."""
    variables, constants = names_in(rule)
    scope = {name: nodes.Var(name, "bool" if name in "pqr" else dtype) for name in variables}
    choice = CONSTANTS if len(constants) < 3 else CONSTANTS[:5]
    for known, values in itertools.product(
        BOUNDS, itertools.product(choice, repeat=len(constants))
    ):
        analyzer = Analyzer()
        for var in scope.values():
            if known is not None and var.dtype == dtype:
                analyzer.update(var, ConstIntBound(*known))
        numbers = {
            name: IntImm(dtype, value) for name, value in zip(constants, values, strict=True)
        }
        yield expression(rule.before, {**scope, **numbers}, dtype), analyzer, list(scope.values())


def points(variables, analyzer, rng):
    """Values of the variables inside of what the Analyzer knows."""
    for _ in range(40):
        scope = {}
        for var in variables:
            bound = analyzer.const_int_bound(var)
            low, high = max(bound.min_value, -12), min(bound.max_value, 12)
            scope[var.name] = rng.randint(low, high)
        yield scope


def related(rule, variables, analyzer):
    """The scope of what a row asks of its variables together."""
    relation = RELATIONS.get(rule.name)
    condition = relation(*variables) if relation is not None else IntImm("bool", 1)
    return condition, analyzer.constraint_scope(condition)


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_a_row_matches_and_builds_what_has_the_same_value(rule: Rule):
    """And the simplifier rewrites what it matches, by this row or by one before it."""
    rng, matchers = random.Random(7), compile_rules([rule])
    for expr, analyzer, variables in instances(rule):
        condition, scope = related(rule, variables, analyzer)
        with scope:
            result = applied(matchers, expr, analyzer)
            if result is None:
                continue
            assert not expr_deep_equal(analyzer.rewrite_simplify(expr), expr)
        assert result.dtype == expr.dtype
        for point in points(variables, analyzer, rng):
            try:
                if value_of(condition, point):
                    assert value_of(result, point) == value_of(expr, point), (expr, result, point)
            except (IndexOverflow, ZeroDivisionError):
                continue  # the program has no value there
        return
    pytest.fail(f"{rule.name} matches no instance of its own pattern")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "int64"])
def test_rows_of_numbers_match_index_types_alone(dtype):
    wrong = []
    for rule in ALL_RULES:
        variables, constants = names_in(rule)
        if not any(name in "xyzw" for name in variables):
            continue
        values = [3, 6, 2, 1][: len(constants)]
        scope = {name: nodes.Var(name, "bool" if name in "pqr" else dtype) for name in variables}
        scope |= {name: IntImm(dtype, v) for name, v in zip(constants, values, strict=True)}
        if "-" in rule.before and dtype.startswith("u"):
            continue  # a negative literal is no number of these types
        expr = expression(rule.before, scope, dtype)
        matches = applied(compile_rules([rule]), expr, Analyzer()) is not None
        if matches if dtype != "int64" else not (matches or rule.where):
            wrong.append(rule.name)
    assert not wrong
