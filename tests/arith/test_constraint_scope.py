"""Conditions that hold in a scope: what follows from each kind, in nests, and when they end."""

from __future__ import annotations

import itertools

import pytest

from tests.lib.expression_text import expression
from tests.lib.wrapping import COMPARISONS, value_of
from weft.arith.analyzer import Analyzer
from weft.arith.const_int_bound import NEG_INF, POS_INF, ConstIntBound
from weft.ir.expr import IntImm, Range
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import SizeVar, Var

NAMES = {name: Var(name, "int32") for name in "ijkn"} | {name: Var(name, "bool") for name in "pq"}
I, J, K, N = (NAMES[name] for name in "ijkn")
INT32 = -(2**31), 2**31 - 1


def read(text):
    return expression(text, NAMES)


def ends(analyzer, expr):
    bound = analyzer.const_int_bound(expr)
    return bound.min_value, bound.max_value


# A condition; the bounds of i that it gives.
LIMITS = [
    ("i < 8", INT32[0], 7), ("i <= 8", INT32[0], 8), ("i > 8", 9, INT32[1]),
    ("i >= 8", 8, INT32[1]), ("8 > i", INT32[0], 7), ("8 <= i", 8, INT32[1]), ("i == 8", 8, 8),
    ("8 == i", 8, 8), ("i != 8", *INT32), ("not (i < 8)", 8, INT32[1]),
    ("not (i >= 8)", INT32[0], 7), ("not (i != 8)", 8, 8), ("not (i == 8)", *INT32),
    ("i >= 2 and i < 8", 2, 7), ("not (i < 2 or i >= 8)", 2, 7), ("i < 2 or i >= 8", *INT32),
    ("i + 3 < 8", INT32[0], 4), ("3 - i < 0", 4, INT32[1]), ("i * 4 <= 18", INT32[0], 4),
    ("i // 4 == 3", *INT32), ("min(i, 100) < 8", INT32[0], 7), ("max(i, 0) < 8", INT32[0], 7),
    ("i - 2 >= 0 and not (i > 5)", 2, 5),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "low", "high"), LIMITS, ids=[row[0] for row in LIMITS])
def test_the_bounds_of_a_condition(condition, low, high):
    analyzer = Analyzer()
    with analyzer.constraint_scope(read(condition)):
        assert ends(analyzer, I) == (low, high)
    assert ends(analyzer, I) == INT32


