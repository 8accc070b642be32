"""What an Analyzer is told of variables, how it is asked, and what it forgets."""

from __future__ import annotations

import pytest

from tests.lib.expression_text import expression
from weft.arith.analyzer import Analyzer, ProofStrength
from weft.arith.const_int_bound import POS_INF, ConstIntBound
from weft.arith.data import data_variable, has_data, may_change
from weft.arith.extensions import Extension
from weft.arith.facts import Facts, is_index
from weft.arith.modular_set import ModularSet
from weft.ir.expr import FloatImm, IntImm, Range
from weft.ir.structural import structural_equal
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import SizeVar, Var

NAMES = {name: Var(name, "int32") for name in "ijkn"} | {"p": Var("p", "bool")}
I, J, K, N = (NAMES[name] for name in "ijkn")
BUFFER = decl_buffer((8,), "int32", "A")


def ends(analyzer, expr):
    bound = analyzer.const_int_bound(expr)
    return bound.min_value, bound.max_value


RANGES = [
    # begin, extent, what is known besides; the bounds
    (0, 8, {}, (0, 7)), (-3, 5, {}, (-3, 1)), (0, 0, {}, (0, -1)),
    (N, 4, {N: (1, 9)}, (1, 12)), (0, N, {N: (1, 9)}, (0, 8)), (N, N, {N: (1, 9)}, (1, 17)),
    (N - 2, N + 1, {N: (1, 9)}, (-1, 16)),
]  # fmt: skip


@pytest.mark.parametrize(("begin", "extent", "known", "expected"), RANGES)
def test_a_range_bounds_its_variable(begin, extent, known, expected):
    analyzer = Analyzer()
    for var, limits in known.items():
        analyzer.update(var, ConstIntBound(*limits))
    analyzer.bind(I, Range.from_min_extent(begin, extent))
    assert ends(analyzer, I) == expected


def test_a_range_of_one_value_is_that_value():
    analyzer = Analyzer()
    analyzer.bind(I, Range.from_min_extent(N + 2, 1))
    assert structural_equal(analyzer.simplify(I * 2), N * 2 + 4)
    analyzer.bind(J, Range.from_min_extent(N, K - K + 1))  # the extent is 1 when simplified
    assert analyzer.simplify(J - N).value == 0


def test_an_extent_without_a_bound_gives_none():
    analyzer = Analyzer()
    wide, size = Var("w", "int64"), Var("m", "int64")
    analyzer.bind(wide, Range.from_min_extent(IntImm("int64", 0), size))
    assert ends(analyzer, wide) == (0, POS_INF)
    assert analyzer.can_prove(wide < size)


def test_symbolic_ranges_bound_from_both_sides():
    analyzer = Analyzer()
    analyzer.bind(I, Range.from_min_extent(J, N))
    assert analyzer.can_prove(J <= I)
    assert analyzer.can_prove(I < J + N)
    assert not analyzer.can_prove(J < I)
    assert not analyzer.can_prove(I < J + N - 1)


def test_a_range_of_another_type_bounds_by_its_constants_alone():
    analyzer = Analyzer()
    size = SizeVar("s", "int64")
    analyzer.bind(I, Range.from_min_extent(IntImm("int64", 0), size))
    assert ends(analyzer, I)[0] == 0
    assert not analyzer.can_prove(nodes.LT(I.astype("int64"), size))


def test_binding_again_replaces_what_was_known():
    analyzer = Analyzer()
    analyzer.bind(I, J + 1)
    analyzer.bind(I, Range(0, 8))
    assert not analyzer.can_prove_equal(I, J + 1)
    assert ends(analyzer, I) == (0, 7)
    analyzer.bind(I, IntImm("int32", 3), allow_override=True)
    assert analyzer.simplify(I + 1).value == 4
    analyzer.bind(I, Range(0, 8))
    assert not analyzer.can_prove_equal(I, 3)
    assert ends(analyzer, I) == (0, 7)


