"""Bounds of regions: exact ones through iteration maps, others by intervals."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.lib.wrapping import value_of
from weft.arith.analyzer import Analyzer
from weft.arith.interval import IntSet, pos_inf
from weft.arith.region import (
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
)
from weft.ir.expr import IntImm, Range, as_prim_expr, integer_range
from weft.support.dtype import DataType
from weft.tir import expr as nodes
from weft.tir.expr import Var

I, J = (Var(name, "int32") for name in "ij")
LOOPS = {I: Range(0, 8), J: Range(0, 4)}


def ends(sets):
    return [(s.min_value.value, s.max_value.value) for s in sets]


def test_region_bounds():
    region = [Range.from_min_extent(I * 4, 4), Range.from_min_extent(J, 2)]
    assert ends(estimate_region_strict_bound(region, LOOPS)) == [(0, 31), (0, 4)]
    holes = [Range.from_min_extent(I * 4, 2)]
    assert estimate_region_lower_bound(holes, LOOPS) is None
    assert ends(estimate_region_upper_bound(holes, LOOPS)) == [(0, 29)]


def regions(*pairs):
    return [Range.from_min_extent(start, extent) for start, extent in pairs]


STRICT = [
    ("one loop", [(I, 1)], [(0, 7)]),
    ("windows that touch", [(I * 4, 4)], [(0, 31)]),
    ("windows that overlap", [(I * 4, 6)], [(0, 33)]),
    ("backwards", [(20 - J * 4, 16)], [(8, 35)]),
    ("backwards with holes", [(20 - J * 4, 3)], None),
    ("two axes", [(I, 1), (J * 2, 2)], [(0, 7), (0, 7)]),
    ("one loop on two axes", [(I, 2), (I + 2, 2)], None),
    ("sliding window", [(I + J, 1)], [(0, 10)]),
    ("nothing", [(I, 0)], "nothing"),
    ("constant", [(3, 5)], [(3, 7)]),
    ("extent of a loop", [(I, J)], None),
]


@pytest.mark.parametrize(("starts", "expected"), [row[1:] for row in STRICT])
def test_strict_bound(starts, expected):
    found = estimate_region_strict_bound(regions(*starts), LOOPS)
    if expected is None:
        assert found is None
    elif expected == "nothing":
        assert found[0].is_nothing()
    else:
        assert ends(found) == expected


N = Var("n", "int32")
CONDITIONS = [
    ("the first iteration", J < 1, [(0, 7)]),
    ("the last iteration", J > 2, [(0, 7)]),
    ("never", J < 0, None),
    ("not for every n", J + N * 4 < 1, None),
    ("of what is named", I < 5, [(0, 4)]),
]


@pytest.mark.parametrize(("condition", "expected"), [row[1:] for row in CONDITIONS])
def test_conditions_on_loops_that_no_start_names(condition, expected):
    """A store to A[i] under ``j + n * 4 < 1`` writes nothing where n is 1."""
    found = estimate_region_strict_bound(regions((I, 1)), LOOPS, condition)
    assert (None if found is None else ends(found)) == expected


def test_conditions_on_loops_that_no_start_names_hold_for_known_numbers():
    analyzer = Analyzer()
    analyzer.bind(N, Range(-3, 1))
    found = estimate_region_strict_bound(regions((I, 1)), LOOPS, J + N * 4 < 1, analyzer)
    assert ends(found) == [(0, 7)]


def test_symbolic_extent():
    n = Var("n", "int32")
    (found,) = estimate_region_strict_bound(regions((I * n, n)), {I: Range(0, 8)})
    assert Analyzer().can_prove_equal(found.max_value, n * 8 - 1)


def test_upper_bound_takes_each_axis_for_itself():
    x, inside = I * 4 + J, I * 4 + J < 31
    region = regions((x * 4, 8), (x * 3, 5))
    assert estimate_region_strict_bound(region, LOOPS, inside) is None
    assert ends(estimate_region_upper_bound(region, LOOPS, inside)) == [(0, 127), (0, 94)]


def test_facts_of_the_analyzer_count():
    n, analyzer = Var("n", "int32"), Analyzer()
    analyzer.bind(n, Range(4, 8))
    assert estimate_region_strict_bound(regions((I * 4, n)), LOOPS) is None
    assert estimate_region_strict_bound(regions((I * 4, n)), LOOPS, True, analyzer) is not None


@settings(max_examples=300, deadline=None)
@given(random=st.randoms(use_true_random=False), bounded=st.booleans())
def test_random_regions(space_of, random, bounded):
    """Strict bounds are exactly what is touched; upper ones hold all of it."""
    space = space_of(random)
    starts = [as_prim_expr(index) for index in space.indices()]
    assume(not bounded or space.where(space.bound()))
    extents = [random.randint(1, 4) for _ in starts]
    touched = set()
    for corner in zip(*[space.values(start).tolist() for start in starts], strict=True):
        sides = [range(low, low + size) for low, size in zip(corner, extents, strict=True)]
        touched |= set(itertools.product(*sides))
    region = regions(*zip(starts, extents, strict=True))
    options = (region, space.domain, space.predicate)
    strict = estimate_region_strict_bound(*options)
    if strict is not None:
        assert touched == box(space, strict)
        assert touched == box(space, estimate_region_lower_bound(*options))
    assert touched <= box(space, estimate_region_upper_bound(*options))


def box(space, sets):
    sides = [
        range(space.values(each.min_value)[0], space.values(each.max_value)[0] + 1) for each in sets
    ]
    return set(itertools.product(*sides))


NARROW = ("int8", "uint8", "int16")


def narrow_case(rng):
    """(type, loop, its range, region, predicate, the numbers that are touched)."""
    dtype = rng.choice(NARROW)
    low, high = integer_range(DataType(dtype))
    var, inner = Var("v", dtype), Var("k", "int32")
    begin, extent = rng.choice([low, 0, high - 20, 100]), rng.choice([1, 5, 20])
    number = {value: IntImm(dtype, value) for value in (3, 20, begin, extent)}
    term = rng.choice([var, var + number[20], var * number[3], var - number[20]])
    wide = nodes.Cast("int32", term)
    start, size = rng.choice([term, wide, wide * 4 + inner]), rng.randint(1, 6)
    limit = IntImm(dtype, min(high, begin + 3))
    always, below = IntImm("bool", 1), nodes.LT(var, limit)
    predicate = rng.choice([always, below, nodes.LT(var + number[20], limit)])
    touched = set()
    for at, k in itertools.product(range(begin, begin + extent), range(4)):
        scope = {"v": at, "k": k}
        if value_of(predicate, scope):
            first = value_of(start, scope)
            touched |= set(range(first, first + size))
    domain = {var: Range.from_min_extent(number[begin], number[extent]), inner: Range(0, 4)}
    return [Range.from_min_extent(start, IntImm(start.dtype, size))], domain, predicate, touched


@pytest.mark.parametrize("bound", [estimate_region_strict_bound, estimate_region_lower_bound,
                                   estimate_region_upper_bound])  # fmt: skip
def test_regions_of_narrow_indices(bound):
    """The starts may wrap, and a region may end beyond the numbers of its index's type."""
    for seed in range(200):
        region, domain, predicate, touched = narrow_case(random.Random(seed))
        found = bound(region, domain, predicate)
        if found is None:
            continue
        low, high = found[0].min_value, found[0].max_value
        text = f"seed {seed}: {region} in {domain} where {predicate} touches {touched}, not {found}"
        if isinstance(low, IntImm) and isinstance(high, IntImm):
            inside = set(range(low.value, high.value + 1))
            assert bound is not estimate_region_strict_bound or inside == touched, text
            assert bound is not estimate_region_lower_bound or inside <= touched, text
            assert bound is not estimate_region_upper_bound or touched <= inside, text
        elif bound is estimate_region_upper_bound and isinstance(low, IntImm):
            assert low.value <= min(touched, default=low.value), text


