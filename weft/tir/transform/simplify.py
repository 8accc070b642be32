"""Simplify: expressions in their simplest form, branches whose condition is known resolved.

Loop ranges, let values and enclosing conditions are known to the analyzer while it works.
"""

from __future__ import annotations

from typing import Any

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.transform import Pass
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    AssertStmt,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
)
from weft.tir.transform.prim_func_pass import StmtMutator, make_pass, rewrite_body


class _Simplify(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()

    def visit_Buffer(self, buffer: Any) -> Any:
        return buffer

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, Var | IntImm):
            return expr
        return self.analyzer.simplify(expr)

    def visit_For(self, loop: For) -> Stmt:
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(low, extent), True)
        return loop.with_(min=low, extent=extent, body=self.visit(loop.body))

    def visit_Block(self, block: Block) -> Stmt:
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.analyzer.bind(axis.var, axis.dom, True)
        return self.visit_default(block)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        values, predicate = self.visit(realize.iter_values), self.visit(realize.predicate)
        with self.analyzer.constraint_scope(predicate):
            block = self.visit(realize.block)
        return realize.with_(iter_values=values, predicate=predicate, block=block)

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        value = self.visit(let.value)
        return let.with_(value=value, body=self.visit(let.body))

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        condition = self.visit(stmt.condition)
        if isinstance(condition, IntImm):
            if condition.value:
                return self.visit(stmt.then_case)
            return Evaluate(0) if stmt.else_case is None else self.visit(stmt.else_case)
        with self.analyzer.constraint_scope(condition):
            then_case = self.visit(stmt.then_case)
        else_case = stmt.else_case
        if else_case is not None:
            with self.analyzer.constraint_scope(op.logical_not(condition)):
                else_case = self.visit(else_case)
        return stmt.with_(condition=condition, then_case=then_case, else_case=else_case)

    def visit_AssertStmt(self, stmt: AssertStmt) -> Stmt:
        condition = self.visit(stmt.condition)
        with self.analyzer.constraint_scope(condition):
            return stmt.with_(condition=condition, body=self.visit(stmt.body))

    def visit_While(self, stmt: While) -> Stmt:
        condition = self.visit(stmt.condition)
        return stmt.with_(condition=condition, body=self.visit(stmt.body))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        indices, value = self.visit(store.indices), self.visit(store.value)
        return store.with_(indices=indices, value=value)


def simplify(func: PrimFunc) -> PrimFunc:
    """The function with simplified expressions."""
    return rewrite_body(func, _Simplify())


def Simplify() -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.Simplify``."""
    return make_pass("Simplify", simplify)
