from __future__ import annotations

import itertools

import pytest

from weft.arith.analyzer import Analyzer
from weft.arith.int_set import (
    IntervalSet,
    IntSet,
    eval_set,
    intersect,
    neg_inf,
    pos_inf,
    union,
    union_lower_bound,
)
from weft.ir.expr import IntImm, Range
from weft.ir.functor import substitute
from weft.ir.structural import structural_equal
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Div, FloorDiv, Ramp, Select, Var
from weft.tir.intrinsic import vscale

I, J, N = (Var(name, "int32") for name in "ijn")
DOMAINS = {I: Range(0, 5), J: Range(-2, 4)}


def ends(found):
    return found.min_value.value, found.max_value.value


@pytest.mark.parametrize(
    "expr",
    [
        I + J, I - J, I * 3 + J, I * -2 - J, (I * 4 + J) // 3, (I + 7) % 3, (I + 8) % 16,
        op.min(I, J), op.max(I * 2, J + 3), I // 2 * 2, Select(I < J, I, J), J % 4, 7 - I,
    ],
    ids=str,
)  # fmt: skip
def test_interval_holds_every_value(expr):
    low, high = ends(eval_set(expr, DOMAINS))
    for i, j in itertools.product(range(5), range(-2, 4)):
        value = Analyzer().simplify(substitute(expr, {I: op.const(i), J: op.const(j)})).value
        assert low <= value <= high


def test_symbolic_ends():
    found = eval_set(I * 4 + J, {I: Range(0, N), J: Range(0, 4)})
    assert found.min_value.value == 0
    assert structural_equal(found.max_value, N * 4 - 1)


def test_free_variables_stay():
    found = eval_set(N * 4 + J, {J: Range(0, 4)})
    assert structural_equal(found.min_value, N * 4)
    assert structural_equal(found.max_value, N * 4 + 3)


def test_bounds_that_mention_other_variables_are_relaxed():
    found = eval_set(J, {I: Range(0, 8), J: Range.from_min_extent(I, 4)})
    assert ends(found) == (0, 10)


def test_data_is_unbounded():
    a = decl_buffer((8,), "int32", "A")
    found = eval_set(a[I], {I: Range(0, 8)})
    assert found.is_everything()
    assert eval_set(a[N], {I: Range(0, 8)}).is_single_point()


def test_vectors():
    assert ends(IntSet.vector(Ramp(op.const(2), op.const(3), op.const(4)))) == (2, 11)
    assert ends(eval_set(Ramp(I * 4, op.const(1), op.const(4)), {I: Range(0, 8)})) == (0, 31)


def test_sets():
    assert IntSet.nothing().is_nothing()
    assert IntSet.everything().is_everything()
    assert ends(union([IntSet.interval(1, 3), IntSet.interval(7, 9)])) == (1, 9)
    assert ends(intersect([IntSet.interval(1, 8), IntSet.interval(7, 9)])) == (7, 8)
    assert intersect([IntSet.interval(1, 3), IntSet.interval(7, 9)]).is_nothing()
    assert IntervalSet(neg_inf(), pos_inf()).is_everything()
    assert IntSet.single_point(I).is_single_point()


def test_a_range_of_two_widths_is_of_the_wider_one():
    """A gather reads ``x[index[i]]`` from an index of int32, over an extent of int64."""
    found = IntSet.from_range(Range.from_min_extent(I, IntImm("int64", 4)))
    assert found.max_value.dtype == "int64"
    expected = I.astype("int64") + IntImm("int64", 3)
    assert Analyzer().can_prove_equal(found.max_value, expected)


def test_cover_range_falls_back():
    default = Range(0, 16)
    assert IntSet.everything().cover_range(default) is default
    assert IntSet.interval(2, 5).cover_range(default).extent.value == 4


def test_analyzer_int_set_uses_bound_ranges():
    analyzer = Analyzer()
    analyzer.bind(I, Range(0, 8))
    assert ends(analyzer.int_set(I * 2)) == (0, 14)


def test_truncating_division_and_remainder_by_what_is_positive():
    x, y = Var("x", "int32"), Var("y", "int32")
    analyzer = Analyzer()
    analyzer.bind(y, Range(1, 100))

    def texts(expr, low, high):
        found = analyzer.int_set(expr, {x: IntervalSet(low, high)})
        return str(found.min_value), str(found.max_value)

    assert texts(op.truncdiv(x, 2), -7, 9) == ("-3", "4")
    assert texts(op.truncdiv(x, y), 1, 9) == ("T.Div(1, y)", "T.Div(9, y)")
    assert texts(op.truncmod(x, 8), -7, 9) == ("-7", "7")
    assert texts(op.truncmod(x, 8), 17, 19) == ("1", "3")


def test_a_quotient_that_wraps_has_no_ends():
    # -128 // -1 is 128, which is no int8: the ends would be -127 and -128, a set without values
    x, minus_one = Var("x", "int8"), IntImm("int8", -1)
    whole = IntervalSet(IntImm("int8", -128), IntImm("int8", 127))
    for kind in (FloorDiv, Div):
        quotients = Analyzer().int_set(kind(x, minus_one), {x: whole})
        assert quotients.min_value is neg_inf()
        assert quotients.max_value is pos_inf()


def test_lanes_of_a_scalable_ramp():
    found = IntSet.vector(Ramp(5, 2, vscale() * 4))
    assert found.min_value.value == 5
    assert found.max_value is pos_inf()


def test_sums_and_differences_of_unbounded_sets():
    x, y = Var("x", "int32"), Var("y", "int32")
    above = IntervalSet(op.const(3), pos_inf())
    total = eval_set(x + y, {x: above, y: IntSet.interval(1, 4)})
    assert (total.min_value.value, total.max_value) == (4, pos_inf())
    difference = eval_set(y - x, {x: above, y: IntSet.interval(1, 4)})
    assert (difference.min_value, difference.max_value.value) == (neg_inf(), 1)


def test_union_lower_bound_drops_what_leaves_a_gap():
    near = [IntervalSet(0, 3), IntervalSet(4, 6), IntervalSet(9, 12)]
    found = union_lower_bound(near)
    assert (found.min_value.value, found.max_value.value) == (0, 6)
    endless = [IntervalSet(neg_inf(), 0), IntervalSet(1, pos_inf()), IntSet.nothing()]
    assert union_lower_bound(endless).is_everything()
    assert union_lower_bound([]).is_nothing()
    x = Var("x", "int32")
    found = union_lower_bound([IntervalSet(x, x + 3), IntervalSet(x + 4, x + 9)])
    assert Analyzer().can_prove_equal(found.max_value, x + 9)


def test_ends_that_come_from_the_type_of_a_symbol_are_none():
    """Arithmetic on them would wrap: ``n + 2147483640`` is no end."""
    n, i, m = [Var(name, "int32") for name in "nim"]
    index = i * op.floordiv(n + 9, 10) * 2 + m
    found = eval_set(index, {i: Range(0, 3)}, Analyzer())
    assert found.min_value is neg_inf()
    assert found.max_value is pos_inf()


def test_the_empty_set_has_no_bounds():
    """Whoever asks for bounds computes with the ends, which are no numbers here."""
    assert not IntSet.nothing().is_bounded
    assert not IntSet.everything().is_bounded
    assert IntervalSet(IntImm("int32", 0), IntImm("int32", -1)).is_bounded
