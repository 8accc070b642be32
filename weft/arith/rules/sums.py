"""Rules whose root is ``+``, ``-`` or ``*`` on index types."""

from __future__ import annotations

from typing import Final

from weft.arith.rule import Rule

# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    # constants go to the right and join
    Rule("add-constants", "(x + c1) + c2", "x + (c1 + c2)"),
    Rule("add-constant-minus", "(c1 - x) + c2", "(c1 + c2) - x"),
    Rule("add-constant-out", "(x + c1) + y", "(x + y) + c1", "nonconst(y)"),
    Rule("add-constant-in", "(x - y) + c1", "(x + c1) - y",
         "c1 > 0 and nonconst(y) and nonconst(x)"),
    Rule("sub-constant-out", "(x + c1) - y", "(x - y) + c1",
         "c1 < 0 and nonconst(y) and nonconst(x)"),
    Rule("sub-constant-in", "x - (y + c1)", "(x - y) - c1", "nonconst(x)"),
    Rule("sub-constants", "c1 - (x + c2)", "(c1 - c2) - x"),
    Rule("sub-constants-twice", "c1 - (c2 - x)", "x + (c1 - c2)"),
    Rule("sub-negated", "x - (c1 - y)", "(x + y) - c1", "nonconst(x)"),
    Rule("add-negated", "x + (0 - y)", "x - y"),
    Rule("mul-constants", "(x * c1) * c2", "x * (c1 * c2)"),
    Rule("mul-sum-constants", "(x + c1) * c2", "x * c2 + c1 * c2"),
    Rule("mul-constant-out", "(x * c1) * y", "(x * y) * c1", "nonconst(y)"),
    # cancel
    Rule("sub-self", "x - x", "0"),
    Rule("add-sub-cancel", "(x - y) + y", "x"),
    Rule("add-sub-chain", "(x - y) + (y - z)", "x - z"),
    Rule("sub-add-left", "(x + y) - x", "y"),
    Rule("sub-add-right", "x - (x + y)", "0 - y"),
    Rule("sub-sub-left", "(x - y) - x", "0 - y"),
    Rule("sub-sub-right", "x - (x - y)", "y"),
    Rule("sub-common", "(x + y) - (x + z)", "y - z"),
    Rule("sub-common-subtrahend", "(x - z) - (y - z)", "x - y"),
    Rule("sub-common-minuend", "(x - y) - (x - z)", "z - y"),
    Rule("sub-common-product", "x * y - x * z", "x * (y - z)", "nonconst(x)"),
    # collect
    Rule("add-self", "x + x", "x * 2"),
    Rule("add-scaled-self", "x * c1 + x", "x * (c1 + 1)"),
    Rule("add-scaled-both", "x * c1 + x * c2", "x * (c1 + c2)"),
    Rule("sub-scaled-self", "x * c1 - x", "x * (c1 - 1)"),
    Rule("sub-self-scaled", "x - x * c1", "x * (1 - c1)"),
    Rule("sub-scaled-both", "x * c1 - x * c2", "x * (c1 - c2)"),
    Rule("add-common-factor", "x * y + x * z", "x * (y + z)", "nonconst(x)"),
    Rule("add-common-factor-self", "x * y + x", "x * (y + 1)", "nonconst(x) and nonconst(y)"),
    Rule("add-div-mod", "x // y * y + x % y", "x"),
    Rule("add-div-mod-scaled", "x // c1 * c2 + (x % c1) * c3", "x * c3",
         "c1 != 0 and c2 == c1 * c3"),
    Rule("add-truncdiv-mod", "truncdiv(x, y) * y + truncmod(x, y)", "x"),
    Rule("sub-div-product", "x - x // y * y", "x % y"),
    Rule("div-product-sub", "x // y * y - x", "0 - x % y"),
    Rule("sub-mod", "x - x % y", "x // y * y", "nonconst(y)"),
    # minimum and maximum
    Rule("add-min-max", "min(x, y) + max(x, y)", "x + y"),
    Rule("add-min-sub", "min(x, y - z) + z", "min(x + z, y)"),
    Rule("add-max-sub", "max(x, y - z) + z", "max(x + z, y)"),
    Rule("add-min-constants", "min(x, y + c1) + c2", "min(x + c2, y + (c1 + c2))",
         "c1 + c2 == 0"),
    Rule("add-max-constants", "max(x, y + c1) + c2", "max(x + c2, y + (c1 + c2))",
         "c1 + c2 == 0"),
    Rule("sub-min-left", "min(x, y) - x", "min(0, y - x)", "nonconst(x) and nonconst(y)"),
    Rule("sub-max-left", "max(x, y) - x", "max(0, y - x)", "nonconst(x) and nonconst(y)"),
    Rule("sub-min-right", "x - min(x, y)", "max(0, x - y)", "nonconst(x) and nonconst(y)"),
    Rule("sub-max-right", "x - max(x, y)", "min(0, x - y)", "nonconst(x) and nonconst(y)"),
    Rule("sub-min-min", "min(x, y) - min(x + z, y + z)", "0 - z"),
    Rule("sub-max-max", "max(x, y) - max(x + z, y + z)", "0 - z"),
    Rule("sub-sum-min", "(x + y) - min(x, z)", "y + max(0, x - z)",
         "nonconst(x) and nonconst(y) and nonconst(z)"),
    Rule("mul-min-max", "min(x, y) * max(x, y)", "x * y"),
    # select
    Rule("add-select", "select(p, x, y) + select(p, z, w)", "select(p, x + z, y + w)"),
    Rule("sub-select", "select(p, x, y) - select(p, z, w)", "select(p, x - z, y - w)"),
)
# fmt: on