def test_a_range_up_to_the_end_of_its_type_and_beyond():
    def of(dtype, low, extent):
        return IntSet.from_range(Range.from_min_extent(IntImm(dtype, low), IntImm(dtype, extent)))

    whole = of("uint8", 200, 56)
    assert (whole.min_value.value, whole.max_value.value) == (200, 255)
    assert of("uint8", 200, 57).max_value is pos_inf()
    assert of("int8", 1, 127).max_value.value == 127
    assert of("int8", 2, 127).max_value is pos_inf()
    assert of("int8", -128, 0).is_nothing()
    assert of("int32", 5, 0).is_nothing()


def test_products_and_quotients_of_symbols_are_simplified_before_they_are_bounded():
    """Which group of a band a tile is in, whose row and column were found by divisions."""
    n, band = Var("n", "int64"), Var("band", "int64")
    group, y, x = (Var(name, "int64") for name in ("group", "y", "x"))
    number = band * 6 + group * 2
    row, column = number // n * 4 + y, number % n * 4 + x
    tile = row // 4 * n + column // 4
    inner = {y: Range.from_min_extent(0, IntImm("int64", 4)),
             x: Range.from_min_extent(0, IntImm("int64", 4))}  # fmt: skip
    analyzer = Analyzer()
    analyzer.bind(group, Range.from_min_extent(0, IntImm("int64", 3)))
    found = estimate_region_upper_bound(regions((tile // 6, 1), (tile // 2 % 3, 1)), inner,
                                        True, analyzer)  # fmt: skip
    assert [str(part.min_value) for part in found] == ["band", "group"]
    assert [str(part.max_value) for part in found] == ["band", "group"]
