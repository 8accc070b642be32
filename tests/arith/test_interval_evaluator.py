"""Sets of values of every node, over bounded, half-bounded and unbounded operands."""

from __future__ import annotations

import itertools

import pytest

from tests.lib.wrapping import ARITHMETIC
from weft.arith.analyzer import Analyzer
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.int_set import (
    IntervalSet,
    IntSet,
    as_int_set,
    eval_region,
    eval_set,
    intersect,
    neg_inf,
    pos_inf,
    union,
)
from weft.ir.expr import IntImm, Range
from weft.ir.structural import structural_equal
from weft.support.errors import IRTypeError
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import decl_buffer

X, Y, N, M = (nodes.Var(name, "int32") for name in "xynm")
FAR = 40
"""An unbounded set is tried up to here."""
DIVISIONS = (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod)
SHAPES = [(2, 5), (-3, 4), (-6, -2), (0, 0), (3, None), (-2, None), (None, -1), (None, 4),
          (None, None)]  # fmt: skip


def interval(low, high):
    """The set; None is no end."""
    least = neg_inf() if low is None else IntImm("int32", low)
    return IntervalSet(least, pos_inf() if high is None else IntImm("int32", high))


def numbers(low, high):
    return range(-FAR if low is None else low, (FAR if high is None else high) + 1)


def ends(found):
    """(min, max) with None for what is infinite."""
    low, high = found.min_value, found.max_value
    return None if low is neg_inf() else low.value, None if high is pos_inf() else high.value


