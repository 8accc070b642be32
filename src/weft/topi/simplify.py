"""Simplification of the extents and indices that operators build."""

from __future__ import annotations

from typing import Any

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.tir.expr import Var


def simplified(expr: Any) -> Any:
    """A simpler expression of the same value; numbers pass."""
    if not isinstance(expr, PrimExpr) or isinstance(expr, IntImm | Var):
        return expr
    return Analyzer().simplify(expr)
