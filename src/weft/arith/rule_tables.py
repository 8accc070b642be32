"""All rewrite rules, compiled when the first simplifier is made."""

from __future__ import annotations

from functools import cache
from typing import Final

from weft.arith.rule import Compiled, Rule, compile_rules
from weft.arith.rules import divisions, extremes, logic, sums

ALL_RULES: Final[tuple[Rule, ...]] = (
    *sums.RULES,
    *divisions.RULES,
    *extremes.RULES,
    *logic.RULES,
)


@cache
def compiled_rules() -> dict[type, list[Compiled]]:
    """Root class -> matchers."""
    return compile_rules(ALL_RULES)
