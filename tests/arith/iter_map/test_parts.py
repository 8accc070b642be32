"""The parts of iteration maps, each alone: nodes, levels, predicates, chains, paddings, text."""

from __future__ import annotations

import itertools

import pytest

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjuncts
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.iter_map.check import digits_by_mark
from weft.arith.iter_map.combine import DigitSearch, combine_digits
from weft.arith.iter_map.constraint import read_predicate, uses
from weft.arith.iter_map.fuse import Fuser
from weft.arith.iter_map.integer import ceildiv, end_of, floordiv, floormod, maximum, minimum
from weft.arith.iter_map.nodes import (
    IterMapLevel,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    as_level,
    as_sum,
    constant_sum,
    same_digit,
    same_sum,
    scaled,
    whole,
)
from weft.arith.iter_map.padding import NotAffine, Padder
from weft.arith.iter_map.to_expr import ToExpr, normalize_iter_map_to_expr
from weft.ir.expr import IntImm, Range
from weft.ir.functor import substitute
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.expr import Var

I, J, K, N = (Var(name, "int32") for name in "ijkn")
MARK = IterMark(I, IntImm("int32", 24))
LOOPS = {I: Range(0, 8), J: Range(0, 4)}


def number(value):
    return IntImm("int32", value)


def split(lower, extent, scale=1, mark=MARK):
    return IterSplitExpr(mark, number(lower), number(extent), number(scale))


@pytest.mark.parametrize(("given", "level"), [
    (None, IterMapLevel.NoCheck), ("bijective", IterMapLevel.Bijective),
    ("SURJECTIVE", IterMapLevel.Surjective), ("NoCheck", IterMapLevel.NoCheck),
    (0, IterMapLevel.Bijective), (3, IterMapLevel.NoCheck), (IterMapLevel(1), IterMapLevel(1)),
])  # fmt: skip
def test_levels(given, level):
    assert as_level(given) is level


def test_a_level_that_is_none_is_an_error():
    with pytest.raises(IRValueError, match="bijective, nocheck, surjective, got 'exact'"):
        as_level("exact")


@pytest.mark.parametrize(
    ("lower", "extent", "scale"), list(itertools.product((1, 2, 4), (1, 3, 6), (1, -2)))
)
def test_a_split_says_which_digit_it_is(lower, extent, scale):
    digit = split(lower, extent, scale)
    expr = normalize_iter_map_to_expr(digit)
    for value in range(24):
        found = Analyzer().simplify(substitute(expr, {I: number(value)}))
        assert found.value == value // lower % extent * scale


TEXTS = [
    (split(1, 24), "i"), (split(1, 24, 3), "i * 3"), (split(4, 6), "i // 4"),
    (split(1, 4), "i % 4"), (split(2, 4, 5), "i % 8 // 2 * 5"), (split(24, 1), "0"),
    (constant_sum(number(7)), "7"), (IterSumExpr([split(4, 6), split(1, 4, 2)], number(3)),
     "i // 4 + i % 4 * 2 + 3"),
    (whole(IterMark(IterSumExpr([split(4, 6)], number(2)), number(6))), "i // 4 + 2"),
    (whole(IterMark(J, number(1))), "j"),
]  # fmt: skip


