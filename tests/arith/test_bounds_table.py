"""Bounds, remainders and sets of expressions: what exactly each analysis says."""

from __future__ import annotations

import pytest

from tests.lib.expression_text import analyzer_of, expression
from weft.arith.analyzer import Analyzer, ProofStrength
from weft.arith.const_int_bound import ConstIntBound
from weft.ir.expr import IntImm
from weft.tir.expr import SizeVar, Var

NAMES = {
    **{name: Var(name, "int32") for name in "ijkn"}, **{name: Var(name, "bool") for name in "pq"},
    "s": SizeVar("s", "int32"), "w": Var("w", "int64"), "b": Var("b", "int8"),
    "u": Var("u", "uint8"),
}  # fmt: skip
INFINITE = {ConstIntBound.POS_INF: "inf", ConstIntBound.NEG_INF: "-inf"}

# Expression, what is known, constant bounds, (coeff, base) of the remainder, the set of values.
# fmt: off
ROWS = [
    ("i", "", "[-2147483648, 2147483647]", (1, 0), "[i, i]"),
    ("s", "", "[0, 2147483647]", (1, 0), "[s, s]"),
    ("w", "", "[-inf, inf]", (1, 0), "[w, w]"),
    ("b", "", "[-128, 127]", (1, 0), "[b, b]"),
    ("u", "", "[0, 255]", (1, 0), "[u, u]"),
    ("i < j", "", "[0, 1]", (1, 0), "[i < j, i < j]"),
    ("i", "i < 8", "[0, 7]", (1, 0), "[0, 7]"),
    ("i", "3 <= i < 8", "[3, 7]", (1, 0), "[3, 7]"),
    ("i + j", "i < 8, j < 4", "[0, 10]", (1, 0), "[0, 10]"),
    ("i - j", "i < 8, j < 4", "[-3, 7]", (1, 0), "[-3, 7]"),
    ("i * j", "i < 8, j < 4", "[0, 21]", (1, 0), "[0, 21]"),
    ("i * -3", "i < 8", "[-21, 0]", (3, 0), "[-21, 0]"),
    ("i * j", "2 <= i < 5, 3 <= j < 4", "[6, 12]", (3, 0), "[6, 12]"),
    ("i * 4 + j", "i < 8, j < 4", "[0, 31]", (1, 0), "[0, 31]"),
    ("i * 6 + 4", "", "[-12884901884, 12884901886]", (6, 4), "[i * 6 + 4, i * 6 + 4]"),
    ("i // 3", "i < 8", "[0, 2]", (1, 0), "[0, 2]"),
    ("i // -3", "i < 8", "[-3, 0]", (1, 0), "[-3, 0]"),
    ("(i - 7) // 3", "i < 8", "[-3, 0]", (1, 0), "[-3, 0]"),
    ("(i * 8 + 4) // 4", "", "[-4294967295, 4294967295]", (2, 1), "[i * 2 + 1, i * 2 + 1]"),
    ("i // j", "8 <= i < 17, 2 <= j < 5", "[2, 8]", (1, 0), "[2, 8]"),
    ("i % 3", "", "[0, 2]", (1, 0), "[i % 3, i % 3]"),
    ("i % 3", "i < 2", "[0, 1]", (1, 0), "[0, 1]"),
    ("(i * 6 + 4) % 9", "", "[1, 7]", (3, 1), "[(i * 6 + 4) % 9, (i * 6 + 4) % 9]"),
    ("(i * 4 + 3) % 8", "", "[3, 7]", (4, 3), "[i % 2 * 4 + 3, i % 2 * 4 + 3]"),
    ("i % j", "j < 5", "[0, 3]", (1, 0), "[0, 3]"),
    ("i % -3", "", "[-2, 0]", (1, 0), "[i % -3, i % -3]"),
    ("div(i - 7, 3)", "i < 8", "[-2, 0]", (1, 0), "[-2, 0]"),
    ("div(i * 6, 3)", "", "[-4294967296, 4294967294]", (2, 0), "[i * 2, i * 2]"),
    ("mod(i, 3)", "", "[-2, 2]", (1, 0), "[T.truncmod(i, 3), T.truncmod(i, 3)]"),
    ("mod(i, 3)", "i < 8", "[0, 2]", (1, 0), "[0, 2]"),
    ("mod(i - 7, 3)", "i < 8", "[-2, 0]", (1, 0), "[-2, 2]"),
    ("mod(i * 4, 6)", "", "[-5, 5]", (2, 0), "[T.truncmod(i * 4, 6), T.truncmod(i * 4, 6)]"),
    ("min(i, 5)", "i < 8", "[0, 5]", (1, 0), "[0, 5]"),
    ("max(i, 5)", "i < 8", "[5, 7]", (1, 0), "[5, 7]"),
    ("min(i, j)", "i < 8, 3 <= j < 5", "[0, 4]", (1, 0), "[0, 4]"),
    ("select(p, i, j)", "i < 8, 3 <= j < 5", "[0, 7]", (1, 0), "[0, 7]"),
    ("select(p, 4, 10)", "", "[4, 10]", (6, 4), "[T.Select(p, 4, 10), T.Select(p, 4, 10)]"),
    ("ite(p, i * 2, 7)", "i < 8", "[0, 14]", (1, 0), "[0, 14]"),
    ("int64(i)", "i < 8", "[0, 7]", (1, 0), "[T.int64(0), T.int64(7)]"),
    ("int8(i)", "i < 8", "[0, 7]", (1, 0), "[T.int8(0), T.int8(7)]"),
    ("int8(i)", "", "[-128, 127]", (1, 0), '[T.Cast("int8", i), T.Cast("int8", i)]'),
    ("uint8(i)", "i < 8", "[0, 7]", (1, 0), "[-inf, T.uint8(7)]"),
    ("bool(i)", "1 <= i < 8", "[1, 1]", (1, 0), "[T.bool(True), inf]"),
    ("int32(p)", "", "[0, 1]", (1, 0), '[T.Cast("int32", p), T.Cast("int32", p)]'),
    ("int32(b)", "b < 100", "[0, 99]", (1, 0), "[0, 99]"),
    ("b + b", "b < 60", "[0, 118]", (1, 0), "[0, 118]"),
    ("b + b", "b < 100", "[-128, 127]", (1, 0), "[-inf, inf]"),
    ("u - 1", "u < 10", "[0, 255]", (1, 0), "[-inf, inf]"),
    ("u + 1", "u < 10", "[1, 10]", (1, 0), "[1, 10]"),
    ("u * 2", "u < 200", "[0, 255]", (1, 0), "[-inf, inf]"),
    ("i // 4 * 4", "i < 10", "[0, 8]", (4, 0), "[0, 8]"),
    ("(i + 7) // 8 * 8", "i < 10", "[0, 16]", (8, 0), "[0, 16]"),
    ("i - i % 4", "i < 10", "[-3, 9]", (1, 0), "[-3, 9]"),
    ("i * n", "i < 8", "[-15032385536, 15032385529]", (1, 0), "[-inf, inf]"),
    ("n - i", "i < n", "[-4294967294, 2147483647]", (1, 0), "[1, n]"),
    ("n - 1 - i", "i < n", "[-4294967295, 2147483646]", (1, 0), "[0, n - 1]"),
    ("i + n", "i < n", "[-2147483648, 4294967293]", (1, 0), "[n, n * 2 - 1]"),
    ("n % 4 * 3", "", "[0, 9]", (3, 0), "[n % 4 * 3, n % 4 * 3]"),
    ("(n * 4 + i) // 4", "i < 4", "[-2147483648, 2147483647]", (1, 0), "[n, n]"),
    ("i * 5 % 10", "", "[0, 5]", (5, 0), "[i % 2 * 5, i % 2 * 5]"),
    ("i * 2 - j * 2", "i < 8, j < 8", "[-14, 14]", (2, 0), "[-14, 14]"),
]
# fmt: on


