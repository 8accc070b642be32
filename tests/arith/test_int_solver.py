"""Linear equations and inequalities, solved and then tried at every point of small domains."""

from __future__ import annotations

import itertools
import random

import pytest

from weft.arith.int_constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
from weft.arith.int_solver import solve_linear_equations, solve_linear_inequalities
from weft.arith.smith import Diagonalized, extended_gcd
from weft.ir.expr import IntImm, Range
from weft.ir.structural import structural_equal
from weft.support.errors import TVMError
from weft.testing.constraints import (
    check_bool_expr_is_true,
    check_int_constraints_trans_consistency,
    conjunction,
)
from weft.tir import expr as nodes
from weft.tir.expr import Var

X, Y, Z, N = (Var(name, "int32") for name in "xyzn")


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column, strict=True))
             for column in zip(*b, strict=True)] for row in a]  # fmt: skip


def test_extended_gcd():
    for a, b in itertools.product(range(-12, 13), repeat=2):
        g, s, t = extended_gcd(a, b)
        assert s * a + t * b == g >= 0


def test_diagonal_form_is_the_product_of_its_factors():
    rng = random.Random(3)
    for _ in range(100):
        rows, columns = rng.randint(1, 4), rng.randint(1, 4)
        matrix = [[rng.randint(-4, 4) for _ in range(columns)] for _ in range(rows)]
        form = Diagonalized(matrix, columns)
        assert product(product(form.left, matrix), form.basis) == form.matrix
        unit = product(form.basis, form.inverse)
        assert unit == [[int(i == j) for j in range(columns)] for i in range(columns)]
        for i, j in itertools.product(range(rows), range(columns)):
            assert i == j or form.matrix[i][j] == 0


def linear(rng, variables, coefficient):
    total = IntImm("int32", rng.randint(*coefficient))
    for var in variables:
        total = nodes.Add(nodes.Mul(var, IntImm("int32", rng.randint(*coefficient))), total)
    return total


def relations(rng, variables, count, kinds, coefficient):
    return [
        rng.choice(kinds)(linear(rng, variables, coefficient), linear(rng, variables, coefficient))
        for _ in range(count)
    ]


KINDS = [nodes.EQ, nodes.EQ, nodes.EQ, nodes.LE, nodes.LT, nodes.GE, nodes.GT]


@pytest.mark.parametrize(("variables", "formulas"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 4)])
def test_equations_have_the_solutions_of_their_transform(variables, formulas):
    rng = random.Random(10 * variables + formulas)
    names = [Var(f"x{i}", "int32") for i in range(variables)]
    ranges = {var: Range(-6, 7) for var in names}
    for _ in range(12):
        found = solve_linear_equations(
            relations(rng, names, formulas, KINDS, (-4, 4)), names, ranges
        )
        check_int_constraints_trans_consistency(found)
        if variables > 1:
            found = solve_linear_equations(
                relations(rng, names, formulas, KINDS, (-3, 3)), names[:-1], ranges
            )
            check_int_constraints_trans_consistency(found, {names[-1]: Range(-6, 7)})


def test_unique_solution_has_no_variables():
    found = solve_linear_equations([nodes.EQ(X + Y, IntImm("int32", 20)),
                                    nodes.EQ(X - Y, IntImm("int32", 10))], [X, Y])  # fmt: skip
    assert list(found.dst.variables) == []
    assert [found.src_to_dst[var].value for var in (X, Y)] == [15, 5]


def test_free_variables_get_names_and_ranges():
    ranges = {X: Range(-5, 5), Y: Range(0, 10)}
    found = solve_linear_equations([nodes.EQ(X + Y, IntImm("int32", 0))], [X, Y], ranges)
    (free,) = found.dst.variables
    assert found.dst.ranges[free].min.value == -9
    assert found.dst.ranges[free].extent.value == 10
    assert found.src_to_dst[X] is free
    (bound,) = found.dst.relations
    assert structural_equal(bound, nodes.LE(IntImm("int32", -5), free))


def test_equations_without_solution_say_false():
    for left, right in ((X + X, 3), (X - X, 1)):
        found = solve_linear_equations([nodes.EQ(left, IntImm("int32", right))], [X])
        assert found.dst.is_contradiction
        assert found.src_to_dst == {}