@pytest.mark.parametrize(("node", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_plain_expressions_of_nodes(node, text):
    assert str(normalize_iter_map_to_expr(node)) == text


def test_nodes_inside_of_plain_expressions_are_converted():
    expr = op.max(split(1, 4), J) + 1
    assert str(normalize_iter_map_to_expr(expr)) == "T.max(i % 4, j) + 1"
    plain = I + 1
    assert ToExpr(Analyzer()).convert(plain) is plain


def test_digits_are_the_same_whatever_their_scale():
    assert same_digit(split(2, 3), split(2, 3, 5))
    assert not same_digit(split(2, 3), split(3, 3))
    assert not same_digit(split(2, 3), split(2, 4))
    other = IterMark(I, number(24))
    assert not same_digit(split(2, 3), split(2, 3, mark=other))
    assert scaled(split(2, 3), number(9)).scale.value == 9


def test_sums_are_the_same_in_the_same_order():
    a, b = split(4, 6), split(1, 4)
    assert same_sum(IterSumExpr([a, b], number(1)), IterSumExpr([a, b], number(1)))
    assert not same_sum(IterSumExpr([a, b], number(1)), IterSumExpr([b, a], number(1)))
    assert not same_sum(IterSumExpr([a], number(1)), IterSumExpr([a], number(2)))
    assert not same_sum(IterSumExpr([a], number(1)), IterSumExpr([a, b], number(1)))
    assert not same_sum(as_sum(a), as_sum(scaled(a, number(2))))


def test_anything_is_a_sum():
    total = IterSumExpr([split(1, 4)], number(2))
    assert as_sum(total) is total
    digit = split(1, 4)
    assert as_sum(digit).args[0] is digit
    assert as_sum(digit).base.value == 0
    assert (len(as_sum(N).args), as_sum(N).base) == (0, N)


JOINED = [
    # digits of i (24): (lower, extent, scale); what they join to
    ([(4, 6, 4), (1, 4, 1)], [(1, 24, 1)]), ([(1, 4, 1), (4, 6, 4)], [(1, 24, 1)]),
    ([(4, 6, 8), (1, 4, 2)], [(1, 24, 2)]), ([(8, 3, 8), (4, 2, 4), (1, 4, 1)], [(1, 24, 1)]),
    ([(8, 3, 4), (4, 2, 2), (2, 2, 1)], [(2, 12, 1)]), ([(4, 6, 4), (1, 2, 1)], None),
    ([(4, 6, 5), (1, 4, 1)], None), ([(8, 3, 8), (1, 4, 1)], None),
    ([(8, 3, 8), (2, 4, 1), (1, 2, 3)], None),
]  # fmt: skip


@pytest.mark.parametrize(("digits", "expected"), JOINED)
def test_neighbouring_digits_join(digits, expected):
    given = [split(*digit) for digit in digits]
    joined = combine_digits(given, Analyzer())
    found = [tuple(p.value for p in (s.lower_factor, s.extent, s.scale)) for s in joined]
    assert sorted(found) == sorted(expected or digits)


def test_digits_of_different_marks_stay():
    assert combine_digits([split(1, 4), whole(IterMark(J, number(4)))], Analyzer()) is None


def test_a_search_takes_each_digit_once_from_the_smallest_scale():
    other = IterMark(J, number(5))
    digits = [split(8, 3, 8), split(1, 4, 1), whole(other, number(40))]
    search = DigitSearch(digits, Analyzer())
    assert search.smallest() == 1
    assert search.take(1) is digits[1]
    assert search.smallest() == 0
    assert search.of_scale(number(40)) == 2
    assert search.of_scale(number(40), MARK) == -1
    assert search.below_scale(number(39)) == 0
    search.take(0)
    search.take(2)
    assert search.smallest() == -1
    assert search.left() == []


def test_a_single_value_comes_before_a_digit_of_its_scale():
    unit = whole(IterMark(J, number(1)))
    search = DigitSearch([unit, split(1, 4)], Analyzer())
    assert search.smallest() == 0
    assert search.of_scale(number(1)) == 0


def test_symbolic_scales_count_their_factors():
    few, many = split(1, 4), split(4, 6)
    digits = [IterSplitExpr(MARK, few.lower_factor, few.extent, scale) for scale in (N * K, N)]
    assert DigitSearch([*digits, many], Analyzer()).smallest() == 2
    assert DigitSearch(digits, Analyzer()).smallest() == 1


CHAINS = [
    # scales and extents of digits of different loops, level; the extent of the fused mark
    ([(4, 6), (1, 4)], "bijective", 24), ([(1, 4), (4, 6)], "bijective", 24),
    ([(8, 6), (2, 4)], "bijective", 24), ([(3, 6), (1, 4)], "bijective", None),
    ([(3, 6), (1, 4)], "surjective", 19), ([(5, 6), (1, 4)], "surjective", None),
    ([(24, 2), (4, 6), (1, 4)], "bijective", 48), ([(4, 6), (1, 4), (4, 1)], "bijective", 24),
    ([(1, 6), (1, 4)], "surjective", 9), ([(6, 6), (2, 4)], "surjective", None),
]  # fmt: skip


@pytest.mark.parametrize(("digits", "level", "extent"), CHAINS)
def test_scales_chain(digits, level, extent):
    splits = [
        whole(IterMark(Var(f"v{at}", "int32"), number(count)), number(scale))
        for at, (scale, count) in enumerate(digits)
    ]
    fuser = Fuser(Analyzer(), as_level(level))
    fused = fuser.fuse(IterSumExpr(splits, number(5)))
    if extent is None:
        assert fused is None
        return
    (digit,) = fused.args
    assert (digit.extent.value, fused.base.value) == (extent, 5)
    again = fuser.fuse(IterSumExpr(splits, number(0)))
    assert again.args[0].source is digit.source  # equal sums get one mark


PREDICATES = [
    # predicate; what it leaves of i and j (begin, extent); how many bounds of sums
    (I < 5, (0, 5), (0, 4), 0), (I <= 5, (0, 6), (0, 4), 0), (I > 5, (6, 2), (0, 4), 0),
    (I >= 5, (5, 3), (0, 4), 0), (5 > I, (0, 5), (0, 4), 0), (I + 3 < 5, (0, 2), (0, 4), 0),
    (I - 3 >= 2, (5, 3), (0, 4), 0), (I < 100, (0, 8), (0, 4), 0), (I >= -3, (0, 8), (0, 4), 0),
    (I > 100, (101, 0), (0, 4), 0), (op.all(I < 5, I >= 2), (2, 3), (0, 4), 0),
    (op.all(I < 5, J >= 2), (0, 5), (2, 2), 0), (op.likely(I < 5), (0, 5), (0, 4), 0),
    (I * 4 + J < 30, (0, 8), (0, 4), 1), (op.all(I * 4 + J < 30, J < 3), (0, 8), (0, 3), 1),
    (I < J, (0, 8), (0, 4), 1), (N < 3, (0, 8), (0, 4), 0), (op.const(True), (0, 8), (0, 4), 0),
]  # fmt: skip


@pytest.mark.parametrize(("predicate", "rows", "columns", "sums"), PREDICATES)
def test_what_a_predicate_leaves(predicate, rows, columns, sums):
    domains, constraints = read_predicate(predicate, LOOPS)
    found = [(dom.min.value, dom.extent.value) for dom in domains.values()]
    assert found == [rows, columns]
    assert len(constraints) == sums
    assert (LOOPS[I].extent.value, LOOPS[J].extent.value) == (8, 4)


def test_symbolic_bounds_of_loops():
    domains, _ = read_predicate(op.all(I < N, N - 4 <= I), LOOPS)
    assert str(domains[I].min) == "T.max(0, n - 4)"
    assert "T.min" in str(domains[I].extent)


def test_smaller_sums_are_read_first():
    wide = (I * 16 + J * 4) + K < 60
    loops = {**LOOPS, K: Range(0, 4)}
    _, constraints = read_predicate(op.all(wide, J * 4 + K < 14), loops)
    assert [str(each.high) for each in constraints] == ["14", "60"]


@pytest.mark.parametrize("predicate", [
    op.any(I < 3, J < 2), op.equal(I, 3), op.logical_not(I < 3), op.const(False),
    I.astype("float32") < 3.0,
], ids=str)  # fmt: skip
def test_what_is_no_bound_is_refused(predicate):
    with pytest.raises(NotAffine, match="is no comparison of integers by < <= > >="):
        read_predicate(predicate, LOOPS)


def test_parts_of_conjunctions():
    assert [str(part) for part in conjuncts(op.likely(op.all(I < 3, op.likely(J < 2))))] == [
        "i < 3", "j < 2"
    ]  # fmt: skip
    assert uses(I + N, LOOPS)
    assert not uses(N + 1, LOOPS)
    assert not uses(number(3), LOOPS)


DIVIDES = [
    (number(4), number(12), True), (number(5), number(12), False), (number(1), N, True),
    (number(0), number(12), False), (N, N * 4, True), (N * 4, N * 8, True), (N * 4, N * 6, False),
    (number(4), N * 4, True), (number(4), N, False), (N, N * K + N, True),
]  # fmt: skip


@pytest.mark.parametrize(("divisor", "value", "expected"), DIVIDES)
def test_divisibility(divisor, value, expected):
    assert Padder(Analyzer()).divides(divisor, value) is expected


def test_the_top_digit_has_nothing_above():
    padder = Padder(Analyzer())
    assert padder.is_top(split(4, 6))
    assert padder.is_top(split(5, 5))
    assert not padder.is_top(split(4, 5))
    analyzer = Analyzer()
    analyzer.update(N, ConstIntBound(1, 24))
    assert Padder(analyzer).is_top(whole(IterMark(I, N)))


def test_equal_digits_become_one_mark():
    padder = Padder(Analyzer())
    digits = split(1, 5), split(1, 5), split(5, 5)
    first, again, other = (padder.as_mark(digit) for digit in digits)
    assert first.source is again.source
    assert first.source is not other.source


def test_digits_are_listed_by_mark():
    inner = IterMark(IterSumExpr([split(4, 6)], number(0)), number(6))
    used = digits_by_mark([IterSumExpr([split(1, 2), whole(inner)], number(0))])
    assert sorted(len(digits) for _, digits in used.values()) == [1, 2]


def test_integers_of_maps():
    assert [ceildiv(number(a), number(4)).value for a in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert floormod(number(-7), number(4)).value == 1
    assert str(floordiv(N * K * 4, N * 2)) == "k * 2"
    assert end_of(Range(2, 8)).value == 8
    assert end_of(Range.from_min_extent(IntImm("int8", 100), IntImm("int8", 28))) is None
    wide = Var("w", "int64")
    assert maximum(number(3), wide).dtype == minimum(wide, number(3)).dtype == "int64"
    assert str(maximum(I, wide)) == 'T.max(T.Cast("int64", i), w)'
