"""What ``simplify`` makes of expressions, family by family: the exact text, and the same value."""

from __future__ import annotations

import random

import pytest

from tests.lib.expression_text import analyzer_of, expression
from tests.lib.wrapping import IndexOverflow, value_of
from weft.tir.expr import Var

NAMES = {name: Var(name, "int32") for name in "ijkn"} | {name: Var(name, "bool") for name in "pq"}

# Expression, what is known of its variables, the simplified expression.
# fmt: off
SUMS = [
    ("i + j - i", "", "j"),
    ("i - j + j - i", "", "0"),
    ("i + 1 + 2", "", "i + 3"),
    ("(i + 3) - (j + 5)", "", "i - j - 2"),
    ("3 - (i - 2)", "", "5 - i"),
    ("i * 2 + i * 3", "", "i * 5"),
    ("i * 4 - i", "", "i * 3"),
    ("i + j * 2 + i", "", "i * 2 + j * 2"),
    ("(i + j) * 2 - j * 2", "", "i * 2"),
    ("i * n + j * n", "", "n * (i + j)"),
    ("i * n - n", "", "n * (i - 1)"),
    ("-(i - j)", "", "j - i"),
    ("i - (j - i)", "", "i * 2 - j"),
    ("i * 0 + j", "", "j"),
    ("1 * i + 0", "", "i"),
    ("(i + 1) * (j + 1) - i * j", "", "(i + 1) * (j + 1) - i * j"),
    ("i * j - j * i", "", "0"),
    ("i * 2 * 3 * j", "", "i * j * 6"),
    ("n * 3 + i - n * 2 - n", "", "i"),
]

DIVISIONS = [
    ("i * 4 // 4", "", "i"),
    ("(i * 4 + j) // 4", "j < 4", "i"),
    ("(i * 4 + j) // 4", "", "j // 4 + i"),
    ("(i * 6 + 3) // 3", "", "i * 2 + 1"),
    ("i // 2 // 3", "", "i // 6"),
    ("(i // 2 + 1) // 3", "", "(i + 2) // 6"),
    ("(i + 8) // 4", "", "i // 4 + 2"),
    ("i // 8", "i < 8", "0"),
    ("i // 8", "i < 9", "i // 8"),
    ("(i * 12 + j * 4 + k) // 4", "k < 4", "i * 3 + j"),
    ("(i * n + j) // n", "j < n", "i"),
    ("(i * n * 4 + j * 4) // 4", "", "i * n + j"),
    ("(i + n * 8) // 8", "", "i // 8 + n"),
    ("(n + 7) // 8 * 8 // 8", "", "(n + 7) // 8"),
    ("(i * 64 + j * 16 + k) // 16", "j < 4, k < 16", "i * 4 + j"),
    ("i // 1", "", "i"),
    ("0 // n", "", "0"),
    ("(i - 8) // 4", "", "i // 4 - 2"),
    ("(i * -4) // 4", "", "i * -1"),
    ("(i * 4 + 2) // 8", "", "i // 2"),
    ("(i * 8 + j * 2) // 4", "j < 2", "i * 2"),
]

REMAINDERS = [
    ("i * 4 % 4", "", "0"),
    ("(i * 4 + j) % 4", "j < 4", "j"),
    ("(i * 4 + j) % 4", "", "j % 4"),
    ("(i * 6 + 5) % 3", "", "2"),
    ("i % 8", "i < 8", "i"),
    ("i % 8 % 4", "", "i % 4"),
    ("i % 4 % 8", "", "i % 4"),
    ("(i + 8) % 4", "", "i % 4"),
    ("(i - 1) % 4", "1 <= i < 5", "i - 1"),
    ("(i * n + j) % n", "j < n", "j"),
    ("(i * 12 + j) % 4", "", "j % 4"),
    ("(i % 8 + 8) % 8", "", "i % 8"),
    ("(i * 3) % 6", "", "i % 2 * 3"),
    ("(i * 2 + 1) % 2", "", "1"),
    ("i % 1", "", "0"),
    ("(i // 4 * 4 + i % 4)", "", "i"),
    ("i // 4 * 4 + i % 4 + j", "", "i + j"),
    ("i % 16 // 4", "", "i % 16 // 4"),
    ("(i // 4) % 4 * 4 + i % 4", "", "i % 16"),
    ("i - i // 8 * 8", "", "i % 8"),
    ("(i * 10 + j) % 5", "", "j % 5"),
    ("(i * 16 + j * 4 + k) % 16", "j < 4, k < 4", "j * 4 + k"),
]

