"""Products as factors, and the joint residues of paddings."""

from __future__ import annotations

import pytest

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.integer import (
    ceildiv,
    common_multiple,
    equal,
    factors,
    floordiv,
    ordered_product,
    product_divides,
)
from weft.arith.iter_map.padding import common_residue
from weft.tir import op
from weft.tir.expr import Var

N, M = Var("n", "int32"), Var("m", "int32")


def test_factors():
    constant, symbols = factors(N * 4 * M * 3)
    assert constant == 12
    assert symbols == [N, M]


@pytest.mark.parametrize(
    ("total", "constant", "symbols"),
    [
        (N * 7 + 7, 7, ["n + 1"]), ((N * 6 + M * 4 + 10) * M, 2, ["n * 3 + m * 2 + 5", "m"]),
        (M * (N * 4 + 6) * 3, 6, ["m", "n * 2 + 3"]), (N * 2 + M, 1, ["n * 2 + m"]),
        (N * -4 + 6, 2, ["n * -2 + 3"]), (M * (N * 6 - 4), 2, ["m", "n * 3 - 2"]),
        (10 - M * 4, 2, ["5 - m * 2"]),
        (N * 4 - M * 2 + 6, 2, ["n * 2 - m + 3"]), (N + 0, 1, ["n"]),
    ],
)  # fmt: skip
def test_what_the_terms_of_a_sum_have_in_common_is_a_factor(total, constant, symbols):
    number, others = factors(total)
    assert (number, [str(item) for item in others]) == (constant, symbols)


def test_ordered_product_puts_the_constant_last():
    assert str(ordered_product(N * 4, M)) == "n * m * 4"
    assert ordered_product(op.const(3), op.const(4)).value == 12


def test_factors_cancel():
    assert str(floordiv(N * M * 12, N * 4)) == "m * 3"
    assert floordiv(N * 4, N * 4).value == 1
    assert str(floordiv(N * 3, op.const(2))) == "n * 3 // 2"
    assert floordiv(N * 7 + 7, N + 1).value == 7
    assert str(floordiv(M * (N * 2 - 4), (N - 2) * 2)) == "m"
    assert str(floordiv(M * (N * 10 + 15), N * 4 + 6)) == "m * (n * 10 + 15) // (n * 4 + 6)"
    assert floordiv(op.const(-7), op.const(2)).value == -4
    assert ceildiv(op.const(7), op.const(2)).value == 4


@pytest.mark.parametrize(
    ("divisor", "value", "expected"),
    [(N, M * N, True), (N * 2, N * M * 6, True), (N * N, N, False), (N * 4, N * 2, False)],
)
def test_product_divides(divisor, value, expected):
    assert product_divides(divisor, value) is expected


def test_equal_products():
    assert equal(Analyzer(), N * M * 2, M * 2 * N)
    assert not equal(Analyzer(), N * M, N * N)


def test_common_multiple():
    analyzer = Analyzer()
    assert common_multiple(op.const(4), op.const(6), analyzer).value == 12
    assert equal(analyzer, common_multiple(N * 4, N * M * 6, analyzer), N * M * 12)
    assert equal(analyzer, common_multiple(N, M, analyzer), N * M)


def test_common_residue():
    for m in range(1, 7):
        for n in range(1, 7):
            for a in range(m):
                for b in range(n):
                    both = [x for x in range(m * n) if x % m == a and x % n == b]
                    found = common_residue(a, m, b, n)
                    assert (found is None) == (not both)
                    assert found is None or found[0] == both[0]
