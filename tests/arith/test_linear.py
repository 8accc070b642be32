from __future__ import annotations

from weft.arith.linear import detect_clip_bound, detect_linear_equation
from weft.ir.structural import structural_equal
from weft.tir import op
from weft.tir.expr import Var

A, B, N = (Var(name, "int32") for name in "abn")


def values(found):
    return [getattr(item, "value", item) for item in found]


def test_coefficients_and_rest():
    assert values(detect_linear_equation(B * 7 + A * 4 + 3, [A, B])) == [4, 7, 3]
    assert values(detect_linear_equation((A - B) * 2 - 1, [A, B])) == [2, -2, -1]


def test_symbolic_coefficient_and_rest():
    coefficient, rest = detect_linear_equation(A * N + B, [A])
    assert coefficient is N
    assert rest is B


def test_absent_variable_has_coefficient_zero():
    assert values(detect_linear_equation(A + 1, [A, B])) == [1, 0, 1]


def test_not_linear_gives_nothing():
    assert values(detect_linear_equation(A * A, [A])) == []
    assert values(detect_linear_equation(op.floordiv(A, 2), [A])) == []


def test_clip_bound():
    low, high = detect_clip_bound(op.all(A + 2 >= 0, A < N), [A])
    assert low.value == -2
    assert structural_equal(high, N - 1)
    assert values(detect_clip_bound(op.all(-A > 3), [A])) == [None, -4]
    assert values(detect_clip_bound(A * B < 3, [A])) == []


def test_clip_bounds_of_minima_and_negations():
    low_i, high_i, low_j, high_j = detect_clip_bound(
        op.logical_and(op.minimum(A, B) > 3, op.logical_not(A > 9)), [A, B]
    )
    assert (low_i.value, high_i.value, low_j.value, high_j) == (4, 9, 4, None)
