"""Every row of the rule tables, evaluated on all small integers."""

from __future__ import annotations

import ast
import itertools
from math import gcd

import pytest

from weft.arith.rule import PREDICATES, Rule, compile_rules, parse
from weft.arith.rule_tables import ALL_RULES
from weft.tir.arithmetic import truncated_quotient, truncated_remainder

PREDICATE_MEANING = {
    "within": lambda value, low, high: low <= value < high,
    "at_least": lambda value, low: low <= value,
    "nonneg": lambda value: value >= 0,
    "positive": lambda value: value > 0,
    "nonzero": lambda value: value != 0,
    "zero": lambda value: value == 0,
    "multiple": lambda value, factor: factor != 0 and value % factor == 0,
    "nonconst": lambda value: True,
}
FUNCTIONS = {
    "min": min, "max": max, "gcd": gcd, "truncdiv": truncated_quotient,
    "truncmod": truncated_remainder, "quotient": truncated_quotient,
    "select": lambda p, a, b: a if p else b, **PREDICATE_MEANING,
}  # fmt: skip


def names_of(text: str) -> set[str]:
    tree = ast.parse(text, mode="eval")
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - called


def values_of(name: str, count: int):
    if name in "pqr":
        return (False, True)
    if name[0] == "c":
        return range(-4, 5) if count > 3 else range(-6, 7)
    return range(-4, 5) if count > 3 else range(-7, 8)


def test_predicates_of_the_tables_have_a_meaning_here():
    assert set(PREDICATE_MEANING) == PREDICATES


def test_rule_names_are_unique():
    names = [rule.name for rule in ALL_RULES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name)
def test_rule_preserves_the_value_on_small_integers(rule: Rule):
    names = sorted(names_of(rule.before))
    assert names_of(rule.after) <= set(names)
    before = compile(rule.before, rule.name, "eval")
    after = compile(rule.after, rule.name, "eval")
    where = compile(rule.where or "True", rule.name, "eval")
    applied = 0
    for values in itertools.product(*[values_of(name, len(names)) for name in names]):
        scope = dict(zip(names, values, strict=True))
        try:
            if not eval(where, FUNCTIONS, scope):
                continue
            expected = eval(before, FUNCTIONS, scope)
        except ZeroDivisionError:
            continue  # the program traps there before and after
        applied += 1
        assert eval(after, FUNCTIONS, scope) == expected, scope
    assert applied, f"{rule.name}: the condition never holds"


def test_a_rule_that_cannot_be_read_is_an_error():
    with pytest.raises(ValueError, match=r"cannot say 'x \^ y'"):
        parse("x ^ y")


def test_commutative_operators_match_in_every_order():
    table = compile_rules([Rule("r", "min(x, y) + max(x, y)", "x + y")])
    assert [len(rows) for rows in table.values()] == [4]
