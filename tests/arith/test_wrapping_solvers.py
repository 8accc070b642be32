"""Solvers and sets where a number leaves its type: narrow sums wrap, limits have no successor."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.lib.wrapping import IndexOverflow, value_of
from weft.arith.analyzer import Analyzer
from weft.arith.deduce import deduce_bound
from weft.arith.int_set import IntervalSet, IntSet, eval_set, intersect, neg_inf, pos_inf
from weft.arith.int_solver import solve_linear_equations, solve_linear_inequalities
from weft.arith.linear import detect_clip_bound, detect_linear_equation
from weft.ir.expr import IntImm, Range, integer_range
from weft.support.dtype import DataType
from weft.tir import expr as nodes
from weft.tir import op

TYPES = ("int8", "uint8", "int16", "uint32", "int32", "int64")
NARROW = ("int8", "uint8", "int16", "uint16", "uint32", "uint64")
KINDS = (nodes.LT, nodes.LE, nodes.GT, nodes.GE)


def number(dtype, value):
    return IntImm(dtype, value)


def span(dtype, low, extent):
    return Range.from_min_extent(number(dtype, low), number(dtype, extent))


def values_to_try(rng, dtype):
    """Numbers of a type: its ends, those around zero, and some between."""
    low, high = integer_range(DataType(dtype))
    near = [at + step for at in (low, 0, high) for step in range(-6, 7)]
    between = [rng.randint(low, high) for _ in range(20)]
    return [value for value in [*near, *between] if low <= value <= high]


def constant(rng, dtype):
    low, high = integer_range(DataType(dtype))
    value = rng.choice([low, high, low + 1, high - 1, 0, 1, 2, 3, 5, 100, -1, -3, -100])
    return number(dtype, min(high, max(low, value)))


def linear(rng, var, depth=2):
    """A random expression that mentions the variable once."""
    if depth == 0:
        return var
    inner, by = linear(rng, var, depth - 1), constant(rng, var.dtype)
    kind = rng.choice([nodes.Add, nodes.Sub, nodes.Mul, nodes.FloorDiv])
    if kind in (nodes.Mul, nodes.FloorDiv):
        small = [1, 2, 3] if var.dtype.is_uint else [1, 2, 3, -2]
        return kind(inner, number(var.dtype, rng.choice(small)))
    return kind(by, inner) if rng.random() < 0.3 else kind(inner, by)


def holds(condition, scope):
    """The truth of a condition; None where index arithmetic leaves its type."""
    try:
        return bool(value_of(condition, scope))
    except IndexOverflow:
        return None


def within(found, value):
    """Whether an interval of constants (or infinite ends) holds a number."""
    above = found.min_value is neg_inf() or (
        found.min_value is not pos_inf() and found.min_value.value <= value
    )
    below = found.max_value is pos_inf() or (
        found.max_value is not neg_inf() and value <= found.max_value.value
    )
    return above and below


@pytest.mark.parametrize("dtype", TYPES)
def test_a_deduced_bound_makes_the_condition_true(dtype):
    for seed in range(70):
        rng = random.Random(seed)
        x = nodes.Var("x", dtype)
        sides = [linear(rng, x, rng.randint(0, 2)), constant(rng, dtype)]
        rng.shuffle(sides)
        condition = rng.choice(KINDS)(*sides)
        found = deduce_bound(x, condition)
        for value in values_to_try(rng, dtype):
            if within(found, value):
                assert holds(condition, {"x": value}) is not False, f"{seed}: {condition}, {found}"


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_bounds_of_index_types_are_deduced_up_to_their_ends(dtype):
    x = nodes.Var("x", dtype)
    low, high = integer_range(DataType(dtype))
    for condition in (nodes.LT(x, number(dtype, low)), nodes.GT(x, number(dtype, high))):
        assert deduce_bound(x, condition).is_nothing()
    found = deduce_bound(x, nodes.LT(x, number(dtype, low + 1)))
    assert found.max_value.value == low
    found = deduce_bound(x, nodes.GT(x, number(dtype, high - 1)))
    assert found.min_value.value == high
    assert deduce_bound(x, nodes.LE(x + 5, number(dtype, low))).is_nothing()


@pytest.mark.parametrize("dtype", TYPES)
def test_a_clip_bound_holds_the_values_of_the_condition_and_no_other(dtype):
    for seed in range(70):
        rng = random.Random(1000 + seed)
        x = nodes.Var("x", dtype)
        conditions = []
        for _ in range(rng.randint(1, 2)):
            term = rng.choice([x, x + constant(rng, dtype), x - constant(rng, dtype)])
            sides = [term, constant(rng, dtype)]
            rng.shuffle(sides)
            conditions.append(rng.choice(KINDS)(*sides))
        condition = op.all(*conditions)
        found = detect_clip_bound(condition, [x])
        if not found:
            continue
        ends = [neg_inf() if found[0] is None else found[0]]
        ends.append(pos_inf() if found[1] is None else found[1])
        for value in values_to_try(rng, dtype):
            expected = holds(condition, {"x": value})
            if expected is not None:
                assert within(IntervalSet(*ends), value) is expected, f"{seed}: {condition}"


@pytest.mark.parametrize("dtype", NARROW)
def test_a_narrow_sum_is_not_solved_as_if_it_did_not_wrap(dtype):
    x = nodes.Var("x", dtype)
    high = integer_range(DataType(dtype))[1]
    conditions = [
        nodes.LT(x - number(dtype, 3), number(dtype, 5)),
        nodes.LT(x + number(dtype, 100), number(dtype, 120)),
        nodes.GT(x, number(dtype, high)),
    ]
    for condition in conditions:
        assert list(detect_clip_bound(condition, [x])) == []
        assert deduce_bound(x, condition).is_nothing()


def test_coefficients_that_leave_their_type_are_none():
    x, i = nodes.Var("x", "uint8"), nodes.Var("i", "int32")
    assert list(detect_linear_equation(number("uint8", 3) - x, [x])) == []
    assert list(detect_linear_equation((x * number("uint8", 20)) * number("uint8", 20), [x])) == []
    assert list(detect_linear_equation(i * 65536 * 65536, [i])) == []
    coefficient, rest = detect_linear_equation(x * number("uint8", 2) + number("uint8", 3), [x])
    assert (coefficient.value, rest.value) == (2, 3)


def solutions(constraints, names, scopes):
    """The scopes in which the relations hold and the ranges contain the variables."""
    kept = []
    for scope in scopes:
        inside = all(
            value_of(dom.min, scope) <= scope[var.name]
            < value_of(dom.min, scope) + value_of(dom.extent, scope)
            for var, dom in constraints.ranges.items()
        )  # fmt: skip
        if inside and all(value_of(part, scope) for part in constraints.relations):
            kept.append(tuple(scope[name] for name in names))
    return kept


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_inequalities_of_narrow_variables_lose_and_gain_no_solution(dtype):
    for seed in range(40):
        rng = random.Random(seed)
        x, y = nodes.Var("x", dtype), nodes.Var("y", dtype)
        low, high = integer_range(DataType(dtype))
        first = [rng.choice([low, high - 11, 0, 1]) for _ in range(2)]
        ranges = {x: span(dtype, first[0], 12), y: span(dtype, first[1], 12)}
        relations = [
            rng.choice([*KINDS, nodes.EQ])(
                linear(rng, rng.choice([x, y]), 1), rng.choice([linear(rng, y, 1), x])
            )
            for _ in range(rng.randint(1, 3))
        ]
        scopes = [
            {"x": first[0] + a, "y": first[1] + b}
            for a, b in itertools.product(range(12), range(12))
        ]
        wanted = [
            (scope["x"], scope["y"])
            for scope in scopes
            if all(value_of(relation, scope) for relation in relations)
        ]
        found = solve_linear_inequalities(relations, [x, y], ranges)
        assert solutions(found, ("x", "y"), scopes) == wanted, f"seed {seed}: {relations}"
        solved = solve_linear_equations(relations, [x, y], ranges)
        back = []
        for point in points_of(solved.dst):
            back.append(tuple(value_of(solved.src_to_dst[var], point) for var in (x, y)))
        assert sorted(back) == wanted, f"seed {seed}: {relations} became {solved.dst}"


def points_of(constraints):
    """The scopes of the solutions of constraints whose ranges are constants."""
    names = [var.name for var in constraints.variables]
    axes = [
        range(dom.min.value, dom.min.value + dom.extent.value)
        for dom in (constraints.ranges[var] for var in constraints.variables)
    ]
    for values in itertools.product(*axes):
        scope = dict(zip(names, values, strict=True))
        if all(value_of(relation, scope) for relation in constraints.relations):
            yield scope


def test_an_equation_of_uint8_has_two_solutions():
    """``x * 2 == 20`` holds for 10, and for 138, whose double wraps."""
    x = nodes.Var("x", "uint8")
    relation = nodes.EQ(x * number("uint8", 2), number("uint8", 20))
    solved = solve_linear_equations([relation], [x], {x: span("uint8", 0, 200)})
    values = [value_of(solved.src_to_dst[x], scope) for scope in points_of(solved.dst)]
    assert values == [10, 138]


def test_inequalities_whose_products_leave_int32_keep_their_solutions():
    x, y = nodes.Var("x", "int32"), nodes.Var("y", "int32")
    top = 1 << 30
    ranges = {x: Range(0, top), y: Range(0, top)}
    relations = [x * 3 <= y * 5, y * 7 <= x * 11]
    found = solve_linear_inequalities(relations, [x, y], ranges)
    assert not found.is_contradiction
    points = [(0, 0), (1, 1), (6, 4), (3, 4), (5, 3), (1000, 700), (1000, 599), (100, 158)]
    for point in points:
        scope = dict(zip("xy", point, strict=True))
        wanted = all(value_of(relation, scope) for relation in relations)
        assert solutions(found, ("x", "y"), [scope]) == ([point] if wanted else []), point


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize(("low", "extent"), [(0, 20), (100, 20), (90, 30)])
def test_the_lanes_of_a_vector_lie_in_its_set_and_its_bounds(dtype, low, extent):
    x = nodes.Var("x", dtype)
    for stride, lanes in itertools.product([1, 2, 5], [2, 7, 30]):
        ramp = nodes.Ramp(x, number(dtype, stride), lanes)
        analyzer = Analyzer()
        analyzer.bind(x, span(dtype, low, extent))
        found = eval_set(ramp, {x: span(dtype, low, extent)})
        bound = analyzer.const_int_bound(ramp)
        for base, lane in itertools.product(range(low, low + extent), range(lanes)):
            scope = {"x": base, "lane": lane}
            place = nodes.Var("lane", dtype)
            value = value_of(x + place * number(dtype, stride), scope)
            assert within(found, value)
            assert bound.min_value <= value <= bound.max_value


def test_vectors_of_more_lanes_than_their_type_counts():
    x = nodes.Var("x", "int8")
    ramp = nodes.Ramp(x, number("int8", 1), 200)
    assert eval_set(ramp, {x: span("int8", 0, 10)}).is_everything()
    assert IntSet.vector(ramp).is_everything()
    assert IntSet.vector(nodes.Ramp(number("int8", 100), number("int8", 1), 100)).is_everything()
    short = IntSet.vector(nodes.Ramp(number("int8", 100), number("int8", -5), 40))
    assert (short.min_value.value, short.max_value.value) == (-95, 100)
    assert IntSet.vector(nodes.Ramp(x, number("int8", 1), 4)).is_everything()


def test_a_range_of_all_numbers_of_a_type_has_no_extent_in_it():
    default = span("int8", 0, 16)
    whole = IntSet.interval(number("int8", -128), number("int8", 127))
    assert whole.cover_range(default) is default
    most = IntSet.interval(number("int8", -128), number("int8", -2))
    assert most.cover_range(default).extent.value == 127


def test_nothing_is_common_to_a_set_and_the_empty_set():
    some = IntSet.interval(1, 3)
    for sets in ([IntSet.nothing(), some], [some, IntSet.nothing()], [some, IntSet.interval(7, 2)]):
        assert intersect(sets).is_nothing()
    assert intersect([]).is_everything()
    half = IntervalSet(op.const(2), pos_inf())
    both = intersect([half, some])
    assert (both.min_value.value, both.max_value.value) == (2, 3)


X, Y = nodes.Var("x", "int32"), nodes.Var("y", "int32")
TOP = 2**31 - 1


@pytest.mark.parametrize(
    ("expr", "low", "high"),
    [
        (X + Y, -100, None), (X * 3, 0, None), (X - Y, 101 - TOP, None),
        (Y - X * 2, None, TOP - 101), (X * -1, 1 - TOP, 0), (op.floordiv(X + Y, 2), -50, None),
        (X + 1, 1, TOP), (X + 2, 2, None), (Y - 200, -300, TOP - 301),
    ],
    ids=str,
)  # fmt: skip
def test_an_end_beyond_int32_is_infinite(expr, low, high):
    """It once wrapped: the set of a sum of two large loops was empty."""
    found = eval_set(expr, {X: Range(0, TOP), Y: Range(-100, TOP - 100)})
    assert found.min_value is neg_inf() if low is None else found.min_value.value == low
    assert found.max_value is pos_inf() if high is None else found.max_value.value == high


def test_what_is_computed_of_no_value_has_no_value():
    wide = X.astype("int64")
    for expr in (
        X + Y, Y - X, X * 2, X // 3, X % 3, op.truncdiv(X, 2), op.truncmod(X, 2), op.min(X, Y),
        op.max(Y, X), wide * 2, (X + 1) * 3 - Y,
    ):  # fmt: skip
        found = eval_set(expr, {X: IntSet.nothing(), Y: Range(0, 8)})
        assert found.is_nothing(), expr


def test_relations_of_two_widths_stand_side_by_side():
    z = nodes.Var("z", "int64")
    found = solve_linear_inequalities([X <= 3, z <= 5, X + Y <= 4], [X, z], {X: Range(0, 10)})
    assert (found.ranges[X].min.value, found.ranges[X].extent.value) == (0, 4)
    assert z not in found.ranges


def test_a_variable_that_takes_all_numbers_of_its_type_has_no_range():
    found = solve_linear_inequalities([X >= -(2**31), X <= TOP], [X])
    assert not found.is_contradiction
    assert X not in found.ranges
