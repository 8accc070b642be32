"""Converts iteration maps back to plain expressions."""

from __future__ import annotations

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.integer import add, const_like, equal, floordiv, floormod, mul
from weft.arith.iter_map.nodes import IterSplitExpr, IterSumExpr
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator
from weft.support.recursion import deep_recursion
from weft.tir.constant import is_const_int


class ToExpr(Mutator):
    """Replaces sums and splits by ``//``, ``%``, ``*`` and ``+``."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def convert(self, expr: PrimExpr) -> PrimExpr:
        """The plain expression; the same object where nothing is to do."""
        return expr if type(expr) is IntImm else self.visit(expr)

    def visit_IterSumExpr(self, node: IterSumExpr) -> PrimExpr:
        total: PrimExpr | None = None
        for split in node.args:
            term = self.visit(split)
            total = term if total is None else add(total, term)
        base = self.convert(node.base)
        return base if total is None else add(total, base)

    def visit_IterSplitExpr(self, split: IterSplitExpr) -> PrimExpr:
        source = self.visit(split.source.source)
        lower, extent, scale = split.lower_factor, split.extent, split.scale
        if is_const_int(lower, 1) and self.equal(extent, split.source.extent):
            return mul(source, scale)
        covered = mul(lower, extent)
        if self.equal(covered, split.source.extent):
            # A loop of one iteration is kept as its variable. Of any other loop, a digit with a
            # single value is 0.
            if is_const_int(extent, 1) and not is_const_int(split.source.extent, 1):
                return const_like(extent, 0)
            return mul(floordiv(source, lower), scale)
        return mul(floordiv(floormod(source, covered), lower), scale)

    def equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether two extents are known to be the same."""
        return a is b or equal(self.analyzer, a, b)


@deep_recursion
def normalize_iter_map_to_expr(expr: PrimExpr) -> PrimExpr:
    """The plain expression of an IterMapExpr (or of an expression with some inside)."""
    return ToExpr(Analyzer()).convert(expr)
