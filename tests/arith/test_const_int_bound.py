"""Constant bounds of every node: what brute force over small intervals says, and infinite ends."""

from __future__ import annotations

import itertools

import pytest

from tests.lib.wrapping import ARITHMETIC, COMPARISONS, wrapped
from weft.arith.analyzer import Analyzer
from weft.arith.const_int_bound import NEG_INF, POS_INF, ConstIntBound, clamp, type_bound
from weft.ir.expr import IntImm, integer_range
from weft.support.dtype import DataType
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.intrinsic import vscale

X, Y, Z = (nodes.Var(name, "int32") for name in "xyz")
W, V = (nodes.Var(name, "int64") for name in "wv")
DIVISIONS = (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod)
INTERVALS = [(low, high) for low in range(-4, 5) for high in range(low, 6)]
EXACT = [kind for kind in ARITHMETIC if kind not in (nodes.FloorMod, nodes.Mod)]


def known(**ends):
    """An Analyzer that knows constant bounds of the variables."""
    analyzer = Analyzer()
    for var in (X, Y, Z, W, V):
        if var.name in ends:
            analyzer.update(var, ConstIntBound(*ends[var.name]))
    return analyzer


def bound(expr, **ends):
    """(min, max) of an expression."""
    result = known(**ends).const_int_bound(expr)
    return result.min_value, result.max_value


def values(kind, first, second):
    """All values that an operator has on two intervals; a division by 0 has none."""
    return [
        ARITHMETIC[kind](a, b)
        for a in range(first[0], first[1] + 1)
        for b in range(second[0], second[1] + 1)
        if b or kind not in DIVISIONS
    ]


@pytest.mark.parametrize("kind", EXACT, ids=lambda kind: kind.__name__)
def test_bounds_of_two_independent_operands_are_exact(kind):
    for first, second in itertools.product(INTERVALS[::2], INTERVALS):
        reached = values(kind, first, second)
        if reached:
            expected = min(reached), max(reached)
            assert bound(kind(X, Y), x=first, y=second) == expected, (first, second)


@pytest.mark.parametrize("kind", [nodes.FloorMod, nodes.Mod], ids=lambda kind: kind.__name__)
def test_bounds_of_remainders_hold_every_value(kind):
    for first, second in itertools.product(INTERVALS, INTERVALS):
        reached = values(kind, first, second)
        if reached:
            low, high = bound(kind(X, Y), x=first, y=second)
            assert low <= min(reached), (first, second)
            assert max(reached) <= high, (first, second)


