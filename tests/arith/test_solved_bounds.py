"""Linear forms, clip bounds, deduced bounds and bounds of groups: tables beside brute force."""

from __future__ import annotations

import itertools

import pytest

from tests.lib.expression_text import expression
from tests.lib.wrapping import value_of
from weft.arith.deduce import deduce_bound
from weft.arith.int_constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
from weft.arith.int_solver import solve_linear_inequalities
from weft.arith.interval import IntervalSet, neg_inf, pos_inf
from weft.arith.linear import detect_clip_bound, detect_linear_equation
from weft.ir.expr import IntImm, Range
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import expr as nodes
from weft.tir.expr import Var

NAMES = {name: Var(name, "int32") for name in "xyznm"} | {"f": Var("f", "float32")}
X, Y, Z, N, M = (NAMES[name] for name in "xyznm")


def number(value):
    return IntImm("int32", value)


def read(text):
    return expression(text, NAMES)


# Expression; coefficients of x and y, and the rest; None where it is not linear in them.
LINEAR = [
    ("x", ["1", "0", "0"]), ("7", ["0", "0", "7"]), ("n", ["0", "0", "n"]),
    ("x*3 - y*2 + 5", ["3", "-2", "5"]), ("(x + y)*4 - x", ["3", "4", "0"]),
    ("x - x", ["0", "0", "0"]), ("2*(x - 3*(y - 1))", ["2", "-6", "6"]),
    ("x*n + y*m + n", ["n", "m", "n"]), ("n*(x + 1)*2", ["n * 2", "0", "n * 2"]),
    ("(x - x)*y + y", ["0", "1", "0"]), ("(x*0 + 3)*y", ["0", "3", "0"]), ("x*y", None),
    ("x*x - x*x", None), ("x // 2", None), ("min(x, 3)", None),
    ("n // 2 + x", ["1", "0", "n // 2"]),
    ("select(x < 3, 1, 2)", None), ("x % 4", None), ("-(x - y)", ["-1", "1", "0"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), LINEAR, ids=[row[0] for row in LINEAR])
def test_linear_forms(text, expected):
    found = [str(part) for part in detect_linear_equation(read(text), [X, Y])]
    assert found == (expected or [])


def test_a_linear_form_has_the_value_of_its_expression():
    for a, b, c, d in itertools.product((-2, 1, 3), repeat=4):
        expr = ((X + a) * b - Y * c) * d + X
        *coefficients, rest = detect_linear_equation(expr, [X, Y])
        for x, y in itertools.product((-3, 0, 4), repeat=2):
            total = coefficients[0].value * x + coefficients[1].value * y + rest.value
            assert total == value_of(expr, {"x": x, "y": y})


# Condition; low and high of x and of y; None where some part is no bound of one variable.
CLIPS = [
    ("x < 5", [None, "4", None, None]), ("x <= 5 and x > -2", ["-1", "5", None, None]),
    ("x >= 3 and y < 7", ["3", None, None, "6"]), ("x == 3", ["3", "3", None, None]),
    ("5 > x and 2 <= x", ["2", "4", None, None]), ("x < 5 and x < 3", [None, "2", None, None]),
    ("x < n and x < 5", [None, "T.min(n - 1, 4)", None, None]),
    ("x >= n and x >= 2", ["T.max(n, 2)", None, None, None]),
    ("3 - x < 0", ["4", None, None, None]), ("n - x >= 0", [None, "n", None, None]),
    ("max(x, y) < 4", [None, "3", None, "3"]), ("min(x, y) >= 4", ["4", None, "4", None]),
    ("not (x < 4)", ["4", None, None, None]), ("x + 2 < y + x", [None, None, "3", None]),
    ("x + y < 4", None), ("x*2 < 5", None), ("x != 3", None), ("x < 3 or x > 7", None),
    ("min(x, y) < 4", None), ("n < 3", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CLIPS, ids=[row[0] for row in CLIPS])
def test_clip_bounds(text, expected):
    found = [None if end is None else str(end) for end in detect_clip_bound(read(text), [X, Y])]
    assert found == (expected or [])


# Condition; the interval of x in which it holds whatever n in [2, 5] is (n stays a symbol where
# the row says so); None where nothing is known.
DEDUCED = [
    ("x < 5", None, ("-inf", "4")), ("x >= 5", None, ("5", "inf")), ("x == 5", None, ("5", "5")),
    ("5 - x > 2", None, ("-inf", "2")), ("x*4 + 3 <= 30", None, ("-inf", "6")),
    ("x*4 + 3 >= 30", None, ("7", "inf")), ("x*-4 <= 9", None, ("-2", "inf")),
    ("x // 4 <= 3", None, ("-inf", "15")), ("x // 4 > 3", None, ("16", "inf")),
    ("x // -4 <= 3", None, ("-15", "inf")), ("x // 4 == 3", None, None),
    ("x + n < 10", "relax", ("-inf", "4")), ("x - n >= 10", "relax", ("15", "inf")),
    ("x*n <= 40", "hint", ("-inf", "40 // n")), ("x + n < 10", "hint", ("-inf", "9 - n")),
    ("x*n == 12", "hint", None), ("x != 5", None, None), ("x*x < 5", None, None),
    ("x % 4 < 2", None, None), ("min(x, 3) < 2", None, None), ("y < 2", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "mode", "expected"), DEDUCED)
def test_deduced_bounds(text, mode, expected):
    sets = {N: IntervalSet(number(2), number(5))}
    found = deduce_bound(X, read(text), sets if mode else {}, sets if mode == "relax" else {})
    if expected is None:
        assert found.is_nothing()
        return
    low = "-inf" if found.min_value is neg_inf() else str(found.min_value)
    high = "inf" if found.max_value is pos_inf() else str(found.max_value)
    assert (low, high) == expected


def test_a_bound_of_a_part_of_the_condition():
    part = X // 4
    found = deduce_bound(part, (part + 3) * 2 <= 20, {}, {})
    assert found.max_value.value == 7


def test_a_bound_that_leaves_the_type_is_none():
    most = number(2**31 - 1)
    assert deduce_bound(X, most < X, {}, {}).is_nothing()
    assert deduce_bound(X, nodes.LE(X * 2 + -2, most), {}, {}).is_nothing()


GROUPS = [
    # coefficient, lower, equal, upper; the range (begin, extent), or None
    (1, [2], [], [9], (2, 8)), (1, [], [5], [], (5, 1)), (2, [3], [], [9], (2, 3)),
    (3, [1], [], [2], (1, 0)), (1, [2, 4], [], [9, 7], (4, 4)), (1, [2], [], [], None),
    (1, [], [], [9], None), (2, [-7], [], [7], (-3, 7)), (4, [5], [], [7], (2, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("coef", "lower", "equal", "upper", "expected"), GROUPS)
def test_the_best_range_holds_the_numbers_of_the_bounds(coef, lower, equal, upper, expected):
    lists = [[number(value) for value in values] for values in (lower, equal, upper)]
    best = IntGroupBounds(number(coef), *lists).find_best_range()
    if expected is None:
        assert best is None
        return
    assert (best.min.value, best.extent.value) == expected
    holds = [
        x for x in range(-20, 20)
        if all(low <= coef * x for low in lower) and all(coef * x <= high for high in upper)
        and all(coef * x == value for value in equal)
    ]  # fmt: skip
    assert holds == list(range(expected[0], sum(expected)))


def test_ranges_of_symbols_need_what_is_known_of_them():
    bounds = IntGroupBounds(number(2), [N], [], [N + 7])
    assert str(bounds.find_best_range({N: Range(0, 5)}).min) == "(n + 1) // 2"
    joined = IntGroupBounds(number(2), [], [], [number(9)]).joined(Range(1, 20))
    assert [value.value for value in joined.lower] == [2]
    assert [value.value for value in joined.upper] == [38, 9]
    conditions = [str(condition) for condition in joined.conditions(X)]
    assert conditions == ["x * 2 >= 2", "x * 2 <= 38", "x * 2 <= 9"]


def test_group_bounds_of_floats_are_an_error():
    with pytest.raises(IRTypeError, match="an integer coefficient, got float32"):
        IntGroupBounds(NAMES["f"], [], [], [])


def test_contradictions_are_seen():
    assert IntConstraints([X], {}, [IntImm("bool", 0)]).is_contradiction
    assert not IntConstraints([X], {}, [X < 3]).is_contradiction


def test_transforms_join_only_where_one_ends_as_the_other_begins():
    a, b = IntConstraints([X], {}, []), IntConstraints([X], {}, [])
    first, second = IntConstraintsTransform(a, b, {}, {}), IntConstraintsTransform(a, b, {}, {})
    with pytest.raises(IRValueError, match="the second's src is not the first's dst"):
        first + second


SYSTEMS = [
    ["x >= 0", "x < 4", "y >= x", "y < 6"], ["x + y < 5", "x >= 0", "y >= 0"],
    ["x*2 + y*3 <= 12", "x >= 1", "y >= -1"], ["x - y <= 2", "y - x <= 2", "x >= 0", "x <= 3"],
    ["x*3 >= 4", "x*3 <= 5"], ["x == y + 2", "y >= 0", "y < 3"], ["x < y", "y < x"],
    ["x >= 0 and x < 4", "y == 2"], ["x*y < 6", "x >= 1", "x < 4", "y >= 1", "y < 4"],
]  # fmt: skip


@pytest.mark.parametrize("relations", SYSTEMS, ids=[", ".join(row) for row in SYSTEMS])
def test_solved_systems_hold_the_same_points(relations):
    given = [read(text) for text in relations]
    around = {X: Range(-8, 9), Y: Range(-8, 9)}
    found = solve_linear_inequalities(given, [X, Y], around)
    conditions = list(found.relations)
    for var, dom in found.ranges.items():
        conditions += [nodes.LE(dom.min, var), nodes.LT(var, dom.min + dom.extent)]
    for x, y in itertools.product(range(-8, 9), repeat=2):
        scope = {"x": x, "y": y}
        before = all(value_of(relation, scope) for relation in given)
        assert all(value_of(condition, scope) for condition in conditions) == before, scope