TRUNCATED = [
    ("div(i * 4, 4)", "", "i"),
    ("div(i, 8)", "i < 8", "0"),
    ("mod(i, 8)", "i < 8", "i"),
    ("mod(i * 4, 4)", "", "0"),
    ("div(i, 1)", "", "i"),
    ("mod(i, 1)", "", "0"),
    ("div(i * 4 + j, 4)", "i < 8, j < 4", "i"),
    ("mod(i * 4 + j, 4)", "i < 8, j < 4", "j"),
    ("div(div(i, 2), 3)", "", "T.Div(i, 6)"),
    ("div(i, 4) * 4 + mod(i, 4)", "", "i"),
    ("mod(i, 4)", "i < 8", "i % 4"),
]

EXTREMES = [
    ("min(i, i + 1)", "", "i"),
    ("max(i, i - 1)", "", "i"),
    ("min(i, 8)", "i < 8", "i"),
    ("max(i, 8)", "i < 8", "8"),
    ("min(min(i, 4), 6)", "", "T.min(i, 4)"),
    ("max(max(i, 4), 6)", "", "T.max(i, 6)"),
    ("min(i + 2, j + 2)", "", "T.min(i, j) + 2"),
    ("max(i * 2, j * 2)", "", "T.max(i, j) * 2"),
    ("min(i * -2, j * -2)", "", "T.max(i, j) * -2"),
    ("min(max(i, 4), 2)", "", "2"),
    ("max(min(i, j), i)", "", "i"),
    ("min(i, j) + max(i, j)", "", "i + j"),
    ("max(i, 0)", "i < 8", "i"),
    ("min(n, i)", "i < n", "i"),
    ("min(i + 4, i + 7)", "", "i + 4"),
    ("min(i, j) - i", "", "T.min(j - i, 0)"),
    ("min(i // 4, j // 4)", "", "T.min(i, j) // 4"),
    ("max(i, i // 4 * 4)", "", "i"),
    ("min(i * 8, n * 8) // 8", "", "T.min(i, n)"),
    ("max(min(i, 10), 3)", "i < 2", "3"),
]

COMPARISONS = [
    ("i < i + 1", "", "T.bool(True)"),
    ("i + 3 < 5", "", "i < 2"),
    ("3 < i + 5", "", "-2 < i"),
    ("i * 4 < 16", "", "i < 4"),
    ("i * 4 < 17", "", "i < 5"),
    ("i * 4 <= 17", "", "i <= 4"),
    ("17 < i * 4", "", "4 < i"),
    ("i * -2 < 6", "", "-3 < i"),
    ("i // 4 < 3", "", "i < 12"),
    ("3 <= i // 4", "", "12 <= i"),
    ("i // 4 == 3", "", "i // 4 == 3"),
    ("i % 4 < 4", "", "T.bool(True)"),
    ("i % 4 == 5", "", "T.bool(False)"),
    ("i + j < i + k", "", "j < k"),
    ("i - j < 0", "", "i < j"),
    ("i - j == 0", "", "i == j"),
    ("i * 2 == 5", "", "T.bool(False)"),
    ("i * 2 == 6", "", "i == 3"),
    ("i * 2 != 5", "", "T.bool(True)"),
    ("i < 8", "i < 8", "T.bool(True)"),
    ("i >= 0", "i < 8", "T.bool(True)"),
    ("i == 9", "i < 8", "T.bool(False)"),
    ("i * 8 + j < 64", "i < 8, j < 8", "T.bool(True)"),
    ("i * 8 + j < 60", "i < 8, j < 8", "i * 8 + j < 60"),
    ("i * 8 + j < n * 8", "j < 8", "i < n"),
    ("min(i, j) < 4", "", "i < 4 or j < 4"),
    ("max(i, j) < 4", "", "i < 4 and j < 4"),
    ("4 < max(i, j)", "", "4 < i or 4 < j"),
    ("n > i", "", "i < n"),
    ("n >= i", "", "i <= n"),
    ("i != i", "", "T.bool(False)"),
    ("i <= j + 0", "", "i <= j"),
    ("i < j + 1", "", "i <= j"),
    ("i + n - j < n + 3", "", "i < j + 3"),
    ("i // 4 * 4 <= i", "", "T.bool(True)"),
    ("i < i // 4 * 4 + 4", "", "T.bool(True)"),
    ("(i + 3) // 4 * 4 >= i", "", "T.bool(True)"),
    ("i * 4 + j == k * 4 + 1", "j < 4", "i * 4 + j == k * 4 + 1"),
    ("i != 9", "i < 8", "T.bool(True)"),
]