CONDITIONS = [
    "i < 3", "i <= j", "i == j", "i != j", "i + j < 4", "i - j >= 2", "i * 2 < j * 2 + 1",
    "i % 3 == 1", "i // 2 == 1", "i < j and j < 3", "i < j or i == 2", "not (i < j or j == 0)",
    "min(i, j) > 0", "max(i, j) <= 2", "p and i < 2", "not p", "select(p, i, j) < 2",
]  # fmt: skip
CLAIMS = [
    "i < 3", "i <= j", "j < i", "i == j", "i != j", "i % 3 == 1", "i < 2", "0 < j", "i + j < 6",
    "i - j < 2", "i * 3 == 6", "max(i, j) < 3", "i // 2 < 2", "p", "not p",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_is_proved_under_a_condition_is_true_where_it_holds(condition):
    """And what is simplified under it has the same value there."""
    given = read(condition)
    points = [
        {"i": i, "j": j, "p": p} for i, j, p in itertools.product(range(5), range(4), (False, True))
    ]
    inside = [point for point in points if value_of(given, point)]
    for claim in CLAIMS:
        analyzer, wanted = Analyzer(), read(claim)
        analyzer.bind(I, Range(0, 5))
        analyzer.bind(J, Range(0, 4))
        with analyzer.constraint_scope(given):
            simple = analyzer.simplify(wanted)
        for point in inside:
            assert bool(value_of(simple, point)) == bool(value_of(wanted, point)), (claim, point)


def test_a_condition_proves_itself_and_refutes_its_opposite():
    for kind in COMPARISONS:
        condition, opposite = kind(I, J), nodes.Not(kind(I, J))
        analyzer = Analyzer()
        with analyzer.constraint_scope(condition):
            assert analyzer.can_prove(condition)
            assert analyzer.simplify(opposite).value == 0
        with analyzer.constraint_scope(opposite):
            assert analyzer.simplify(condition).value == 0
            assert analyzer.can_prove(opposite)


def test_scopes_nest_and_end_one_by_one():
    analyzer = Analyzer()
    with analyzer.constraint_scope(I >= 0):
        with analyzer.constraint_scope(I < 8):
            with analyzer.constraint_scope(I > 3):
                assert ends(analyzer, I) == (4, 7)
            assert ends(analyzer, I) == (0, 7)
        assert ends(analyzer, I) == (0, INT32[1])
    assert ends(analyzer, I) == INT32


def test_a_looser_condition_inside_changes_nothing():
    analyzer = Analyzer()
    with analyzer.constraint_scope(I < 8), analyzer.constraint_scope(I < 100):
        assert ends(analyzer, I)[1] == 7
        assert analyzer.can_prove(I < 8)


def test_a_scope_ends_when_an_error_leaves_it():
    analyzer = Analyzer()
    with pytest.raises(KeyError), analyzer.constraint_scope(I < 8):
        assert analyzer.can_prove(I < 8)
        raise KeyError("inside")
    assert not analyzer.can_prove(I < 8)


def test_a_scope_that_was_left_can_be_entered_again():
    analyzer = Analyzer()
    for limit in (8, 4, 8):
        with analyzer.constraint_scope(I < limit):
            assert ends(analyzer, I)[1] == limit - 1
            assert analyzer.can_prove(I < limit)
            assert not analyzer.can_prove(I < limit - 1)


def test_contradictory_conditions_break_nothing():
    """Code that never runs: whatever is said of it is true, and outside it is forgotten."""
    analyzer = Analyzer()
    with analyzer.constraint_scope(I < 3), analyzer.constraint_scope(I > 5):
        low, high = ends(analyzer, I)
        assert low > high
        analyzer.simplify(I * 2 + 1)
        analyzer.can_prove(I < 100)
        analyzer.modular_set(I * 4)
        analyzer.int_set(I + J)
    assert ends(analyzer, I) == INT32
    with analyzer.constraint_scope(IntImm("bool", 0)):
        assert not analyzer.can_prove(IntImm("bool", 0))
    with analyzer.constraint_scope(IntImm("bool", 1)):
        assert ends(analyzer, I) == INT32


def test_facts_that_are_learned_inside_end_with_the_scope():
    analyzer = Analyzer()
    with analyzer.constraint_scope(I < N):
        analyzer.bind(J, Range(0, 4))
        analyzer.bind(K, I + 1)
        assert analyzer.can_prove(J < 4)
        assert analyzer.can_prove_equal(K, I + 1)
    assert not analyzer.can_prove(J < 4)
    assert not analyzer.can_prove_equal(K, I + 1)


def test_what_was_simplified_before_a_scope_is_simplified_again_inside_and_after():
    analyzer = Analyzer()
    expr = op.max(I, 8)
    assert analyzer.simplify(expr) is expr
    with analyzer.constraint_scope(I < 8):
        assert analyzer.simplify(expr).value == 8
    assert analyzer.simplify(expr) is expr


def test_likely_is_opened_and_both_parts_of_a_conjunction_hold():
    analyzer = Analyzer()
    with analyzer.constraint_scope(op.likely(op.all(I < 8, op.likely(J >= 2)))):
        assert ends(analyzer, I)[1] == 7
        assert ends(analyzer, J)[0] == 2


def test_a_disjunction_holds_as_a_whole():
    analyzer = Analyzer()
    condition = op.any(I < 3, J < 3)
    with analyzer.constraint_scope(condition):
        assert analyzer.can_prove(condition)
        assert not analyzer.can_prove(I < 3)
        assert not analyzer.can_prove(J < 3)
    with analyzer.constraint_scope(nodes.Not(condition)):
        assert analyzer.can_prove(I >= 3)
        assert analyzer.can_prove(J >= 3)


def test_flags_are_known_inside():
    p, q = NAMES["p"], NAMES["q"]
    analyzer = Analyzer()
    with analyzer.constraint_scope(nodes.And(p, nodes.Not(q))):
        assert analyzer.can_prove(p)
        assert analyzer.simplify(q).value == 0
        assert analyzer.simplify(nodes.Select(p, I, J)) is I


STRONGER = [
    # what is known; a comparison; what it becomes
    ("i <= j", "j <= i", "j == i"), ("i <= j", "i != j", "i < j"), ("i != j", "i <= j", "i < j"),
    ("i < j", "i != j", "T.bool(True)"), ("i < j", "i == j", "T.bool(False)"),
    ("i == j", "i <= j", "T.bool(True)"), ("i <= j", "i < j", "i < j"),
]  # fmt: skip


@pytest.mark.parametrize(("known", "text", "expected"), STRONGER)
def test_a_comparison_is_made_stronger_by_what_is_known(known, text, expected):
    analyzer = Analyzer()
    with analyzer.constraint_scope(read(known)):
        assert str(analyzer.simplify(read(text))) == expected


def test_comparisons_of_two_sums_bound_their_difference():
    analyzer = Analyzer()
    with analyzer.constraint_scope(I + 3 <= J), analyzer.constraint_scope(J + 2 <= K):
        assert analyzer.can_prove(I + 5 <= K)
        assert not analyzer.can_prove(I + 6 <= K)
        assert analyzer.simplify(op.max(I, K)) is K
        assert str(analyzer.simplify(op.min(J, I + 2))) == "i + 2"


def test_the_bounds_of_one_side_bound_the_other():
    analyzer = Analyzer()
    analyzer.bind(J, Range(2, 6))
    with analyzer.constraint_scope(I < J):
        assert ends(analyzer, I)[1] == 4
    with analyzer.constraint_scope(I > J):
        assert ends(analyzer, I)[0] == 3
    with analyzer.constraint_scope(nodes.EQ(I, J)):
        assert ends(analyzer, I) == (2, 5)


def test_an_equality_of_expressions_bounds_the_larger_one():
    analyzer = Analyzer()
    with analyzer.constraint_scope(nodes.EQ(I * J, IntImm("int32", 12))):
        assert ends(analyzer, I * J) == (12, 12)
        assert analyzer.simplify(I * J < 13).value == 1
        assert ends(analyzer, I) == INT32


def test_conditions_on_data_are_left_out_where_a_store_may_end_them():
    data = decl_buffer((8,), "int32", "A")[I]
    analyzer = Analyzer()
    with analyzer.constraint_scope(op.all(data < 3, I < 4)):
        assert not analyzer.can_prove(data < 3)
        assert analyzer.can_prove(I < 4)
    inside = nodes.Select(data < 3, op.min(data, 3), IntImm("int32", 0))
    assert str(Analyzer().simplify(inside)) == "T.Select(A[i] < 3, A[i], 0)"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "float32"])
