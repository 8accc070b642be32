"""Simplification of the extents and indices that operators build."""

from __future__ import annotations

from typing import overload

from weft.arith.analyzer import Analyzer
from weft.ir.expr import Extent, IntImm, PrimExpr
from weft.tir.expr import Var


@overload
def simplified(expr: PrimExpr) -> PrimExpr: ...
@overload
def simplified(expr: Extent) -> Extent: ...
def simplified(expr: Extent) -> Extent:
    """A simpler expression of the same value; Python numbers are returned as they are."""
    if not isinstance(expr, PrimExpr) or isinstance(expr, IntImm | Var):
        return expr
    return Analyzer().simplify(expr)