LOGIC = [
    ("p and p", "", "p"),
    ("not not p", "", "p"),
    ("not (i < j)", "", "j <= i"),
    ("not (i == j)", "", "i != j"),
    ("i < 4 and i < 6", "", "i < 4"),
    ("i < 4 or i < 6", "", "i < 6"),
    ("i < 4 and 4 <= i", "", "T.bool(False)"),
    ("i < 4 or 4 <= i", "", "T.bool(True)"),
    ("i == 3 and i == 4", "", "T.bool(False)"),
    ("i < 4 and i == 7", "", "T.bool(False)"),
    ("not (p and q)", "", "not p or not q"),
    ("not (p or q)", "", "not p and not q"),
    ("p and (q and p)", "", "p and q"),
    ("i <= 3 and 3 <= i", "", "i == 3"),
    ("p and not p", "", "T.bool(False)"),
    ("p or not p", "", "T.bool(True)"),
    ("i < n and j < n", "i < n", "j < n"),
    ("i != 3 or i == 3", "", "T.bool(True)"),
    ("i < j and j < i", "", "T.bool(False)"),
]

CHOICES = [
    ("select(True, i, j)", "", "i"),
    ("select(p, i, i)", "", "i"),
    ("select(p, i, j) - i", "", "T.Select(p, 0, j - i)"),
    ("select(i < 4, i // 4, 7)", "i < 8", "T.Select(i < 4, 0, 7)"),
    ("select(i < 8, i, j)", "i < 8", "i"),
    ("select(not p, i, j)", "", "T.Select(p, j, i)"),
    ("select(p, i, j) + select(p, j, i)", "", "T.Select(p, i + j, j + i)"),
    ("select(i < 4, min(i, 4), 0)", "", "T.Select(i < 4, i, 0)"),
    ("select(p, 1, 0) < 2", "", "T.bool(True)"),
    ("ite(i < 4, i % 4, 9)", "i < 8", "T.if_then_else(i < 4, i, 9)"),
    ("ite(False, i, j)", "", "j"),
    ("ite(i < 4, i * 2, i + i)", "", "i * 2"),
    ("ite(i < 4, max(i, 4), 4)", "", "4"),
    ("select(i < j, i - j < 0, q)", "", "T.Select(i < j, T.bool(True), q)"),
]

CASTS = [
    ("int64(i) * 2", "", 'T.Cast("int64", i) * T.int64(2)'),
    ("int64(i * 4 + j) // 4", "i < 8, j < 4", 'T.Cast("int64", i)'),
    ("int64(i) < 8", "i < 8", "T.bool(True)"),
    ("int32(int64(i))", "", "i"),
    ("int64(int32(5))", "", "T.int64(5)"),
    ("int32(int8(i))", "i < 8", 'T.Cast("int32", T.Cast("int8", i))'),
    ("int32(int8(i))", "i < 300", 'T.Cast("int32", T.Cast("int8", i))'),
    ("int64(i) - int64(i)", "", "T.int64(0)"),
]
# fmt: on
TABLES = {
    "sums": SUMS,
    "divisions": DIVISIONS,
    "remainders": REMAINDERS,
    "truncated": TRUNCATED,
    "extremes": EXTREMES,
    "comparisons": COMPARISONS,
    "logic": LOGIC,
    "choices": CHOICES,
    "casts": CASTS,
}
ROWS = [(family, *row) for family, rows in TABLES.items() for row in rows]


@pytest.mark.parametrize(
    ("text", "facts", "expected"), [row[1:] for row in ROWS],
    ids=[f"{row[0]}: {row[1]}" for row in ROWS],
)  # fmt: skip
def test_simplified(text, facts, expected):
    expr = expression(text, NAMES)
    simple = analyzer_of(facts, NAMES).simplify(expr)
    assert str(simple) == expected
    assert simple.dtype == expr.dtype
    for scope in scopes(facts):
        try:
            wanted = value_of(expr, scope)
        except (IndexOverflow, ZeroDivisionError):
            continue
        assert value_of(simple, scope) == wanted, scope


def scopes(facts, count=60):
    """Values of the variables for which the facts hold."""
    rng, known = random.Random(3), analyzer_of(facts, NAMES)
    while count:
        scope = {name: rng.random() < 0.5 for name in "pq"}
        scope["n"] = rng.randint(1, 9)
        for name in "ijk":
            bound = known.const_int_bound(NAMES[name])
            low, high = max(bound.min_value, -30), min(bound.max_value, 30)
            scope[name] = rng.randint(low, high)
            if f"{name} < n" in facts:
                scope[name] %= scope["n"]
        count -= 1
        yield scope