def test_conditions_on_types_that_wrap_give_no_bounds_but_hold(dtype):
    value, limit = Var("v", dtype), op.const(5, dtype)
    analyzer = Analyzer()
    before = analyzer.const_int_bound(value)
    with analyzer.constraint_scope(nodes.LT(value, limit)):
        assert analyzer.can_prove(nodes.LT(value, limit))
        assert analyzer.const_int_bound(value).min_value == before.min_value
        assert not analyzer.can_prove(nodes.LT(value, op.const(4, dtype)))


def test_conditions_on_int64_give_bounds():
    wide = Var("w", "int64")
    analyzer = Analyzer()
    with analyzer.constraint_scope(op.all(wide >= 3, wide < 1 << 40)):
        assert ends(analyzer, wide) == (3, (1 << 40) - 1)
    assert ends(analyzer, wide) == (NEG_INF, POS_INF)


def test_sizes_stay_nonnegative_under_conditions():
    size = SizeVar("s", "int32")
    analyzer = Analyzer()
    with analyzer.constraint_scope(size < 100):
        assert ends(analyzer, size) == (0, 99)
    with analyzer.constraint_scope(size >= -5):
        assert ends(analyzer, size)[0] == 0


CHOICES = [
    ("select(i < 4, select(i < 8, j, k), k)", "T.Select(i < 4, j, k)"),
    ("select(i < 8, select(i < 4, j, k), n)", "T.Select(i < 8, T.Select(i < 4, j, k), n)"),
    ("select(i < 4, j, select(i >= 4, k, n))", "T.Select(i < 4, j, k)"),
    ("select(i < 4, j, select(i < 2, k, n))", "T.Select(i < 4, j, n)"),
    ("ite(i < j, max(i, j), i - j)", "T.if_then_else(i < j, j, i - j)"),
    ("ite(i < j, k, min(i, j))", "T.if_then_else(i < j, k, j)"),
    ("select(p, select(p, i, j), select(p, j, k))", "T.Select(p, i, k)"),
    ("select(p and q, select(q, i, j), select(p, k, n))",
     "T.Select(p and q, i, T.Select(p, k, n))"),
    ("select(not p, select(p, i, j), i)", "T.Select(p, i, j)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CHOICES, ids=[row[0] for row in CHOICES])
def test_each_branch_of_a_choice_knows_its_condition(text, expected):
    assert str(Analyzer().simplify(read(text))) == expected


def test_the_condition_of_one_branch_is_not_known_beside_it():
    expr = op.if_then_else(I < 4, op.min(I, 4), 0) + op.min(I, 4)
    text = str(Analyzer().simplify(expr))
    assert text.count("T.min(i, 4)") == 1


def test_updates_inside_of_a_scope_are_narrowed_by_it():
    analyzer = Analyzer()
    with analyzer.constraint_scope(I < 10):
        analyzer.update(I, ConstIntBound(4, 20))
        assert ends(analyzer, I) == (4, 9)
    assert ends(analyzer, I) == INT32
