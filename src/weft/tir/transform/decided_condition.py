"""Replaces conditions whose value a pass knows by constants; folds ``and``, ``or`` around them."""

from __future__ import annotations

from weft.arith import fold
from weft.ir.expr import IntImm, PrimExpr
from weft.support.dtype import DataType
from weft.tir.expr import And, Or
from weft.tir.transform.prim_func_pass import StmtMutator


class DecidedConditions(StmtMutator):
    """Replaces expressions for which ``is_decided`` holds by ``value``; subclasses define it."""

    def __init__(self, value: bool) -> None:
        super().__init__()
        self.value = IntImm(DataType("bool"), int(value))

    def is_decided(self, expr: PrimExpr) -> bool:
        """Whether ``expr`` has the value."""
        raise NotImplementedError

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        """The value if it is decided, else the expression with its operands visited."""
        return self.value if self.is_decided(expr) else self.visit_default(expr)

    def visit_And(self, expr: And) -> PrimExpr:
        """Fold where an operand became a constant."""
        new = self.visit_PrimExpr(expr)
        return fold.and_(new.a, new.b) if new is not expr and isinstance(new, And) else new

    def visit_Or(self, expr: Or) -> PrimExpr:
        """Fold where an operand became a constant."""
        new = self.visit_PrimExpr(expr)
        return fold.or_(new.a, new.b) if new is not expr and isinstance(new, Or) else new
