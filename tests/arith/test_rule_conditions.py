"""Near misses of the rewrite rules: where a condition fails, the rule would change the value.

Each row is a counterexample: without its condition the rule applies to the expression, and at the
point its result has another value. With the condition it does not apply.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lib.expression_text import expression
from tests.lib.rewrite_rules import applied
from tests.lib.wrapping import value_of
from weft.arith.analyzer import Analyzer
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.rule import compile_rules
from weft.arith.rule_tables import ALL_RULES
from weft.tir.expr import Var

RULES = {rule.name: rule for rule in ALL_RULES}

# Rule, expression, the point at which the rule without its condition is wrong.
# fmt: off
MISSES = [
    ("add-div-mod-scaled", "x // 2 * 2 + (x % 2) * 2", "x = 2"),
    ("add-min-scaled", "min(x, y + z * 2) + z * 2", "x = 0, y = 0, z = 1"),
    ("add-max-scaled", "max(x, y + z * 2) + z * 2", "x = 0, y = 0, z = 1"),
    ("sub-min-parallel", "min(x, y) - min(z, w)", "w = 0, x = 0, y = 0, z = 1"),
    ("sub-max-parallel", "max(x, y) - max(z, w)", "w = 0, x = 0, y = 1, z = 0"),
    ("add-bits-of-neighbours", "(x + 2) % 2 + x % 2", "x = 0"),
    ("sub-truncated-quotients", "truncdiv(x + 2, 2) - truncdiv(x + 3, 2)", "x = 1"),
    ("sub-truncated-quotient", "truncdiv(x + 2, 2) - truncdiv(x, 2)", "x = -3"),
    ("sub-scaled-quotient", "x * 2 - x // 2 * 2", "x = 2"),
    ("scaled-quotient-sub", "x // 2 * 2 - x * 2", "x = 2"),
    ("sub-scaled-quotient-of-sum", "x * 2 - (x + y) // 2 * 2", "x = 0, y = 2"),
    ("scaled-quotient-of-sum-sub", "(x + y) // 2 * 2 - x * 2", "x = 0, y = 2"),
    ("sub-scaled-quotient-of-difference", "x * 2 - (x - y) // 2 * 2", "x = 0, y = 1"),
    ("scaled-quotient-of-difference-sub", "(x - y) // 2 * 2 - x * 2", "x = 0, y = 1"),
    ("sub-scaled-truncated", "x * 2 - truncdiv(x, 2) * 2", "x = 2"),
    ("scaled-truncated-sub", "truncdiv(x, 2) * 2 - x * 2", "x = 2"),
    ("sub-scaled-truncated-sum", "x * 2 - truncdiv(x + y, 2) * 2", "x = 0, y = 2"),
    ("sub-scaled-truncated-difference", "x * 2 - truncdiv(x - y, 2) * 2", "x = 0, y = 2"),
    ("mul-of-rounded", "(x - x % 2) // 3 * 3", "x = 2"),
    ("div-small", "x // 2", "x = 2"),
    ("div-small-negative", "x // 2", "x = 0"),
    ("div-div", "x // 2 // -2", "x = 1"),
    ("div-sum-div", "(x // 2 + 2) // -2", "x = 1"),
    ("div-scaled", "(x * 2) // 3", "x = 2"),
    ("div-scaled-down", "(x * 2) // 3", "x = 1"),
    ("div-sum-scaled", "(x * 2 + y) // 3", "x = 1, y = 1"),
    ("div-sum-scaled-down", "(x * 2 + y) // 2", "x = 0, y = 2"),
    ("div-difference-scaled", "(x * 2 - y) // 3", "x = 1, y = 1"),
    ("div-minus-scaled", "(y - x * 2) // 3", "x = 1, y = 0"),
    ("div-sum-constant", "(x + 2) // 3", "x = 1"),
    ("div-min-scaled", "min(x * 2, y) // 3", "x = 2, y = 3"),
    ("div-max-scaled", "max(x * 2, y) // 3", "x = 2, y = 0"),
    ("div-common-constant", "(x * 2) // (y * 3)", "x = 2, y = 1"),
    ("div-below", "x // y", "x = 1, y = 1"),
    ("div-sum-below", "(x * y + z) // (w * y)", "w = 1, x = 0, y = 1, z = 1"),
    ("div-sums-scaled", "(x * 2 + y + z) // 3", "x = 1, y = 0, z = 1"),
    ("div-sums-scaled-minus", "(x * 2 - y + z) // 3", "x = 1, y = 0, z = 1"),
    ("div-sum-offset-scaled-down", "(x * 2 + 2) // 4", "x = 1"),
    ("div-scaled-residue", "(x * 3) // 2", "x = 2"),
    ("div-sum-scaled-residue", "(x * 3 + 2) // 2", "x = 2"),
    ("mod-small", "x % 2", "x = 2"),
    ("mod-small-negative", "x % 2", "x = 0"),
    ("mod-multiple", "x % 2", "x = 1"),
    ("mod-scaled-common", "(x * 2) % 3", "x = 1"),
    ("mod-sum-scaled", "(x * 2 + y) % 3", "x = 1, y = 0"),
    ("mod-sum-scaled-common", "(x * 2 + y) % 2", "x = 0, y = 2"),
    ("mod-difference-scaled", "(y - x * 2) % 3", "x = 1, y = 0"),
    ("mod-sum-multiple", "(x + y) % 2", "x = 0, y = 1"),
    ("mod-difference-multiple", "(x - y) % 2", "x = 0, y = 1"),
    ("mod-mod", "x % 2 % 3", "x = 2"),
    ("mod-sum-mod", "(x % 2 + y) % 3", "x = 2, y = 0"),
    ("mod-sum-of-mod", "(x + z % y) % y", "x = 0, y = 2, z = 1"),
    ("mod-below", "x % y", "x = 1, y = 1"),
    ("truncdiv-small", "truncdiv(x, 2)", "x = 2"),
    ("truncdiv-scaled", "truncdiv(x * 2, 3)", "x = 2"),
    ("truncdiv-sum-truncdiv", "truncdiv(truncdiv(x, 2) + 2, 2)", "x = -1"),
    ("truncdiv-scaled-down", "truncdiv(x * 2, 3)", "x = 1"),
    ("truncdiv-sum-scaled", "truncdiv(x * 2 + y, 2)", "x = 1, y = -1"),
    ("truncdiv-sums-scaled", "truncdiv(x * 2 + y + z, 3)", "x = 1, y = 0, z = 1"),
    ("truncdiv-sum-constant", "truncdiv(x + 2, 2)", "x = -1"),
    ("truncdiv-min-scaled", "truncdiv(min(x * 2, y), 3)", "x = 2, y = 3"),
    ("truncdiv-max-scaled", "truncdiv(max(x * 2, y), 3)", "x = 2, y = 0"),
    ("truncdiv-sum-self", "truncdiv(x + y, y)", "x = -1, y = 2"),
    ("truncdiv-sums-self", "truncdiv(x + y + z, y)", "x = -1, y = 2, z = 0"),
    ("truncdiv-product-sum", "truncdiv(x * z + y, z)", "x = -1, y = 1, z = 2"),
    ("truncmod-sum-scaled", "truncmod(x * 2 + y, 2)", "x = 1, y = -1"),
    ("truncmod-sum-constant", "truncmod(x + 2, 2)", "x = -1"),
    ("truncmod-small", "truncmod(x, 2)", "x = 2"),
    ("truncmod-multiple", "truncmod(x, 2)", "x = 1"),
    ("truncmod-scaled", "truncmod(x * 2, 3)", "x = 1"),
    ("min-above", "min(x, x - 2)", "x = 0"),
    ("min-below", "min(x, x + 2)", "x = 0"),
    ("max-above", "max(x, x - 2)", "x = 0"),
    ("max-below", "max(x, x + 2)", "x = 0"),
    ("min-round-up", "min((x + 2) // 4 * 4, x)", "x = 1"),
    ("max-round-up", "max((x + 2) // 4 * 4, x)", "x = 1"),
    ("min-round-down", "min(x // -2 * -2, x)", "x = 1"),
    ("max-round-down", "max(x // -2 * -2, x)", "x = 1"),
    ("min-round-up-truncated", "min(truncdiv(x + 2, 4) * 4, x)", "x = 1"),
    ("max-round-up-truncated", "max(truncdiv(x + 2, 4) * 4, x)", "x = 1"),
    ("min-round-up-clipped", "min((x + 2) // 3 * 3, max(x, 3))", "x = 0"),
    ("min-max-constants", "min(max(x, 2), 3)", "x = 0"),
    ("max-min-constants", "max(min(x, 3), 2)", "x = 3"),
    ("min-of-max-shifted", "min(max(x + 1, 0), x)", "x = 0"),
    ("min-of-max-shifted", "min(max(x + -1, 2), x)", "x = 0"),
    ("add-min-rest", "min(x, 2) + max(x + -2, 1)", "x = 0"),
    ("min-scaled", "min(x * -2, y * -2)", "x = 0, y = 1"),
    ("min-scaled-down", "min(x * 2, y * 2)", "x = 0, y = 1"),
    ("max-scaled", "max(x * -2, y * -2)", "x = 0, y = 1"),
    ("max-scaled-down", "max(x * 2, y * 2)", "x = 0, y = 1"),
    ("min-scaled-constant", "min(x * 3, 2)", "x = 1"),
    ("max-scaled-constant", "max(x * 2, 3)", "x = 0"),
    ("min-scaled-negative-constant", "min(x * 2, 2)", "x = 0"),
    ("max-scaled-negative-constant", "max(x * 2, 2)", "x = 0"),
    ("min-divided-down", "min(x // 2, y // 2)", "x = 0, y = 2"),
    ("max-divided-down", "max(x // 2, y // 2)", "x = 0, y = 2"),
    ("min-truncated", "min(truncdiv(x, -2), truncdiv(y, -2))", "x = 0, y = 2"),
    ("max-truncated", "max(truncdiv(x, -2), truncdiv(y, -2))", "x = 0, y = 2"),
    ("min-divided", "min(x // -2, y // -2)", "x = 0, y = 1"),
    ("max-divided", "max(x // -2, y // -2)", "x = 0, y = 1"),
    ("min-divided-shifted", "min(x // -2 + 1, y // -2)", "x = 0, y = 1"),
    ("max-divided-shifted", "max(x // -2 + 1, y // -2)", "x = 0, y = 0"),
    ("lt-mod-self", "x % y < y", "x = 0, y = -1"),
    ("lt-scaled", "x * -2 < y * -2", "x = 0, y = 1"),
    ("lt-scaled-negative", "x * 2 < y * 2", "x = 0, y = 1"),
    ("lt-scaled-constant", "x * -2 < 2", "x = 0"),
    ("lt-constant-scaled", "2 < x * -2", "x = 0"),
    ("lt-scaled-negative-constant", "x * 2 < 2", "x = 0"),
    ("lt-constant-scaled-negative", "2 < x * 2", "x = 0"),
    ("lt-divided", "x // -2 < 2", "x = 0"),
    ("lt-constant-divided", "2 < x // -2", "x = 0"),
    ("lt-round-up", "(x + 2) // 4 * 4 < x", "x = 1"),
    ("lt-round-up-next", "x < x // 3 * 3 + 2", "x = 2"),
    ("lt-round-down-never", "x < x // -2 * -2", "x = 1"),
    ("lt-truncated", "truncdiv(x, -2) < 2", "x = 0"),
    ("lt-truncated-negative", "truncdiv(x, 2) < 2", "x = 3"),
    ("lt-constant-truncated", "2 < truncdiv(x, -2)", "x = 0"),
    ("lt-constant-truncated-negative", "2 < truncdiv(x, 2)", "x = 5"),
    ("eq-scaled", "x * 0 == y * 0", "x = 0, y = 1"),
    ("eq-scaled-constant", "x * 3 == 2", "x = 0"),
    ("eq-scaled-never", "x * 2 == 2", "x = 1"),
    ("ne-scaled", "x * 0 != y * 0", "x = 0, y = 1"),
    ("ne-scaled-constant", "x * 3 != 2", "x = 0"),
    ("ne-scaled-always", "x * 2 != 2", "x = 1"),
    ("and-empty-lt", "x < 4 and 2 < x", "x = 3"),
    ("and-empty-le", "x <= 2 and 2 <= x", "x = 2"),
    ("and-empty-mixed", "x < 3 and 2 <= x", "x = 2"),
    ("and-empty-mixed-le", "x <= 3 and 2 < x", "x = 3"),
    ("and-eq-eq", "x == 2 and x == 2", "x = 2"),
    ("and-eq-ne-constants", "x == 2 and x != 2", "x = 2"),
    ("and-eq-upper", "x == 2 and x < 2", "x = 2"),
    ("and-eq-above", "x == 2 and x < 3", "x = 2"),
    ("and-upper-mixed", "x < 4 and x <= 2", "x = 3"),
    ("and-upper-mixed-le", "x < 2 and x <= 2", "x = 2"),
    ("and-lower-mixed", "2 < x and 4 <= x", "x = 3"),
    ("and-lower-mixed-le", "2 < x and 2 <= x", "x = 2"),
    ("and-quotient-remainder", "x // 2 == 2 and x % 2 == 3", "x = 7"),
    ("and-quotient-below", "x // 2 == 2 and x % 2 < 4", "x = 7"),
    ("and-quotient-at-most", "x // 2 == 2 and x % 2 <= 3", "x = 7"),
    ("and-quotient-at-least", "x // 2 == 2 and -2 <= x % 2", "x = 2"),
    ("and-quotient-above", "x // 2 == 2 and -2 < x % 2", "x = 3"),
    ("and-remainder-tail", "x < 2 and x % 3 < 2", "x = 1"),
    ("and-remainder-tail-partial", "x < 2 and x % 2 < 2", "x = 2"),
    ("and-remainder-tail-le", "x <= 2 and x % 4 < 2", "x = 1"),
    ("and-within-tile", "y * -2 <= x and x < y * -2 + -2", "x = 0, y = 0"),
    ("and-within-tile-zero", "0 <= x - y * -2 and x - y * -2 < -2", "x = 0, y = 0"),
    ("or-upper-mixed", "x < 4 or x <= 2", "x = 3"),
    ("or-upper-mixed-lt", "x < 2 or x <= 2", "x = 2"),
    ("or-all-lt", "x < 2 or 2 < x", "x = 2"),
    ("or-all-mixed", "x < 2 or 3 <= x", "x = 2"),
    ("or-all-le", "x <= 2 or 4 <= x", "x = 3"),
    ("or-all-mixed-le", "x <= 2 or 3 < x", "x = 3"),
    ("eq-quotients", "(x + 2) // 2 + 1 == (x + 3) // 2", "x = 0"),
    ("eq-quotients-swapped", "(x + 3) // 2 == (x + 2) // 2 + 1", "x = 0"),
    ("or-ne-ne", "x != 2 or x != 2", "x = 2"),
    ("or-eq-ne-constants", "x == 2 or x != 2", "x = 2"),
]
# fmt: on

# Conditions whose failure makes no wrong value: they keep the rule from dividing by zero, from a
# result of another sign that is as right, or from undoing what another rule does.
NO_COUNTEREXAMPLE = frozenset({
    "add-constant-in", "sub-constant-out", "add-min-constants", "add-max-constants",
    "add-div-of-mod", "sub-quotients", "sub-quotient", "sub-round-down-of-sum",
    "round-down-of-sum-sub", "sub-round-down-of-difference", "round-down-of-difference-sub",
    "sub-truncated", "truncated-sub", "sub-truncated-sum", "truncated-sum-sub",
    "sub-truncated-difference", "truncated-difference-sub", "div-common-product",
    "div-mod-small", "div-scaled-product-sum", "div-scaled-self", "div-rounded", "mod-scaled",
    "mod-sum-constant", "mod-common-product", "mod-scaled-self", "mod-scaled-product-sum",
    "truncdiv-truncdiv",
    "truncmod-negative-divisor", "min-constant-minus", "max-constant-minus",
    "lt-shift-negative", "lt-difference-constant", "lt-constant-difference", "lt-round-down",
    "lt-round-down-sum", "lt-round-down-constant", "lt-round-down-minus", "lt-round-down-plus",
    "lt-rounded-sum", "lt-rounded-sum-plus", "lt-rounded-sum-minus",
    "lt-rounded-sum-subtracted", "lt-round-to-zero", "lt-round-to-zero-plus",
    "lt-round-to-zero-minus", "lt-round-to-zero-sum",
})  # fmt: skip


def scope_of(text):
    """The point that ``"x = 1, y = 2"`` says."""
    parts = [part.split(" = ") for part in text.split(", ")]
    return {name: int(value) for name, value in parts}


@pytest.mark.parametrize(("name", "text", "at"), MISSES, ids=[row[0] for row in MISSES])
def test_a_condition_keeps_its_rule_from_a_wrong_result(name, text, at):
    """What is known of a variable is that it lies between 0 and its number in the row."""
    rule, point = RULES[name], scope_of(at)
    names = {variable: Var(variable, "int32") for variable in point}
    expr, analyzer = expression(text, names), Analyzer()
    for variable, value in point.items():
        analyzer.update(names[variable], ConstIntBound(min(value, 0), max(value, 0)))
    unconditional = applied(compile_rules([replace(rule, where="")]), expr, analyzer)
    assert unconditional is not None, f"{text} is no instance of {rule.before}"
    assert value_of(unconditional, point) != value_of(expr, point)
    assert applied(compile_rules([rule]), expr, analyzer) is None
    assert value_of(analyzer.simplify(expr), point) == value_of(expr, point)


def _parts_of(condition):
    return [part for both in condition.split(" and ") for part in both.split(" or ") if part]


def test_every_condition_has_its_near_miss():
    """A new rule with a condition needs a row here."""
    conditional = {
        rule.name
        for rule in ALL_RULES
        if any(not part.strip("(").startswith("nonconst") for part in _parts_of(rule.where))
    }
    assert conditional == {row[0] for row in MISSES} | NO_COUNTEREXAMPLE
