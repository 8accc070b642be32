"""The decorator and the constructor of passes over PrimFuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from weft.ir.functor import Mutator
from weft.ir.transform import FunctionPass, PassInfo, function_pass_decorator, pass_constructor
from weft.tir.function import PrimFunc
from weft.tir.stmt import SeqStmt, Stmt, seq

P = ParamSpec("P")
prim_func_pass = function_pass_decorator(PrimFunc)
"""``@prim_func_pass(opt_level=0)`` on ``(func, mod, ctx) -> func`` or on a class with
``transform_function``."""


def define_pass(
    name: str, function: Callable[Concatenate[PrimFunc, P], PrimFunc], opt_level: int = 0
) -> Callable[P, FunctionPass]:
    """The constructor of the pass ``tir.<name>``, which runs ``function(func, ...)`` on PrimFuncs.

    It takes the further arguments of ``function``.
    """

    def as_pass(run: Callable[[PrimFunc], PrimFunc]) -> FunctionPass:
        info = PassInfo(opt_level, f"tir.{name}")
        return FunctionPass(lambda func, mod, ctx: run(func), info, PrimFunc)

    return pass_constructor(name, function, as_pass)


class StmtMutator(Mutator):
    """A mutator under which a statement may become several: sequences stay flat."""

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        """Visit the items; a sequence among the results joins this one."""
        visited = self.visit(stmt.seq)
        return stmt if visited is stmt.seq else seq(*visited)


def rewrite_body(func: PrimFunc, mutator: Mutator) -> PrimFunc:
    """The function with its body rewritten."""
    return func.with_(body=mutator.visit(func.body))
