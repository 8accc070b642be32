"""The decorator and the constructor of passes over PrimFuncs."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr
from weft.ir.functor import Mutator
from weft.ir.transform import FunctionPass, PassContext, PassInfo, function_pass_decorator
from weft.support.recursion import deep_recursion
from weft.tir.function import PrimFunc
from weft.tir.stmt import SeqStmt, Stmt, seq

prim_func_pass = function_pass_decorator(PrimFunc)
"""``@prim_func_pass(opt_level=0)`` on ``(func, mod, ctx) -> func`` or on a class with
``transform_function``."""


def make_pass(
    name: str, function: Callable[[PrimFunc], PrimFunc], opt_level: int = 0
) -> FunctionPass:
    """The pass ``tir.<name>`` that applies ``function`` to every PrimFunc."""
    entry = deep_recursion(function)

    def run(func: PrimFunc, mod: object, ctx: PassContext) -> PrimFunc:
        return entry(func)

    return FunctionPass(run, PassInfo(opt_level, f"tir.{name}"), PrimFunc)


class StmtMutator(Mutator):
    """A mutator under which a statement may become several: sequences stay flat."""

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        """Visit the items; a sequence among the results joins this one."""
        visited = [self.visit(item) for item in stmt.seq]
        if all(new is old for new, old in zip(visited, stmt.seq, strict=True)):
            return stmt
        return seq(*visited)


class StmtOnlyMutator(StmtMutator):
    """A mutator of statements that leaves expressions as they are."""

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        """The expression itself."""
        return expr


def rewrite_body(func: PrimFunc, mutator: Mutator) -> PrimFunc:
    """The function with its body rewritten."""
    return func.with_(body=mutator.visit(func.body))