@pytest.mark.parametrize("kind", ARITHMETIC, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("first", SHAPES, ids=str)
def test_a_set_holds_every_value(kind, first):
    for second in SHAPES:
        low, high = ends(eval_set(kind(X, Y), {X: interval(*first), Y: interval(*second)}))
        for a, b in itertools.product(numbers(*first)[::3], numbers(*second)[::3]):
            if b or kind not in DIVISIONS:
                value = ARITHMETIC[kind](a, b)
                assert low is None or low <= value, (second, a, b)
                assert high is None or value <= high, (second, a, b)


EXACT = [
    # operator, sets of both operands, the set of its values
    (nodes.Add, (3, None), (1, 4), (4, None)),
    (nodes.Add, (None, 4), (None, -1), (None, 3)),
    (nodes.Add, (3, None), (None, 4), (None, None)),
    (nodes.Sub, (3, None), (1, 4), (-1, None)),
    (nodes.Sub, (3, None), (None, 4), (-1, None)),
    (nodes.Sub, (None, 4), (3, None), (None, 1)),
    (nodes.Sub, (3, None), (3, None), (None, None)),
    (nodes.Mul, (3, None), (4, 4), (12, None)),
    (nodes.Mul, (3, None), (-4, -4), (None, -12)),
    (nodes.Mul, (None, 5), (-2, -2), (-10, None)),
    (nodes.Mul, (4, 4), (None, 5), (None, 20)),
    (nodes.Mul, (2, 3), (0, 0), (0, 0)),
    (nodes.FloorDiv, (-7, 9), (4, 4), (-2, 2)),
    (nodes.FloorDiv, (-7, None), (4, 4), (-2, None)),
    (nodes.FloorDiv, (None, 9), (-4, -4), (-3, None)),
    (nodes.Div, (-7, 9), (4, 4), (-1, 2)),
    (nodes.Div, (None, 9), (-4, -4), (-2, None)),
    (nodes.FloorMod, (-7, 9), (4, 4), (0, 3)),
    (nodes.FloorMod, (None, None), (4, 4), (0, 3)),
    (nodes.FloorMod, (9, 10), (4, 4), (1, 2)),
    (nodes.FloorMod, (-7, -6), (4, 4), (1, 2)),
    (nodes.Mod, (-7, 9), (4, 4), (-3, 3)),
    (nodes.Mod, (9, 10), (4, 4), (1, 2)),
    (nodes.Mod, (0, None), (4, 4), (0, 3)),
    (nodes.Mod, (None, None), (4, 4), (-3, 3)),
    (nodes.Min, (3, None), (1, 4), (1, 4)),
    (nodes.Min, (3, None), (5, None), (3, None)),
    (nodes.Min, (None, 9), (1, 4), (None, 4)),
    (nodes.Max, (3, None), (1, 4), (3, None)),
    (nodes.Max, (None, 9), (1, 4), (1, 9)),
    (nodes.Max, (None, 9), (None, 4), (None, 9)),
]


@pytest.mark.parametrize(
    ("kind", "first", "second", "expected"), EXACT,
    ids=[f"{row[0].__name__} of {row[1]} {row[2]}" for row in EXACT],
)  # fmt: skip
def test_exact_sets(kind, first, second, expected):
    found = eval_set(kind(X, Y), {X: interval(*first), Y: interval(*second)})
    assert ends(found) == expected


SYMBOLIC = [
    # expression; domain of x; the ends
    (X + N, (0, 3), "n", "n + 3"),
    (N - X, (0, 3), "n - 3", "n"),
    (X * 4 + N * 2, (1, 3), "n * 2 + 4", "n * 2 + 12"),
    (X * -1 + N, (1, 3), "n - 3", "n - 1"),
    (op.min(X, N), (0, 3), "T.min(n, 0)", "T.min(n, 3)"),
    (op.max(X + N, N), (0, 3), "n", "n + 3"),
    (op.if_then_else(N < 3, X, N), (0, 3), "T.min(n, 0)", "T.max(n, 3)"),
    (nodes.Select(N < 3, X, X + 4), (0, 3), "0", "7"),
    (nodes.Cast("int64", X) * 2, (0, 3), "T.int64(0)", "T.int64(6)"),
]


@pytest.mark.parametrize(
    ("expr", "domain", "low", "high"), SYMBOLIC, ids=[str(row[0]) for row in SYMBOLIC]
)
def test_symbols_stay_in_the_ends(expr, domain, low, high):
    found = eval_set(expr, {X: interval(*domain)})
    assert (str(found.min_value), str(found.max_value)) == (low, high)


def test_a_product_with_a_symbol_has_ends_where_its_sign_is_known():
    analyzer = Analyzer()
    analyzer.update(N, ConstIntBound(1, 64))
    positive = eval_set(X * N, {X: interval(0, 3)}, analyzer)
    assert (str(positive.min_value), str(positive.max_value)) == ("0", "n * 3")
    analyzer.update(N, ConstIntBound(-64, -1), override=True)
    negative = eval_set(X * N, {X: interval(0, 3)}, analyzer)
    assert (str(negative.min_value), str(negative.max_value)) == ("n * 3", "0")
    unknown = eval_set(X * N, {X: interval(0, 3)})
    assert unknown.is_everything()


def test_a_remainder_by_a_symbol_is_below_it_where_that_is_positive():
    analyzer = Analyzer()
    assert eval_set(X % N, {X: interval(0, 9)}, analyzer).max_value is pos_inf()
    analyzer.update(N, ConstIntBound(1, 64))
    found = eval_set(X % N, {X: interval(0, 9)}, analyzer)
    assert (str(found.min_value), str(found.max_value)) == ("0", "n - 1")


def test_a_quotient_by_zero_has_no_ends_that_divide_by_zero():
    for kind in (nodes.FloorDiv, nodes.Div):
        assert eval_set(kind(X, Y), {X: interval(1, 4), Y: interval(0, 0)}).is_everything()


def test_an_expression_without_the_variables_is_its_own_set():
    for expr in (N + M, N * M, N // 3, N % 3, op.min(N, M), nodes.Select(N < 3, N, M)):
        found = eval_set(expr, {X: interval(0, 3)})
        assert found.is_single_point()
        assert structural_equal(found.min_value, Analyzer().simplify(expr))


def test_no_value_in_gives_no_value_out():
    empty = {X: IntSet.nothing(), Y: interval(0, 3)}
    assert ends(eval_set(Y + 1, empty)) == (1, 4)
    for kind in ARITHMETIC:
        assert eval_set(kind(X, Y), empty).is_nothing(), kind
        assert eval_set(kind(Y, X), empty).is_nothing(), kind


def test_ends_that_mention_variables_of_the_domains_are_relaxed_in_turn():
    domains = {X: Range.from_min_extent(Y, 4), Y: Range.from_min_extent(N, 8), N: Range(0, 3)}
    assert ends(eval_set(X, domains)) == (0, 12)
    assert ends(eval_set(IntervalSet(X, X + Y), domains)) == (0, 21)


def test_domains_that_mention_each_other_without_end_are_unbounded():
    circle = {X: IntervalSet(Y, Y + 1), Y: IntervalSet(X, X + 1)}
    assert eval_set(X + 1, circle).is_everything()


def test_data_has_any_value_where_its_place_is_not_fixed():
    buffer = decl_buffer((8,), "int32", "A")
    found = eval_set(buffer[X] + 1, {X: interval(0, 3)})
    assert found.is_everything()
    fixed = eval_set(buffer[N] + X, {X: interval(0, 3)})
    assert structural_equal(fixed.max_value, buffer[N] + 3)


def test_what_has_no_rule_has_the_bounds_that_the_analyzer_knows():
    domains = {X: interval(0, 3)}
    analyzer = Analyzer()
    analyzer.bind(X, Range(0, 4))
    assert ends(eval_set(op.shift_left(X, 2), domains, analyzer)) == (0, 12)
    assert ends(eval_set(op.bitwise_and(X, 2), domains, analyzer)) == (0, 2)
    assert eval_set(op.call_extern("int32", "f", X), domains, analyzer).is_everything()
    assert eval_set(nodes.Cast("float32", X), domains, analyzer).is_everything()


def test_truths_lie_between_false_and_true():
    found = eval_set(X < 2, {X: interval(0, 3)})
    low, high = found.min_value, found.max_value
    assert low is neg_inf() or low.value == 0
    assert high is pos_inf() or high.value == 1


CASTS = [
    # from, to, the set before, the set after
    ("int32", "int64", (-3, 9), (-3, 9)), ("int8", "int32", (-3, 9), (-3, 9)),
    ("uint8", "int16", (3, 200), (3, 200)), ("uint8", "int8", (3, 100), (3, 100)),
    ("int32", "int8", (3, 100), (3, 100)), ("int32", "uint32", (3, 9), (3, 9)),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "before", "after"), CASTS)
def test_casts_of_sets_of_numbers_hold_every_value(source, target, before, after):
    var = nodes.Var("v", source)
    analyzer = Analyzer()
    low, high = (IntImm(source, end) for end in before)
    analyzer.bind(var, Range.from_min_extent(low, IntImm(source, before[1] - before[0] + 1)))
    found = eval_set(nodes.Cast(target, var), {var: IntervalSet(low, high)}, analyzer)
    least, most = ends(found)
    assert least is None or least <= after[0]
    assert most is None or most >= after[1]
    if source != "int32" or target == "int64":
        assert str(found.max_value.dtype) == target


@pytest.mark.parametrize(("base", "stride", "expected"), [
    ((0, 5), 2, (0, 11)), ((0, 5), -2, (-6, 5)), ((0, 5), 0, (0, 5)), ((3, None), 2, (3, None)),
    ((None, 5), 2, (None, 11)),
])  # fmt: skip
def test_the_set_of_a_ramp_is_that_of_all_lanes(base, stride, expected):
    ramp = nodes.Ramp(X, IntImm("int32", stride), 4)
    assert ends(eval_set(ramp, {X: interval(*base)})) == expected


def test_a_ramp_of_an_unknown_stride_is_unbounded():
    assert eval_set(nodes.Ramp(X, Y, 4), {X: interval(0, 3), Y: interval(1, 2)}).is_everything()


def test_a_let_runs_over_the_set_of_its_value():
    inner = nodes.Var("t", "int32")
    let = nodes.Let(inner, X * 2, inner + Y)
    assert ends(eval_set(let, {X: interval(0, 3), Y: interval(1, 2)})) == (1, 8)


def test_regions_are_evaluated_dimension_by_dimension():
    region = [Range.from_min_extent(X * 2, 2), Range.from_min_extent(N, 3)]
    rows, columns = eval_region(region, {X: interval(0, 3)})
    assert ends(rows) == (0, 7)
    assert (str(columns.min_value), str(columns.max_value)) == ("n", "n + 2")


PAIRS = list(itertools.product([*SHAPES, "nothing"], repeat=2))


def as_set(shape):
    return IntSet.nothing() if shape == "nothing" else interval(*shape)


def contents(shape):
    return set() if shape == "nothing" else set(numbers(*shape))


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=[f"{a} and {b}" for a, b in PAIRS])
def test_unions_and_intersections_are_those_of_numbers(first, second):
    def window(found):
        return set() if found.is_nothing() else set(numbers(*ends(found)))

    a, b = as_set(first), as_set(second)
    both, either = contents(first) & contents(second), contents(first) | contents(second)
    assert window(intersect([a, b])) == both
    hull = set(range(min(either), max(either) + 1)) if either else set()
    assert window(union([a, b])) == hull