@pytest.mark.parametrize(
    ("text", "facts", "bound", "remainder", "values"), ROWS,
    ids=[f"{row[0]} where {row[1] or 'nothing is known'}" for row in ROWS],
)  # fmt: skip
def test_bounds(text, facts, bound, remainder, values):
    expr, analyzer = expression(text, NAMES), analyzer_of(facts, NAMES)
    found = analyzer.const_int_bound(expr)
    ends = [INFINITE.get(end, end) for end in (found.min_value, found.max_value)]
    assert f"[{ends[0]}, {ends[1]}]" == bound
    modular = analyzer.modular_set(expr)
    assert (modular.coeff, modular.base) == remainder
    interval = analyzer.int_set(expr)
    assert (
        f"[{interval.min_value}, {interval.max_value}]".replace("_inf", "")
        .replace("pos", "inf")
        .replace("neg", "-inf")
        == values
    )


# What is known of ranges, a condition that holds, what follows from both, and what does not.
PROOFS = [
    ("i < 8", "", ["i < 8", "0 <= i", "i != 8", "i <= 7", "i * 8 < 57"], ["i < 7", "1 <= i"]),
    ("2 <= i < 8", "", ["1 < i", "i // 2 >= 1", "i % 8 == i"], ["2 < i", "i // 2 >= 2"]),
    ("i < 8, j < 4", "", ["i * 4 + j < 32", "i + j <= 10", "i - j > -4", "max(i, j) < 8"],
     ["i * 4 + j < 31", "i - j > -3", "min(i, j) < 3"]),
    ("i < n", "", ["i < n", "i + 1 <= n", "i <= n + 3", "i - n < 0", "i % n == i",
                   "i // n == 0", "min(i, n) == i"], ["i + 1 < n", "i < n - 1", "n > 1"]),
    ("i < n, j < i", "", ["j < n", "j + 1 < n", "j + 2 <= n"], ["j + 2 < n", "i < j"]),
    ("i < 8, j < 8", "i < j", ["i <= 6", "1 <= j", "i != j", "j - i >= 1"], ["i <= 5", "2 <= j"]),
    ("", "i % 4 == 2", ["i % 2 == 0", "i != 3", "(i + 2) % 4 == 0", "i * 2 % 8 == 4"],
     ["i % 8 == 2", "i == 2"]),
    ("", "i == j + 3", ["i > j", "i - j == 3", "i >= j + 3"], ["i > j + 3", "i == 3"]),
    ("", "i < j and j < k", ["i < k", "i + 1 < k", "i + 2 <= k"], ["i + 2 < k", "k < i"]),
    ("", "not (i < j)", ["j <= i", "i >= j"], ["j < i", "i == j"]),
    ("", "not (i < 3 or 9 < i)", ["3 <= i", "i <= 9", "i < 10"], ["4 <= i", "i < 9"]),
    ("", "i * 4 < 18", ["i < 5", "i <= 4"], ["i < 4"]),
    ("", "17 < i * 4", ["5 <= i", "4 < i"], ["6 <= i"]),
    ("i < 16", "i // 4 < 3 and 2 <= i // 4", ["8 <= i", "i < 12"], ["9 <= i", "i < 11"]),
    ("", "min(i, j) > 3", ["i > 3", "j > 3"], ["i > 4", "i < j"]),
    ("", "max(i, j) < 3", ["i < 3", "j < 3"], ["i < 2"]),
    ("i < 10", "", ["(i + 7) // 8 * 8 >= i", "i // 4 * 4 <= i", "i - i // 4 * 4 < 4"],
     ["(i + 7) // 8 * 8 > i", "i // 4 * 4 < i"]),
    ("u < 100", "", ["int32(u) < 100", "0 <= int32(u)"], ["int32(u + 1) * 2 < 200", "u < 99"]),
    ("b < 100", "", ["int32(b) >= 0"], ["int32(b + b) >= 0", "int32(b - 1) >= 0"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "condition", "follows", "open_"), PROOFS, ids=[f"{r[0]} {r[1]}" for r in PROOFS]
)
def test_proofs(facts, condition, follows, open_):
    analyzer = analyzer_of(facts, NAMES)
    given = expression(condition, NAMES) if condition else IntImm("bool", 1)
    with analyzer.constraint_scope(given):
        proved = [text for text in follows if analyzer.can_prove(expression(text, NAMES))]
        assert proved == follows
        assert [text for text in open_ if analyzer.can_prove(expression(text, NAMES))] == []


@pytest.mark.parametrize(
    ("facts", "condition"),
    [("i < n, j < 4", "i * 4 + j < n * 4"), ("i < n, j < n", "i + j < n * 2"),
     ("i < n", "i * 3 <= n * 3 - 3"), ("1 <= n < 100, i < n", "n - i > 0")],
)  # fmt: skip
def test_proofs_at_the_ends_of_ranges(facts, condition):
    proof = expression(condition, NAMES)
    assert analyzer_of(facts, NAMES).can_prove(proof, ProofStrength.SYMBOLIC_BOUND)
    assert not Analyzer().can_prove(proof, ProofStrength.SYMBOLIC_BOUND)
