"""Comparisons of types that wrap: bounds decide them where no value can make them differ."""

from __future__ import annotations

import itertools

import pytest

from tests.lib.wrapping import COMPARISONS
from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, Range, integer_range
from weft.support.dtype import DataType
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import decl_buffer

NARROW = ("int8", "uint8", "int16", "uint16", "uint32", "uint64")
INTERVALS = [(0, 0), (0, 3), (2, 5), (4, 4), (4, 9), (6, 9)]


def bounded(dtype, *intervals):
    """(analyzer, one variable for each interval, whose values it has)."""
    analyzer = Analyzer()
    variables = [nodes.Var(name, dtype) for name in "xyz"[: len(intervals)]]
    for var, (low, high) in zip(variables, intervals, strict=True):
        begin, extent = IntImm(dtype, low), IntImm(dtype, high - low + 1)
        analyzer.bind(var, Range.from_min_extent(begin, extent))
    return analyzer, *variables


def truth(expr):
    """The value of a decided comparison; None where it is open."""
    return bool(expr.value) if isinstance(expr, IntImm) else None


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("kind", COMPARISONS, ids=lambda kind: kind.__name__)
def test_a_comparison_is_decided_where_all_values_agree(kind, dtype):
    for first, second in itertools.product(INTERVALS, repeat=2):
        values = {
            COMPARISONS[kind](a, b)
            for a in range(first[0], first[1] + 1)
            for b in range(second[0], second[1] + 1)
        }
        analyzer, x, y = bounded(dtype, first, second)
        expected = values.pop() if len(values) == 1 else None
        assert truth(analyzer.simplify(kind(x, y))) is expected, (first, second)


@pytest.mark.parametrize("dtype", NARROW)
def test_the_smaller_and_the_larger_of_separate_intervals_are_known(dtype):
    for first, second in itertools.product(INTERVALS, repeat=2):
        analyzer, x, y = bounded(dtype, first, second)
        smaller, larger = analyzer.simplify(nodes.Min(x, y)), analyzer.simplify(nodes.Max(x, y))
        least, most = (x, y) if first[1] <= second[0] else (y, x)
        if first[1] <= second[0] or second[1] <= first[0]:
            assert expr_deep_equal(smaller, analyzer.simplify(least))
            assert expr_deep_equal(larger, analyzer.simplify(most))
        else:
            assert (type(smaller), type(larger)) == (nodes.Min, nodes.Max)


@pytest.mark.parametrize("dtype", NARROW[:5])
def test_every_value_lies_between_the_ends_of_its_type(dtype):
    x, (low, high) = nodes.Var("x", dtype), integer_range(DataType(dtype))
    least, most = IntImm(dtype, low), IntImm(dtype, high)
    analyzer = Analyzer()
    assert truth(analyzer.simplify(nodes.GE(x, least))) is True
    assert truth(analyzer.simplify(nodes.LE(x, most))) is True
    assert truth(analyzer.simplify(nodes.LT(x, least))) is False
    assert truth(analyzer.simplify(nodes.LT(x, most))) is None
    assert truth(analyzer.simplify(nodes.EQ(x, most))) is None
    assert analyzer.simplify(nodes.Max(x, least)) is x
    assert analyzer.simplify(nodes.Min(nodes.Max(x, least), most)) is x


@pytest.mark.parametrize(("dtype", "low", "extent", "step"), [
    ("int8", 100, 20, 9), ("uint8", 200, 50, 7), ("int16", 32000, 700, 69),
    ("uint16", 65000, 500, 37), ("uint32", 2**32 - 100, 90, 11),
])  # fmt: skip
def test_a_sum_that_may_wrap_is_not_taken_to_be_larger(dtype, low, extent, step):
    """``x + step`` of the largest x is the smallest number of the type, or one near it."""
    analyzer, x = bounded(dtype, (low, low + extent - 1))
    limit = IntImm(dtype, low)
    assert truth(analyzer.simplify(nodes.LE(limit, x + IntImm(dtype, step)))) is None
    fits = integer_range(DataType(dtype))[1] - (low + extent - 1)
    assert truth(analyzer.simplify(nodes.LE(limit, x + IntImm(dtype, fits)))) is True
    assert truth(analyzer.simplify(nodes.LE(limit, x + IntImm(dtype, fits + 1)))) is None


def test_a_difference_of_unsigned_numbers_wraps_below_zero():
    analyzer, x, y = bounded("uint8", (0, 3), (2, 5))
    assert truth(analyzer.simplify(nodes.LT(x - y, IntImm("uint8", 10)))) is None  # 0 - 5 is 251
    assert truth(analyzer.simplify(nodes.LT(y + x, IntImm("uint8", 9)))) is True
    analyzer, x, y = bounded("uint8", (10, 20), (2, 5))
    assert truth(analyzer.simplify(nodes.LT(x - y, IntImm("uint8", 19)))) is True


def test_what_lies_beyond_int64_is_compared_with_care():
    """Bounds count up to 2**63: a uint64 may be larger than what they call infinite."""
    x, far = nodes.Var("x", "uint64"), IntImm("uint64", 2**63 + 5)
    analyzer = Analyzer()
    for kind in COMPARISONS:
        assert truth(analyzer.simplify(kind(x, far))) is None
        assert truth(analyzer.simplify(kind(far, x))) is None
    assert type(analyzer.simplify(nodes.Max(x, far))) is nodes.Max
    assert truth(analyzer.simplify(nodes.GE(x, IntImm("uint64", 0)))) is True
    assert truth(analyzer.simplify(nodes.LT(x, IntImm("uint64", 0)))) is False