@pytest.mark.parametrize("by", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("kind", [nodes.FloorMod, nodes.Mod], ids=lambda kind: kind.__name__)
def test_a_dividend_below_the_divisor_is_its_own_remainder(kind, by):
    for low, high in itertools.combinations_with_replacement(range(by), 2):
        assert bound(kind(X, IntImm("int32", by)), x=(low, high)) == (low, high)
    assert bound(kind(X, IntImm("int32", by)), x=(0, by)) == (0, by - 1)


# The remainder of what is known to be coeff * k + base: only some of [0, divisor) are reached.
@pytest.mark.parametrize(
    ("coeff", "base", "by"), list(itertools.product((1, 2, 3, 4, 6), (0, 1, 5), (2, 3, 4, 6, 9)))
)
def test_a_remainder_steps_as_its_dividend_does(coeff, base, by):
    reached = {(coeff * k + base) % by for k in range(-40, 40)}
    assert bound((X * coeff + base) % by) == (min(reached), max(reached))


INFINITE = [
    # expression; bounds of w and v (int64); the bounds
    (W + V, (0, POS_INF), (5, 9), (5, POS_INF)),
    (W + V, (NEG_INF, 3), (5, 9), (NEG_INF, 12)),
    (W + V, (NEG_INF, POS_INF), (5, 9), (NEG_INF, POS_INF)),
    (W - V, (0, POS_INF), (5, 9), (-9, POS_INF)),
    (W - V, (0, 7), (5, POS_INF), (NEG_INF, 2)),
    (W - V, (0, 7), (NEG_INF, 5), (-5, POS_INF)),
    (W * V, (1, POS_INF), (2, 3), (2, POS_INF)),
    (W * V, (1, POS_INF), (-3, -2), (NEG_INF, -2)),
    (W * V, (NEG_INF, POS_INF), (0, 0), (0, 0)),
    (W * V, (2, POS_INF), (0, POS_INF), (0, POS_INF)),
    (nodes.FloorDiv(W, V), (0, POS_INF), (2, 3), (0, POS_INF)),
    (nodes.FloorDiv(W, V), (0, 9), (2, POS_INF), (0, 4)),
    (nodes.FloorDiv(W, V), (-9, 9), (2, POS_INF), (-5, 4)),
    (nodes.FloorDiv(W, V), (NEG_INF, -1), (4, 4), (NEG_INF, -1)),
    (nodes.FloorDiv(W, V), (5, 9), (NEG_INF, -2), (-5, -1)),
    (nodes.Div(W, V), (-9, 9), (2, POS_INF), (-4, 4)),
    (nodes.Div(W, V), (5, 9), (NEG_INF, -2), (-4, 0)),
    (nodes.FloorMod(W, V), (NEG_INF, POS_INF), (3, 7), (0, 6)),
    (nodes.FloorMod(W, V), (0, 4), (3, POS_INF), (0, 4)),
    (nodes.FloorMod(W, V), (NEG_INF, POS_INF), (3, POS_INF), (0, POS_INF)),
    (nodes.FloorMod(W, V), (NEG_INF, POS_INF), (-5, -2), (-4, 0)),
    (nodes.Mod(W, V), (NEG_INF, POS_INF), (3, 7), (-6, 6)),
    (nodes.Mod(W, V), (0, POS_INF), (3, 7), (0, 6)),
    (nodes.Mod(W, V), (NEG_INF, 0), (3, 7), (-6, 0)),
    (nodes.Min(W, V), (0, POS_INF), (5, 9), (0, 9)),
    (nodes.Max(W, V), (0, POS_INF), (5, 9), (5, POS_INF)),
    (nodes.Max(W, V), (NEG_INF, 7), (NEG_INF, 9), (NEG_INF, 9)),
]


@pytest.mark.parametrize(
    ("expr", "first", "second", "expected"), INFINITE,
    ids=[f"{row[0]} of {ConstIntBound(*row[1])} {ConstIntBound(*row[2])}" for row in INFINITE],
)  # fmt: skip
def test_infinite_ends(expr, first, second, expected):
    assert bound(expr, w=first, v=second) == expected


def test_numbers_beyond_two_to_the_62_count_as_infinite():
    near, far = 1 << 61, 1 << 62
    assert clamp(-near, near) == (-near, near)
    assert clamp(-far, far) == (NEG_INF, POS_INF)
    assert bound(W + V, w=(0, near), v=(0, near)) == (0, POS_INF)
    assert bound(W * V, w=(-far, 1), v=(4, 4)) == (NEG_INF, 4)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bool", (0, 1)), ("int8", (-128, 127)), ("uint8", (0, 255)), ("int16", (-32768, 32767)),
        ("uint32", (0, 2**32 - 1)), ("int32", (-(2**31), 2**31 - 1)), ("int64", (NEG_INF, POS_INF)),
        ("uint64", (0, POS_INF)), ("int8x4", (-128, 127)), ("float32", (NEG_INF, POS_INF)),
    ],
)  # fmt: skip
def test_what_a_type_says(dtype, expected):
    assert type_bound(DataType(dtype)) == expected
    if "x" not in dtype:
        assert bound(nodes.Var("t", dtype)) == expected


def test_bounds_say_in_words_what_is_infinite():
    assert repr(ConstIntBound(NEG_INF, 7)) == "ConstIntBound[neg_inf, 7]"
    assert repr(ConstIntBound(-3, POS_INF)) == "ConstIntBound[-3, pos_inf]"


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int64", "uint64", "bool"])
@pytest.mark.parametrize("source", ["int8", "uint8", "int16", "int32"])
def test_casts_hold_every_value_and_are_exact_where_nothing_wraps(source, target):
    var, (low, high) = nodes.Var("s", source), integer_range(DataType(source))
    fits_low, fits_high = integer_range(DataType(target))
    for ends in ((0, 0), (0, 9), (1, 5), (-3, 4), (-9, -2), (100, 127), (120, 200), (-128, 127)):
        if not (low <= ends[0] and ends[1] <= high):
            continue
        analyzer = Analyzer()
        analyzer.update(var, ConstIntBound(*ends))
        found = analyzer.const_int_bound(nodes.Cast(target, var))
        numbers = range(ends[0], ends[1] + 1)
        reached = [int(bool(n)) if target == "bool" else wrapped(n, target) for n in numbers]
        assert found.min_value <= min(reached), ends
        assert max(reached) <= found.max_value or found.max_value == POS_INF, ends
        if target != "bool" and fits_low <= ends[0] and ends[1] <= fits_high:
            assert found == ConstIntBound(min(reached), max(reached)), ends


def test_a_cast_of_a_float_has_the_bounds_of_its_type():
    assert bound(nodes.Cast("int32", nodes.Var("f", "float32"))) == (-(2**31), 2**31 - 1)
    assert bound(nodes.Cast("int8", nodes.Var("f", "float32"))) == (-128, 127)


def test_truths_are_zero_or_one():
    p = nodes.Var("p", "bool")
    compared = [kind(X, Y) for kind in COMPARISONS]
    for truth in (p, nodes.Not(p), nodes.And(p, p), nodes.Or(p, p), *compared):
        assert bound(truth) == (0, 1)
    assert bound(nodes.Cast("int32", X < Y) * 5) == (0, 5)