def test_a_value_is_simplified_by_what_is_known_when_it_is_bound():
    analyzer = Analyzer()
    analyzer.bind(J, Range(0, 8))
    analyzer.bind(I, op.floordiv(K * 8 + J, 8))
    assert analyzer.simplify(I) is K


def test_a_value_that_holds_data_bounds_the_variable_and_does_not_replace_it():
    """The buffer may be overwritten while the variable keeps its value."""
    analyzer = Analyzer()
    analyzer.bind(I, BUFFER[0] % 8 * 4)
    assert ends(analyzer, I) == (0, 28)
    assert analyzer.modular_set(I) == ModularSet(4, 0)
    assert analyzer.simplify(I) is I


def test_bounds_of_variables_are_asked_for():
    analyzer = Analyzer()
    assert not analyzer.const_int_bound_is_bound(I)
    analyzer.bind_nonnegative(I)
    assert analyzer.const_int_bound_is_bound(I)
    assert ends(analyzer, I) == (0, POS_INF)
    assert analyzer.can_prove(I >= 0)


def test_computed_extents_are_not_negative():
    analyzer, extent = Analyzer(), (N + 7) // 8
    assert not analyzer.can_prove(extent >= 0)
    analyzer.bind_nonnegative(extent)
    assert analyzer.can_prove(extent >= 0)
    assert analyzer.can_prove((7 + N) // 8 + 1 > 0)
    assert not analyzer.can_prove(N >= 0)


def test_constant_ranges_are_told_from_other_bounds():
    analyzer = Analyzer()
    analyzer.bind(I, Range(0, 8))
    analyzer.bind(J, Range.from_min_extent(0, N))
    analyzer.update(K, ConstIntBound(0, 7))
    assert analyzer.has_constant_range(I)
    assert not analyzer.has_constant_range(J)
    assert not analyzer.has_constant_range(K)


def test_an_update_of_what_is_no_fact_is_an_error():
    with pytest.raises(IRTypeError, match="expected a ConstIntBound or ModularSet, got Range"):
        Analyzer().update(I, Range(0, 8))


def test_fewer_steps_do_less():
    expr = expression("min(i * 4 + j, i * 4 + 3) - i * 4", NAMES)
    analyzer = Analyzer()
    assert str(analyzer.simplify(expr)) == "T.min(j, 3)"
    results = {steps: str(Analyzer().simplify(expr, steps)) for steps in (0, 1, 2)}
    assert results[2] == "T.min(j, 3)"
    assert len(results[0]) >= len(results[2])
    assert analyzer.simplify(IntImm("int32", 3), 0).value == 3


def test_the_same_object_comes_back_where_nothing_changes():
    for text in ("i + j", "i // 4", "i % 4 * 3", "i < j", "p and i < 3", "min(i, j)", "i * n"):
        expr = expression(text, NAMES)
        analyzer = Analyzer()
        assert analyzer.simplify(expr) is expr
        assert analyzer.simplify(expr) is expr
        assert analyzer.rewrite_simplify(expr) is expr


def test_numbers_of_python_are_expressions():
    analyzer = Analyzer()
    assert analyzer.simplify(7).value == 7
    assert analyzer.can_prove(True)
    assert not analyzer.can_prove(False)
    assert ends(analyzer, 7) == (7, 7)
    assert analyzer.can_prove_equal(I * 0 + 3, 3)


ORDERS = [
    # expression with 2 <= i <= 5, a bound; >=, >, <=, < of them
    (I, 2, (True, False, False, False)), (I, 5, (False, False, True, False)),
    (I, 1, (True, True, False, False)), (I, 6, (False, False, True, True)),
    (I * 2 - 1, 3, (True, False, False, False)), (I % 4, 3, (False, False, True, False)),
    (I - J, 0, (False, False, False, False)), (I - I, 0, (True, False, True, False)),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "limit", "expected"), ORDERS)
