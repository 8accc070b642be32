"""The extensions of the simplifier: their forms, and that they keep the value."""

from __future__ import annotations

import random

import pytest

from weft.arith.analyzer import Analyzer, ProofStrength
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.extensions import Extension
from weft.ir.expr import IntImm, Range
from weft.testing.constraints import check_bool_expr_is_true
from weft.tir import op
from weft.tir.expr import EQ, LT, And, Not, Or, Var

A, B, C, N = (Var(name, "int32") for name in "abcn")
P, Q, R, S = (Var(name, "bool") for name in "pqrs")
FORM = Extension.ConvertBooleanToAndOfOrs


def simplified(expr, flags):
    analyzer = Analyzer()
    analyzer.enabled_extensions = flags
    return analyzer.simplify(expr)


def boolean(rng, depth):
    if depth == 0:
        return rng.choice([P, Q, R, A < 3, B <= A, A < B, EQ(A, B)])
    if rng.random() < 0.2:
        return Not(boolean(rng, depth - 1))
    return rng.choice([And, Or])(boolean(rng, depth - 1), boolean(rng, depth - 1))


def is_form(expr, kind=And):
    if type(expr) is kind:
        return is_form(expr.a, kind) and is_form(expr.b, kind)
    return is_form(expr, Or) if kind is And else type(expr) not in (And, Or)


def same(before, after):
    ranges = {var: Range(0, 2) for var in (P, Q, R)} | {var: Range(0, 5) for var in (A, B)}
    check_bool_expr_is_true(after, ranges, before)
    check_bool_expr_is_true(before, ranges, after)


@pytest.mark.parametrize("flags", [FORM, Extension.ApplyConstraintsToBooleanBranches,
                                   FORM | Extension.ApplyConstraintsToBooleanBranches])  # fmt: skip
def test_conditions_keep_their_value(flags):
    rng = random.Random(5)
    for _ in range(60):
        expr = boolean(rng, 3)
        after = simplified(expr, flags)
        same(expr, after)
        assert not flags & FORM or is_form(after), after


def test_form_distributes_and_joins():
    assert str(simplified(Or(And(P, Q), R), FORM)) == "(p or r) and (q or r)"
    assert simplified(And(Or(P, Q), Or(P, Not(Q))), FORM) is P
    assert str(simplified(Or(And(P, Q), And(R, Not(R))), FORM)) == "p and q"


def test_form_of_too_many_clauses_is_left():
    names = [Var(f"v{i}", "bool") for i in range(14)]
    expr = And(names[0], names[1])
    for i in range(2, 14, 2):
        expr = Or(expr, And(names[i], names[i + 1]))
    assert type(simplified(expr, FORM)) is Or


def test_branches_know_each_other():
    expr = And(A < 3, Or(A < 5, P))
    assert str(simplified(expr, Extension.ApplyConstraintsToBooleanBranches)) == "a < 3"


@pytest.mark.parametrize(("factors", "less", "greater"), [
    ((1, 15), True, False), ((1, 16), False, False), ((65, 99), False, True),
    ((64, 99), False, False),
])  # fmt: skip
def test_product_and_sum(factors, less, greater):
    analyzer = Analyzer()
    for var in (A, B):
        analyzer.update(var, ConstIntBound(32, 128))
    analyzer.update(C, ConstIntBound(*factors))
    assert not analyzer.can_prove((A + B) * C < A * B)
    analyzer.enabled_extensions = Extension.ComparisonOfProductAndSum
    assert analyzer.can_prove((A + B) * C < A * B) is less
    assert analyzer.can_prove((A + B) * C > A * B) is greater


def test_flags_are_read_and_set():
    analyzer = Analyzer()
    assert analyzer.enabled_extensions is Extension.NoExtensions
    analyzer.enabled_extensions = 3
    assert analyzer.enabled_extensions == Extension(3)


def test_statistics_are_counted_and_reset():
    analyzer = Analyzer()
    analyzer.rewrite_simplify(op.floordiv(A * 8, 8) + B - B)
    stats = analyzer.rewrite_simplify_stats
    assert stats.nodes_visited > 0
    assert stats.rewrites_performed == 2
    assert stats.rewrites_attempted >= 2
    analyzer.reset_rewrite_simplify_stats()
    assert analyzer.rewrite_simplify_stats.nodes_visited == 0
    assert stats.nodes_visited > 0


def test_proofs_at_the_symbolic_ends_of_ranges():
    analyzer = Analyzer()
    analyzer.bind(A, Range(0, N))
    analyzer.bind(B, Range(0, 8))
    claim = LT(A * 8 + B, N * 8)
    assert analyzer.can_prove(claim, ProofStrength.SYMBOLIC_BOUND)
    assert not analyzer.can_prove(LT(A * 8 + B, N * 8 - 1), ProofStrength.SYMBOLIC_BOUND)


def test_comparisons_with_constants():
    analyzer = Analyzer()
    analyzer.bind(A, Range(2, 6))
    assert analyzer.can_prove_less_equal(A, 5)
    assert not analyzer.can_prove_less_equal(A, 4)
    assert analyzer.can_prove_greater(A, 1)
    assert not analyzer.can_prove_greater(A, 2)
    assert analyzer.can_prove_equal(A + A, A * IntImm("int32", 2))