def test_unions_of_symbols_are_minima_and_maxima():
    found = union([IntSet.interval(N, N + 3), IntSet.interval(M, 9)])
    assert (str(found.min_value), str(found.max_value)) == ("T.min(n, m)", "T.max(n + 3, 9)")
    same = union([IntSet.interval(N, N + 3), IntSet.interval(N, N + 7)])
    assert (same.min_value, str(same.max_value)) == (N, "n + 7")


def test_sets_of_two_types_have_no_common_end():
    wide = IntSet.interval(IntImm("int64", 1), IntImm("int64", 4))
    assert union([interval(0, 3), wide]).is_everything()


def test_a_set_of_what_is_none_is_an_error():
    with pytest.raises(IRTypeError, match="an IntSet, a Range or an expression, got str"):
        as_int_set("0..3")
    assert ends(as_int_set(7)) == (7, 7)
    assert ends(as_int_set(Range(2, 6))) == (2, 5)


def test_cover_ranges():
    default = Range(0, 100)
    assert interval(3, None).cover_range(default) is default
    assert IntSet.nothing().cover_range(default) is default
    assert interval(5, 2).cover_range(default) is default
    point = IntSet.single_point(N).cover_range(default)
    assert (point.min, point.extent.value) == (N, 1)
    symbolic = IntSet.interval(N, N + 7).cover_range(default, Analyzer())
    assert symbolic.extent.value == 8
    whole = IntSet.interval(-(2**31), 2**31 - 1)
    assert whole.cover_range(default) is default  # 2**32 values are more than an int32 counts