def test_comparisons_with_numbers(expr, limit, expected):
    analyzer = Analyzer()
    analyzer.bind(I, Range(2, 6))
    assert (
        analyzer.can_prove_greater_equal(expr, limit), analyzer.can_prove_greater(expr, limit),
        analyzer.can_prove_less_equal(expr, limit), analyzer.can_prove_less(expr, limit),
    ) == expected  # fmt: skip


EQUAL = [
    ("i * 2 + i", "i * 3", True), ("(i + j) * 2", "j * 2 + i * 2", True), ("i", "j", False),
    ("i // 2 * 2 + i % 2", "i", True), ("min(i, j)", "min(i, j + 1)", False),
    ("i < j", "j > i", True), ("i < j", "i <= j", False), ("not (i < j)", "i >= j", True),
    ("i + 1", "i", False), ("p", "p", True),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "expected"), EQUAL, ids=[f"{r[0]} and {r[1]}" for r in EQUAL])
def test_equality(a, b, expected):
    left, right = expression(a, NAMES), expression(b, NAMES)
    assert Analyzer().can_prove_equal(left, right) is expected
    assert Analyzer().can_prove_equal(right, left) is expected


def test_floats_are_equal_where_they_are_written_so():
    x = Var("x", "float32")
    assert Analyzer().can_prove_equal(x + 1.0, x + 1.0)
    assert not Analyzer().can_prove_equal(x + 1.0, 1.0 + x)
    assert not Analyzer().can_prove_equal(x - x, FloatImm("float32", 0.0))  # nan - nan is nan


SYMBOLIC = [
    ("i < n, j < 4", "i * 4 + j < n * 4", True), ("i < n, j < 4", "i * 4 + j + 1 < n * 4", False),
    ("i < n, j < 5", "i * 4 + j < n * 4", False), ("i < n", "n > i", True),
    ("i < n", "i * 2 + 1 < n * 2", True), ("i < n, j < n", "i + j <= n * 2 - 2", True),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "claim", "expected"), SYMBOLIC)
def test_proofs_at_symbolic_ends(facts, claim, expected):
    analyzer = Analyzer()
    for part in facts.split(", "):
        name, high = part.split(" < ")
        analyzer.bind(NAMES[name], Range.from_min_extent(0, expression(high, NAMES)))
    proof = expression(claim, NAMES)
    assert analyzer.can_prove(proof, ProofStrength.SYMBOLIC_BOUND) is expected


def test_symbolic_ends_say_nothing_of_what_is_no_order():
    analyzer = Analyzer()
    analyzer.bind(I, Range.from_min_extent(0, N))
    for claim in (nodes.EQ(I, N), nodes.And(I < N + 1, J < 3), nodes.LT(Var("x", "float32"), 1.0)):
        assert not analyzer.can_prove(claim, ProofStrength.SYMBOLIC_BOUND)


def test_sets_run_over_what_was_bound_or_over_what_is_given():
    analyzer = Analyzer()
    analyzer.bind(I, Range(0, 8))
    bound = analyzer.int_set(I + J)
    assert (str(bound.min_value), str(bound.max_value)) == ("j", "j + 7")
    given = analyzer.int_set(I + J, {J: Range(0, 3)})
    assert (str(given.min_value), str(given.max_value)) == ("i", "i + 2")


def test_extensions_are_switched_on_and_off():
    analyzer = Analyzer()
    p, q, r = (Var(name, "bool") for name in "pqr")
    expr = nodes.Or(nodes.And(p, q), r)
    assert analyzer.simplify(expr) is expr
    analyzer.enabled_extensions = Extension.ConvertBooleanToAndOfOrs
    assert str(analyzer.simplify(expr)) == "(p or r) and (q or r)"
    analyzer.enabled_extensions = Extension.NoExtensions
    assert analyzer.simplify(expr) is expr  # what was remembered is forgotten