def test_choices_have_the_values_of_both_sides():
    p = nodes.Var("p", "bool")
    for choice in (nodes.Select(p, X, Y), op.if_then_else(p, X, Y)):
        assert bound(choice, x=(1, 3), y=(7, 9)) == (1, 9)
        assert bound(choice, x=(-2, 8), y=(0, 3)) == (-2, 8)
    assert bound(op.likely(X < 3)) == (0, 1)


def test_a_let_has_the_bounds_of_its_body_under_its_value():
    inner = nodes.Var("t", "int32")
    assert bound(nodes.Let(inner, X + 1, inner * 2), x=(0, 4)) == (2, 10)


@pytest.mark.parametrize("stride", [-3, -1, 0, 1, 4])
@pytest.mark.parametrize("ends", [(0, 0), (-2, 5), (3, 9)])
def test_a_ramp_has_the_values_of_all_its_lanes(stride, ends):
    lanes = [base + stride * lane for base in range(ends[0], ends[1] + 1) for lane in range(4)]
    ramp = nodes.Ramp(X, IntImm("int32", stride), 4)
    assert bound(ramp, x=ends) == (min(lanes), max(lanes))
    assert bound(nodes.Broadcast(X, 4), x=ends) == ends


def test_a_ramp_of_unknown_lanes_is_unbounded_where_it_leads_to():
    assert bound(nodes.Ramp(W, IntImm("int64", 2), vscale() * 4), w=(3, 5)) == (3, POS_INF)
    assert bound(nodes.Ramp(W, IntImm("int64", -2), vscale() * 4), w=(3, 5)) == (NEG_INF, 5)
    assert bound(vscale())[0] == 1


SHIFTED = [(low, high) for low in (-9, -1, 0, 5, 17) for high in (0, 3, 17, 40) if low <= high]


@pytest.mark.parametrize("by", range(6))
def test_shifts_by_a_number_are_exact(by):
    amount = IntImm("int32", by)
    for low, high in SHIFTED:
        assert bound(op.shift_right(X, amount), x=(low, high)) == (low >> by, high >> by)
        if low >= 0:
            assert bound(op.shift_left(X, amount), x=(low, high)) == (low << by, high << by)


def test_shifts_by_a_range_hold_every_value():
    left = bound(op.shift_left(X, Y), x=(1, 5), y=(0, 3))
    assert left == (1, 40)
    limits = type_bound(DataType("int32"))
    assert bound(op.shift_left(X, Y), x=(-1, 5), y=(0, 3)) == limits
    assert bound(op.shift_left(X, Y), x=(1, 5), y=(0, 31)) == limits  # 5 << 31 is no int32
    assert bound(op.shift_right(X, Y), x=(8, 9), y=(0, 3)) == limits


@pytest.mark.parametrize("mask", [0, 1, 6, 7, 15])
def test_a_mask_bounds_what_it_lets_through(mask):
    for low, high in SHIFTED:
        reached = [value & mask for value in range(low, high + 1)]
        least, most = bound(op.bitwise_and(X, IntImm("int32", mask)), x=(low, high))
        assert least <= min(reached)
        assert max(reached) <= most <= mask
    assert bound(op.bitwise_and(X, Y), x=(-5, 3), y=(0, 9)) == (0, 9)
    assert bound(op.bitwise_and(X, Y), x=(-5, 3), y=(-2, 9)) == type_bound(DataType("int32"))


@pytest.mark.parametrize(("dtype", "bits"), [("int32", 32), ("int64", 64), ("uint8", 8)])
def test_counts_of_bits_are_at_most_all_of_them(dtype, bits):
    value = nodes.Var("t", dtype)
    for name in ("clz", "popcount"):
        assert bound(nodes.Call("int32", name, [value])) == (0, bits)


def test_what_is_learned_of_an_expression_bounds_it():
    analyzer = known(x=(0, 100), y=(0, 100))
    with analyzer.constraint_scope(X + Y * 2 <= 30):
        assert analyzer.const_int_bound(X + Y * 2) == ConstIntBound(0, 30)
        with analyzer.constraint_scope(X + Y * 2 >= 12):
            assert analyzer.const_int_bound(X + Y * 2) == ConstIntBound(12, 30)
    assert analyzer.const_int_bound(X + Y * 2) == ConstIntBound(0, 300)


def test_arithmetic_on_data_has_the_bounds_of_its_type_where_it_may_wrap():
    data = decl_buffer((4,), "int32", "A")[0]
    limits = type_bound(DataType("int32"))
    assert bound(data + 1) == limits
    assert bound(data % 8 + 1) == (1, 8)
    assert bound((data % 8 + 1) * 4) == (4, 32)
    assert bound(data % 8 * (1 << 30)) == limits
    assert bound(nodes.Max(data, IntImm("int32", 0)) - 1) == (-1, 2**31 - 2)
    assert bound(nodes.Min(data, IntImm("int32", 0)) - 1) == limits
