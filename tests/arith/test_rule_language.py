"""The language of rules: what a row says, which expressions it matches, and its conditions."""

from __future__ import annotations

import pytest

from tests.lib.expression_text import expression
from weft.arith.analyzer import Analyzer
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.fold import ConstantOverflow
from weft.arith.modular_set import ModularSet
from weft.arith.rule import Rule, compile_rules, parse, plus_constant, shape_of
from weft.ir.expr import IntImm
from weft.tir import expr as nodes
from weft.tir.expr import Var

NAMES = {name: Var(name, "int32") for name in "abc"} | {name: Var(name, "bool") for name in "pq"}
A, B = NAMES["a"], NAMES["b"]


def result(rule, text, **bounds):
    """What a rule makes of an expression, as text; None where it does not apply."""
    expr = expression(text, NAMES)
    analyzer = Analyzer()
    for name, ends in bounds.items():
        analyzer.update(NAMES[name], ConstIntBound(*ends))
    for compiled in compile_rules([rule]).get(type(expr), []):
        shapes = [shape_of(expr.a), shape_of(expr.b)]
        made = compiled.function(expr, analyzer._rewriter)
        if made is not None:
            assert compiled.fits(shapes), "the quick test refuses what the matcher takes"
            return str(made)
    return None


MATCHES = [
    # before, after; expression; what it becomes
    ("x + y", "y", "a + b", "b"), ("x + x", "x * 2", "a + a", "a * 2"),
    ("x + x", "x * 2", "a + b", None),
    ("(x + y) - x", "y", "(a + b) - a", "b"), ("(x + y) - x", "y", "(b + a) - a", "b"),
    ("x + c1", "x * c1", "a + 3", "a * 3"), ("x + c1", "x * c1", "a - 3", "a * -3"),
    ("x + c1", "x * c1", "a + b", None), ("x * 2", "x + x", "a * 2", "a + a"),
    ("x * 2", "x + x", "a * 3", None), ("x + c1 * c2", "x", "a + 3 * 4", "a"),
    ("x + c1 * c2", "x", "a + 12", None),
    ("min(x, y) + max(x, y)", "x + y", "max(b, a) + min(a, b)", "a + b"),
    ("x - c1 * y", "y", "a - 3 * b", "b"), ("c1 - x", "x + c1", "7 - a", "a + 7"),
    ("x // c1 * c1", "x", "a // 4 * 4", "a"), ("x // c1 * c1", "x", "a // 4 * 8", None),
    ("x // c1 * c2", "x * (c1 + c2)", "a // 4 * 8", "a * 12"),
    ("x + c1", "x + (c1 - c1)", "a + 5", "a"),
    ("x % y", "x - x // y * y", "a % b", "a - a // b * b"),
    ("truncdiv(x, y) + truncmod(x, y)", "x", "div(a, b) + mod(a, b)", "a"),
    ("truncdiv(x, y) + truncmod(x, y)", "x", "a // b + a % b", None),
    ("p and q", "q", "p and q", "q"), ("x < y or y < x", "x != y", "a < b or b < a", "a != b"),
    ("p and p", "p", "a < 3 and a < 3", "a < 3"), ("p and True", "p", "p and True", "p"),
    ("x + c1 < c2", "x < c2 - c1", "a + 3 < 8", "a < 5"),
    ("x == x", "True", "a == a", "T.bool(True)"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "text", "expected"), MATCHES)
def test_what_a_row_matches_and_builds(before, after, text, expected):
    assert result(Rule("row", before, after), text) == expected


def test_an_exact_row_matches_in_its_own_order_alone():
    row = Rule("row", "min(x, y) + y", "x", exact=True)
    assert result(row, "min(a, b) + b") == "a"
    assert result(row, "min(b, a) + b") is None
    assert result(Rule("row", "min(x, y) + y", "x"), "min(b, a) + b") == "a"


CONDITIONS = [
    # where; constant; bounds of a; whether the row applies
    ("c1 > 0", 3, (0, 9), True), ("c1 > 0", -3, (0, 9), False), ("c1 % 2 == 1", 3, (0, 9), True),
    ("c1 % 2 == 1", 4, (0, 9), False), ("nonneg(x)", 3, (0, 9), True),
    ("nonneg(x)", 3, (-1, 9), False), ("positive(x)", 3, (1, 9), True),
    ("positive(x)", 3, (0, 9), False), ("nonzero(x)", 3, (-9, -1), True),
    ("nonzero(x)", 3, (-1, 1), False), ("zero(x)", 3, (0, 0), True), ("zero(x)", 3, (0, 1), False),
    ("within(x, 0, c1)", 10, (0, 9), True), ("within(x, 0, c1)", 9, (0, 9), False),
    ("within(x, 1, c1)", 10, (0, 9), False), ("at_least(x, c1)", 3, (3, 9), True),
    ("at_least(x, c1)", 3, (2, 9), False), ("nonneg(x - c1)", 3, (3, 9), True),
    ("nonneg(x) and c1 > 0", -3, (0, 9), False), ("not c1 > 0", -3, (0, 9), True),
    ("c1 > 5 or nonneg(x)", 3, (0, 9), True), ("c1 > 5 or nonneg(x)", 3, (-1, 9), False),
]  # fmt: skip


