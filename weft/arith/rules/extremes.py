"""Rules whose root is ``min`` or ``max`` on index types."""

from __future__ import annotations

from typing import Final

from weft.arith.rule import Rule

# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    # dominated
    Rule("min-self", "min(x, x)", "x"),
    Rule("max-self", "max(x, x)", "x"),
    Rule("min-above", "min(x, x + c1)", "x", "c1 >= 0"),
    Rule("min-below", "min(x, x + c1)", "x + c1", "c1 < 0"),
    Rule("max-above", "max(x, x + c1)", "x + c1", "c1 >= 0"),
    Rule("max-below", "max(x, x + c1)", "x", "c1 < 0"),
    Rule("min-shifted", "min(x + c1, x + c2)", "x + min(c1, c2)"),
    Rule("max-shifted", "max(x + c1, x + c2)", "x + max(c1, c2)"),
    Rule("min-shifted-negated", "min(c1 - x, c2 - x)", "min(c1, c2) - x"),
    Rule("max-shifted-negated", "max(c1 - x, c2 - x)", "max(c1, c2) - x"),
    Rule("min-of-max", "min(max(x, y), x)", "x"),
    Rule("max-of-min", "max(min(x, y), x)", "x"),
    Rule("min-of-min", "min(min(x, y), x)", "min(x, y)"),
    Rule("max-of-max", "max(max(x, y), x)", "max(x, y)"),
    Rule("min-max-min", "min(max(x, y), min(x, y))", "min(x, y)"),
    Rule("max-max-min", "max(max(x, y), min(x, y))", "max(x, y)"),
    # round up: what (x + c - 1) // c * c and its kin compare to
    Rule("min-round-up", "min((x + c1) // c2 * c2, x)", "x", "c2 > 0 and c1 + 1 == c2"),
    Rule("max-round-up", "max((x + c1) // c2 * c2, x)", "(x + c1) // c2 * c2",
         "c2 > 0 and c1 + 1 == c2"),
    Rule("min-round-down", "min(x // c1 * c1, x)", "x // c1 * c1", "c1 > 0"),
    Rule("max-round-down", "max(x // c1 * c1, x)", "x", "c1 > 0"),
    # constants join
    Rule("min-constants", "min(min(x, c1), c2)", "min(x, min(c1, c2))"),
    Rule("max-constants", "max(max(x, c1), c2)", "max(x, max(c1, c2))"),
    Rule("min-max-constants", "min(max(x, c1), c2)", "c2", "c1 >= c2"),
    Rule("max-min-constants", "max(min(x, c1), c2)", "c2", "c1 <= c2"),
    Rule("min-constant-out", "min(min(x, c1), y)", "min(min(x, y), c1)", "nonconst(y)"),
    Rule("max-constant-out", "max(max(x, c1), y)", "max(max(x, y), c1)", "nonconst(y)"),
    # distribute
    Rule("min-common", "min(min(x, y), min(x, z))", "min(min(y, z), x)"),
    Rule("max-common", "max(max(x, y), max(x, z))", "max(max(y, z), x)"),
    Rule("min-of-maxes", "min(max(x, y), max(x, z))", "max(min(y, z), x)"),
    Rule("max-of-mins", "max(min(x, y), min(x, z))", "min(max(y, z), x)"),
    Rule("min-sum", "min(x + y, x + z)", "x + min(y, z)",
         "nonconst(y) and nonconst(z)"),
    Rule("max-sum", "max(x + y, x + z)", "x + max(y, z)",
         "nonconst(y) and nonconst(z)"),
    Rule("min-difference", "min(x - y, x - z)", "x - max(y, z)", "nonconst(x)"),
    Rule("max-difference", "max(x - y, x - z)", "x - min(y, z)", "nonconst(x)"),
    Rule("min-minuend", "min(x - z, y - z)", "min(x, y) - z", "nonconst(x) and nonconst(y)"),
    Rule("max-minuend", "max(x - z, y - z)", "max(x, y) - z", "nonconst(x) and nonconst(y)"),
    Rule("min-scaled", "min(x * c1, y * c1)", "min(x, y) * c1", "c1 > 0"),
    Rule("min-scaled-down", "min(x * c1, y * c1)", "max(x, y) * c1", "c1 < 0"),
    Rule("max-scaled", "max(x * c1, y * c1)", "max(x, y) * c1", "c1 > 0"),
    Rule("max-scaled-down", "max(x * c1, y * c1)", "min(x, y) * c1", "c1 < 0"),
    Rule("min-scaled-constant", "min(x * c1, c2)", "min(x, c2 // c1) * c1",
         "c1 > 1 and c2 % c1 == 0"),
    Rule("max-scaled-constant", "max(x * c1, c2)", "max(x, c2 // c1) * c1",
         "c1 > 1 and c2 % c1 == 0"),
    Rule("min-divided", "min(x // c1, y // c1)", "min(x, y) // c1", "c1 > 0"),
    Rule("max-divided", "max(x // c1, y // c1)", "max(x, y) // c1", "c1 > 0"),
    # select
    Rule("min-select", "min(select(p, x, y), select(p, z, w))", "select(p, min(x, z), min(y, w))"),
    Rule("max-select", "max(select(p, x, y), select(p, z, w))", "select(p, max(x, z), max(y, w))"),
)
# fmt: on
