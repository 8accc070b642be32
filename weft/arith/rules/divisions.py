"""Rules whose root is ``//``, ``%`` or their truncating kin on index types."""

from __future__ import annotations

from typing import Final

from weft.arith.rule import Rule

# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    # floor division: what the bounds decide
    Rule("div-small", "x // c1", "0", "c1 > 0 and within(x, 0, c1)"),
    Rule("div-small-negative", "x // c1", "-1", "c1 > 0 and within(x, 0 - c1, 0)"),
    Rule("div-negative-one", "x // -1", "0 - x"),
    Rule("div-self", "x // x", "1", "nonconst(x)"),
    Rule("zero-div", "0 // x", "0"),
    # floor division: constants
    Rule("div-div", "x // c1 // c2", "x // (c1 * c2)", "c1 > 0 and c2 > 0"),
    Rule("div-sum-div", "(x // c1 + c2) // c3", "(x + c1 * c2) // (c1 * c3)", "c1 > 0 and c3 > 0"),
    Rule("div-scaled", "(x * c1) // c2", "x * (c1 // c2)", "c2 > 0 and c1 % c2 == 0"),
    Rule("div-scaled-down", "(x * c1) // c2", "x // (c2 // c1)",
         "c1 > 0 and c2 > 0 and c2 % c1 == 0"),
    Rule("div-sum-scaled", "(x * c1 + y) // c2", "x * (c1 // c2) + y // c2",
         "c2 > 0 and c1 % c2 == 0"),
    Rule("div-sum-scaled-down", "(x * c1 + y) // c2", "x // (c2 // c1)",
         "c1 > 0 and c2 > 0 and c2 % c1 == 0 and within(y, 0, c1)"),
    Rule("div-difference-scaled", "(x * c1 - y) // c2", "x * (c1 // c2) + (0 - y) // c2",
         "c2 > 0 and c1 % c2 == 0"),
    Rule("div-minus-scaled", "(y - x * c1) // c2", "y // c2 - x * (c1 // c2)",
         "c2 > 0 and c1 % c2 == 0"),
    Rule("div-sum-constant", "(x + c1) // c2", "x // c2 + c1 // c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("div-min-scaled", "min(x * c1, y) // c2", "min(x * (c1 // c2), y // c2)",
         "c2 > 0 and c1 % c2 == 0"),
    Rule("div-max-scaled", "max(x * c1, y) // c2", "max(x * (c1 // c2), y // c2)",
         "c2 > 0 and c1 % c2 == 0"),
    # floor division: symbols
    Rule("div-product", "(x * y) // y", "x", "nonconst(y)"),
    Rule("div-product-sum", "(x * y + z) // y", "x + z // y", "nonconst(y)"),
    Rule("div-product-difference", "(x * y - z) // y", "x + (0 - z) // y", "nonconst(y)"),
    Rule("div-minus-product", "(z - x * y) // y", "z // y - x", "nonconst(y)"),
    Rule("div-sum-self", "(x + y) // y", "x // y + 1", "nonconst(y)"),
    Rule("div-difference-self", "(x - y) // y", "x // y - 1", "nonconst(y)"),
    Rule("div-common-product", "(x * y) // (z * y)", "x // z", "nonconst(y) and nonzero(y)"),
    Rule("div-common-constant", "(x * c1) // (y * c2)", "(x * (c1 // c2)) // y",
         "c1 > 0 and c2 > 0 and c1 % c2 == 0 and nonconst(y)"),
    Rule("div-product-of-product", "(x * y * z) // (y * z)", "x",
         "nonconst(y) and nonconst(z)"),
    Rule("div-mod-small", "(x % y) // y", "0", "positive(y)"),
    Rule("div-below", "x // y", "0", "nonconst(y) and nonneg(x) and positive(y - x)"),
    Rule("div-sum-below", "(x * y + z) // (w * y)", "x // w",
         "nonconst(y) and nonneg(z) and positive(y - z) and positive(w)"),
    # floor remainder: what the bounds decide
    Rule("mod-small", "x % c1", "x", "c1 > 0 and within(x, 0, c1)"),
    Rule("mod-small-negative", "x % c1", "x + c1", "c1 > 0 and within(x, 0 - c1, 0)"),
    Rule("mod-multiple", "x % c1", "0", "c1 > 0 and multiple(x, c1)"),
    Rule("mod-negative-one", "x % -1", "0"),
    Rule("mod-self", "x % x", "0", "nonconst(x)"),
    Rule("zero-mod", "0 % x", "0"),
    # floor remainder: constants
    Rule("mod-scaled", "(x * c1) % c2", "x * (c1 % c2) % c2", "c2 > 0 and c1 % c2 != c1"),
    Rule("mod-scaled-common", "(x * c1) % c2", "x % (c2 // c1) * c1",
         "c1 > 0 and c2 > 0 and c2 % c1 == 0"),
    Rule("mod-sum-scaled", "(x * c1 + y) % c2", "y % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("mod-sum-scaled-common", "(x * c1 + y) % c2", "x % (c2 // c1) * c1 + y",
         "c1 > 0 and c2 > 0 and c2 % c1 == 0 and within(y, 0, c1)"),
    Rule("mod-difference-scaled", "(y - x * c1) % c2", "y % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("mod-sum-constant", "(x + c1) % c2", "(x + c1 % c2) % c2",
         "c2 > 0 and c1 % c2 != c1"),
    Rule("mod-sum-multiple", "(x + y) % c1", "x % c1",
         "c1 > 0 and nonconst(y) and multiple(y, c1)"),
    Rule("mod-difference-multiple", "(x - y) % c1", "x % c1",
         "c1 > 0 and nonconst(y) and multiple(y, c1)"),
    Rule("mod-mod", "x % c1 % c2", "x % c2", "c2 > 0 and c1 % c2 == 0"),
    Rule("mod-sum-mod", "(x % c1 + y) % c2", "(x + y) % c2", "c2 > 0 and c1 % c2 == 0"),
    # floor remainder: symbols
    Rule("mod-product", "(x * y) % y", "0", "nonconst(y)"),
    Rule("mod-product-sum", "(x * y + z) % y", "z % y", "nonconst(y)"),
    Rule("mod-product-difference", "(z - x * y) % y", "z % y", "nonconst(y)"),
    Rule("mod-sum-self", "(x + y) % y", "x % y", "nonconst(y)"),
    Rule("mod-difference-self", "(x - y) % y", "x % y", "nonconst(y)"),
    Rule("mod-common-product", "(x * y) % (z * y)", "x % z * y", "nonconst(y) and nonzero(y)"),
    Rule("mod-mod-self", "x % y % y", "x % y", "nonconst(y)"),
    Rule("mod-below", "x % y", "x", "nonconst(y) and nonneg(x) and positive(y - x)"),
    # truncating division and remainder
    Rule("truncdiv-small", "truncdiv(x, c1)", "0", "c1 > 0 and within(x, 1 - c1, c1)"),
    Rule("truncdiv-truncdiv", "truncdiv(truncdiv(x, c1), c2)", "truncdiv(x, c1 * c2)",
         "c1 > 0 and c2 > 0"),
    Rule("truncdiv-scaled", "truncdiv(x * c1, c2)", "x * truncdiv(c1, c2)",
         "c2 > 0 and c1 % c2 == 0"),
    Rule("truncdiv-self", "truncdiv(x, x)", "1", "nonconst(x)"),
    Rule("truncdiv-product", "truncdiv(x * y, y)", "x", "nonconst(y)"),
    Rule("truncmod-small", "truncmod(x, c1)", "x", "c1 > 0 and within(x, 1 - c1, c1)"),
    Rule("truncmod-multiple", "truncmod(x, c1)", "0", "c1 > 0 and multiple(x, c1)"),
    Rule("truncmod-scaled", "truncmod(x * c1, c2)", "0", "c2 > 0 and c1 % c2 == 0"),
    Rule("truncmod-self", "truncmod(x, x)", "0", "nonconst(x)"),
    Rule("truncmod-product", "truncmod(x * y, y)", "0", "nonconst(y)"),
)
# fmt: on