@pytest.mark.parametrize(("where", "number", "bounds", "applies"), CONDITIONS)
def test_conditions_of_rows(where, number, bounds, applies):
    found = result(Rule("row", "x * c1", "x", where), f"a * {number}", a=bounds)
    assert (found == "a") is applies


def test_multiples_are_known_by_their_remainders():
    row = Rule("row", "x % c1", "0", "c1 > 0 and multiple(x, c1)")
    (compiled,) = compile_rules([row])[nodes.FloorMod]
    analyzer = Analyzer()
    analyzer.update(A, ModularSet(12, 0))
    for number, applies in ((4, True), (12, True), (5, False), (24, False)):
        found = compiled.function(nodes.FloorMod(A, IntImm("int32", number)), analyzer._rewriter)
        assert (found is not None) is applies, number
    assert not analyzer._rewriter.multiple(A, 0)


def test_constants_are_told_from_expressions():
    row = Rule("row", "x * y", "y", "nonconst(x)")
    assert result(row, "a * 3") == "3"
    assert result(row, "a * b") == "b"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32", "uint64", "float32"])
def test_rows_of_numbers_are_of_index_types(dtype):
    x = Var("x", dtype)
    (compiled,) = compile_rules([Rule("row", "x + x", "x * 2")])[nodes.Add]
    assert compiled.function(nodes.Add(x, x), Analyzer()._rewriter) is None
    wide = Var("w", "int64")
    found = compiled.function(nodes.Add(wide, wide), Analyzer()._rewriter)
    assert found.b.dtype == "int64"


def test_a_constant_that_leaves_its_type_ends_the_row():
    (compiled, *_) = compile_rules([Rule("row", "(x * c1) * c2", "x * (c1 * c2)")])[nodes.Mul]
    product = nodes.Mul(nodes.Mul(A, IntImm("int32", 1 << 20)), IntImm("int32", 1 << 20))
    with pytest.raises(ConstantOverflow):
        compiled.function(product, Analyzer()._rewriter)
    assert str(Analyzer().rewrite_simplify(product)) == str(product)


UNSAYABLE = ["x ^ y", "f(x)", "x if p else y", "x < y < z", "x.y", "1.5", "'a'"]


@pytest.mark.parametrize("text", UNSAYABLE)
def test_texts_that_no_rule_can_say(text):
    with pytest.raises(ValueError, match="a rule cannot say"):
        parse(text)


def test_the_parts_of_a_pattern():
    pattern = parse("x + (c1 - 2) * y")
    assert (pattern.kind, [operand.kind for operand in pattern.operands]) == ("Add", ["var", "Mul"])
    assert pattern.operands[1].operands[0].is_constant
    assert not pattern.is_constant
    assert parse("p and q and r") == parse("(p and q) and r")
    assert parse("-3").value == -3
    assert parse("True").kind == "truth"


def test_variants_of_commutative_operators():
    def count(before, exact=False):
        rows = compile_rules([Rule("row", before, "x", exact=exact)])
        return {kind.__name__: len(found) for kind, found in rows.items()}

    assert count("x - y") == {"Sub": 1}
    assert count("min(x, y) - y") == {"Sub": 2}
    assert count("min(x, y) * max(x, z)") == {"Mul": 8}
    assert count("min(x, y) * max(x, z)", exact=True) == {"Mul": 1}
    assert count("x + y") == {"Add": 1}  # the other order is the same row
    assert count("x + c1") == {"Add": 1, "Sub": 1}  # x - 2 is x + -2
    assert count("min(x, c1) - x") == {"Sub": 1}  # constants stand on the right


def test_sums_with_constants():
    three = IntImm("int32", 3)
    assert plus_constant(A + 3) == (A, 3)
    assert plus_constant(nodes.Sub(A, three)) == (A, -3)
    assert plus_constant(nodes.Add(three, A)) is None
    assert plus_constant(A + B) is None
    assert plus_constant(A) is None