def test_the_values_of_extensions_are_those_of_tvm():
    assert [flag.value for flag in Extension] == [1, 2, 4, 8]
    assert Extension.NoExtensions.value == 0
    assert ProofStrength.DEFAULT == 0
    assert ProofStrength.SYMBOLIC_BOUND == 1


def test_statistics_are_a_copy():
    analyzer = Analyzer()
    before = analyzer.rewrite_simplify_stats
    analyzer.rewrite_simplify((I + J) - I)
    assert before.rewrites_performed == 0
    after = analyzer.rewrite_simplify_stats
    assert after.rewrites_performed >= 1
    assert after.max_recursive_depth >= 1
    with analyzer.constraint_scope(I < 3):
        pass
    assert analyzer.rewrite_simplify_stats.constraints_entered == after.constraints_entered + 1


@pytest.mark.parametrize(("dtype", "expected"), [
    ("int32", True), ("int64", True), ("int16", False), ("uint32", False), ("uint64", False),
    ("bool", False), ("float32", False), ("int32x4", False),
])  # fmt: skip
def test_index_types(dtype, expected):
    assert is_index(DataType(dtype)) is expected


def test_facts_come_back_after_a_scope():
    facts = Facts()
    facts.bounds[I] = (0, 7)
    facts.literals.append(I < 3)
    saved = facts.snapshot()
    facts.bounds[I] = (0, 3)
    facts.bounds[J] = (1, 1)
    facts.literals.clear()
    facts.restore(saved)
    assert facts.bounds == {I: (0, 7)}
    assert len(facts.literals) == 1


def test_news_of_a_variable_that_nobody_asked_about_keeps_the_memory():
    facts = Facts()
    facts.bound_memo[1] = (I, (0, 7))
    facts.seen.add(I)
    facts.learn(J)
    assert facts.bound_memo
    facts.learn(I)
    assert not facts.bound_memo
    assert not facts.seen


LOAD = BUFFER[I]
DATA = [
    # expression; whether it holds data, and whether a store may change it
    (I, False, False), (I * 4 + 1, False, False), (IntImm("int32", 3), False, False),
    (LOAD, True, True), (LOAD + 1, True, True), (nodes.Cast("int64", LOAD), True, True),
    (nodes.Select(I < 3, LOAD, J), True, True), (nodes.Not(LOAD < 3), True, True),
    (op.call_extern("int32", "f"), True, True), (op.likely(I < 3), False, False),
    (op.if_then_else(I < 3, I, J), False, False), (op.shift_right(I, J), False, False),
    (op.bitwise_or(I, J), True, True), (nodes.Cast("int32", Var("x", "float32")), True, False),
    (nodes.Ramp(LOAD, 1, 4), True, True), (nodes.Broadcast(I, 4), False, False),
    (nodes.Let(J, LOAD, J + 1), True, True),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "holds", "changes"), DATA, ids=[str(row[0]) for row in DATA])
def test_data(expr, holds, changes):
    assert has_data(expr) is holds
    assert may_change(expr) is changes


def test_a_variable_of_data_holds_data_that_no_store_changes():
    held = data_variable(I)
    assert (held.name, held.dtype) == (I.name, I.dtype)
    assert held is not I
    assert has_data(held)
    assert has_data(held + 1)
    assert not may_change(held + 1)
    assert not has_data(I)
    assert type(data_variable(SizeVar("s", "int64"))) is SizeVar


def test_a_fact_about_a_variable_that_only_an_arm_of_a_choice_mentions_is_used():
    choice = expression("select(0 < n, min(i, 3) + 1, n + 7)", NAMES)
    analyzer = Analyzer()
    assert analyzer.simplify(choice) is choice
    analyzer.bind(I, Range(0, 2))
    assert str(analyzer.simplify(choice)) == "T.Select(0 < n, i + 1, n + 7)"