def test_symbols_give_conditions_for_a_solution():
    found = solve_linear_equations([nodes.EQ(X * 2, N)], [X])
    (condition,) = found.dst.relations
    assert structural_equal(condition, nodes.EQ(N % 2, IntImm("int32", 0)))
    assert structural_equal(found.src_to_dst[X], N // 2)


LINEAR_KINDS = [nodes.LE, nodes.LT, nodes.GE, nodes.GT, nodes.EQ]


@pytest.mark.parametrize(("variables", "formulas"), [(1, 2), (2, 2), (2, 3), (3, 2), (3, 3)])
def test_ranges_of_inequalities_hold_the_same_points(variables, formulas):
    rng = random.Random(20 * variables + formulas)
    names = [Var(f"x{i}", "int32") for i in range(variables)]
    ranges = {var: Range(-5, 6) for var in names}
    for _ in range(10):
        given = relations(rng, names, formulas, LINEAR_KINDS, (-3, 3))
        found = solve_linear_inequalities(given, names, ranges)
        inside = [
            condition
            for var, rng_ in found.ranges.items()
            for condition in (var >= rng_.min, var < rng_.min + rng_.extent)
        ]
        after = conjunction([*inside, *found.relations])
        before = conjunction(given)
        check_bool_expr_is_true(after, ranges, before)
        check_bool_expr_is_true(before, ranges, after)


@pytest.mark.parametrize(("variables", "formulas"), [(1, 2), (2, 2), (2, 3), (3, 3)])
def test_deskewed_ranges_start_at_zero_and_hold_the_same_points(variables, formulas):
    rng = random.Random(30 * variables + formulas)
    names = [Var(f"x{i}", "int32") for i in range(variables)]
    ranges = {var: Range(-5, 6) for var in names}
    for _ in range(10):
        given = relations(rng, names, formulas, LINEAR_KINDS, (-3, 3))
        found = solve_linear_inequalities(given, names, ranges, deskew_range=True)
        assert isinstance(found, IntConstraintsTransform)
        for rng_ in found.dst.ranges.values():
            assert rng_.min.value == 0
        for var in names:
            found_value = found.src_to_dst.get(var)
            assert found_value is not None or found.dst.is_contradiction
        check_int_constraints_trans_consistency(found)


def test_triangle():
    found = solve_linear_inequalities([X >= 0, Y >= 0, X + Y < 10], [X, Y])
    assert structural_equal(found.ranges[X].extent, 10 - Y)
    assert found.ranges[Y].extent.value == 10


def test_inequalities_without_solution_say_false():
    for deskew in (False, True):
        found = solve_linear_inequalities([X > 3, X < 3], [X], {}, deskew_range=deskew)
        assert (found.dst if deskew else found).is_contradiction


def test_an_equality_fixes_its_variable():
    found = solve_linear_inequalities([nodes.EQ(X, Y + 2), Y >= 0, Y < 4], [X, Y])
    assert structural_equal(found.ranges[X].min, Y + 2)
    assert found.ranges[X].extent.value == 1


def test_what_is_not_linear_stays_a_relation():
    found = solve_linear_inequalities([X * X < 9, X >= 0], [X])
    assert len(found.relations) == 2
    assert X not in found.ranges


def test_best_range_of_bounds_rounds_inwards():
    bounds = IntGroupBounds(IntImm("int32", 3), [IntImm("int32", 1)], [], [IntImm("int32", 11)])
    best = bounds.find_best_range()
    assert (best.min.value, best.extent.value) == (1, 3)
    assert IntGroupBounds(IntImm("int32", 1), [], [], [X]).find_best_range() is None
    one = IntGroupBounds.from_range(Range(2, 6))
    assert (one.lower[0].value, one.upper[0].value) == (2, 5)


def test_transforms_join():
    first = solve_linear_equations([nodes.EQ(X + Y, IntImm("int32", 6))], [X, Y],
                                   {X: Range(0, 7), Y: Range(0, 7)})  # fmt: skip
    second = solve_linear_inequalities(first.dst, deskew_range=True)
    both = first + second
    check_int_constraints_trans_consistency(both)
    assert both.src is first.src
    assert both.dst is second.dst


def test_errors():
    with pytest.raises(TVMError, match="integer variables, got f"):
        IntConstraints([Var("f", "float32")], {}, [])
    with pytest.raises(TVMError, match="more than once"):
        IntConstraints([X, X], {}, [])
    with pytest.raises(TVMError, match="give them alone"):
        solve_linear_equations(IntConstraints([X], {}, []), [X])