def test_elements_of_narrow_buffers_are_decided_by_their_type_too():
    buffer = decl_buffer((4,), "uint8", "A")
    data = buffer[0]
    analyzer = Analyzer()
    assert truth(analyzer.simplify(nodes.GE(data, IntImm("uint8", 0)))) is True
    assert analyzer.simplify(nodes.Max(data, IntImm("uint8", 0))) is data
    assert truth(analyzer.simplify(nodes.LT(data, IntImm("uint8", 255)))) is None
    low = op.bitwise_and(data, IntImm("uint8", 15))
    assert truth(analyzer.simplify(nodes.LT(low, IntImm("uint8", 16)))) is True
    assert truth(analyzer.simplify(nodes.LT(low, IntImm("uint8", 15)))) is None


def test_data_of_index_types_that_may_wrap_is_decided_by_what_does_not():
    """``a[0] + a[1]`` may be any int32; its remainder by 8 is one of eight numbers."""
    buffer = decl_buffer((4,), "int32", "A")
    total = buffer[0] + buffer[1]
    analyzer = Analyzer()
    assert truth(analyzer.simplify(total % 8 < 8)) is True
    assert truth(analyzer.simplify(total % 8 < 7)) is None
    assert truth(analyzer.simplify(total < total + 1)) is None  # of 2**31 - 1 that is false
    smaller = analyzer.simplify(nodes.Min(total % 8, IntImm("int32", 7)))
    assert expr_deep_equal(smaller, total % 8)


@pytest.mark.parametrize("kind", COMPARISONS, ids=lambda kind: kind.__name__)
def test_floats_are_decided_by_nothing(kind):
    x = nodes.Var("x", "float32")
    assert truth(Analyzer().simplify(kind(x, x))) is None  # nan compares as no number does
    assert truth(Analyzer().simplify(kind(x, op.const(1.0, "float32")))) is None


def test_truths_are_compared_as_the_numbers_zero_and_one():
    p, q = nodes.Var("p", "bool"), nodes.Var("q", "bool")
    true = IntImm("bool", 1)
    assert truth(Analyzer().simplify(nodes.LE(p, true))) is True
    assert truth(Analyzer().simplify(nodes.LT(true, p))) is False
    assert truth(Analyzer().simplify(nodes.EQ(p, q))) is None


def test_a_choice_under_a_decided_comparison_is_taken():
    analyzer, x = bounded("uint8", (0, 9))
    chosen = nodes.Select(nodes.LT(x, IntImm("uint8", 10)), x, IntImm("uint8", 7))
    assert analyzer.simplify(chosen) is x
    open_ = nodes.Select(nodes.LT(x, IntImm("uint8", 9)), x, IntImm("uint8", 7))
    assert type(analyzer.simplify(open_)) is nodes.Select


def test_a_sum_of_64_bits_whose_end_is_unknown_may_wrap():
    """An infinite bound stands for 2**63 - 1 and all beyond: one more is the other end."""
    x, data = nodes.Var("x", "uint64"), decl_buffer((4,), "int64", "A")[0]
    five = IntImm("uint64", 5)
    assert Analyzer().const_int_bound(x + five).min_value == 0
    assert truth(Analyzer().simplify(nodes.LE(five, x + five))) is None
    nonnegative = nodes.Max(data, IntImm("int64", 0))
    assert Analyzer().const_int_bound(nonnegative).min_value == 0
    assert not Analyzer().can_prove_greater_equal(nonnegative + 5, 0)
    digit = nodes.FloorMod(nonnegative, IntImm("int64", 64))
    assert Analyzer().can_prove_greater_equal(digit + 5, 5)


@pytest.mark.parametrize("kind", [nodes.FloorDiv, nodes.Div], ids=lambda kind: kind.__name__)
def test_only_a_quotient_by_minus_one_may_wrap(kind):
    """-2**63 // -1 is 2**63, which wraps; no other quotient leaves its type."""
    data = decl_buffer((4,), "int64", "A")[0]
    four, minus_one = IntImm("int64", 4), IntImm("int64", -1)
    zero = IntImm("int64", 0)
    assert Analyzer().can_prove_greater_equal(kind(nodes.Max(data, zero), four), 0)
    assert not Analyzer().can_prove_greater_equal(kind(nodes.Min(data, zero), minus_one), 0)
    x = nodes.Var("x", "int8")
    assert Analyzer().const_int_bound(kind(x, IntImm("int8", -2))).max_value == 64
    assert Analyzer().const_int_bound(kind(x, IntImm("int8", -1))).min_value == -128
    analyzer, y = bounded("int8", (-127, -2))
    assert analyzer.const_int_bound(kind(y, IntImm("int8", -1))).max_value == 127


def test_the_larger_of_any_uint64_and_a_far_number_has_no_end():
    x, far = nodes.Var("x", "uint64"), IntImm("uint64", 2**63 + 5)
    chosen = nodes.Select(nodes.Var("p", "bool"), x, far)
    for expr in (nodes.Max(x, far), chosen):
        assert Analyzer().const_int_bound(expr).max_value == Analyzer().const_int_bound(x).max_value


@pytest.mark.parametrize("dtype", NARROW)
def test_a_number_equals_itself_in_every_type(dtype):
    x = nodes.Var("x", dtype)
    for kind, compare in COMPARISONS.items():
        assert truth(Analyzer().simplify(kind(x + x, x + x))) is compare(0, 0)
    assert Analyzer().simplify(nodes.Min(x, x)) is x


def test_a_call_may_have_another_result_when_it_is_made_again():
    call = op.call_extern("uint8", "next")
    again = op.call_extern("uint8", "next")
    assert truth(Analyzer().simplify(nodes.EQ(call, again))) is None
    assert type(Analyzer().simplify(nodes.Min(call, again))) is nodes.Min
