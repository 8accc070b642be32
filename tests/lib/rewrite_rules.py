"""One rewrite rule of the simplifier, applied to one expression."""

from __future__ import annotations

from collections.abc import Mapping

from weft.arith.analyzer import Analyzer
from weft.arith.fold import ConstantOverflow
from weft.arith.rule import Compiled
from weft.ir.expr import PrimExpr


def applied(
    matchers: Mapping[type, list[Compiled]], expr: PrimExpr, analyzer: Analyzer
) -> PrimExpr | None:
    """What the matchers of one rule make of an expression; None where none matches."""
    for matcher in matchers.get(type(expr), []):
        try:
            result: PrimExpr | None = matcher.function(expr, analyzer._rewriter)
        except ConstantOverflow:
            continue
        if result is not None:
            return result
    return None
