"""RemoveNoOp removes statements without effect.

These are loops that run zero times, loops and branches with an empty body, and values that are
evaluated though nothing uses them.
"""

from __future__ import annotations

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, Div, FloorDiv, FloorMod, Mod, is_call
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.stmt import (
    Allocate,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body


def is_no_op(stmt: Stmt | None) -> bool:
    """Whether the statement does nothing: it evaluates a constant."""
    return stmt is None or (isinstance(stmt, Evaluate) and isinstance(stmt.value, IntImm))


def is_assumption(value: PrimExpr) -> bool:
    """Whether the expression is a call of ``T.assume``."""
    return is_call(value, "assume")


def has_effect(expr: PrimExpr) -> bool:
    """Whether evaluating ``expr`` can be observed: it calls something impure, or may fault."""
    if collect(expr, (BufferLoad, Div, Mod, FloorDiv, FloorMod)):
        return True
    return any(
        effect_of(call) >= CallEffectKind.ReadState and effect_of(call) != CallEffectKind.EmbedInfo
        for call in collect(expr, Call)
    )


class _Remove(Mutator):
    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        return expr

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        return store

    def visit_For(self, loop: For) -> Stmt:
        if isinstance(loop.extent, IntImm) and loop.extent.value <= 0:
            return Evaluate(0)
        body = self.visit(loop.body)
        return Evaluate(0) if is_no_op(body) else loop.with_(body=body)

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        then_case, else_case = self.visit(stmt.then_case), self.visit(stmt.else_case)
        if is_no_op(else_case):
            else_case = None
        if is_no_op(then_case) and else_case is None:
            return self.visit_Evaluate(Evaluate(stmt.condition))
        return stmt.with_(then_case=then_case, else_case=else_case)

    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        kept = is_assumption(stmt.value) or has_effect(stmt.value)
        return stmt if kept else Evaluate(0)

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        visited = [self.visit(item) for item in stmt.seq]
        kept = [item for item in visited if not is_no_op(item)]
        if len(kept) == len(visited):
            unchanged = all(new is old for new, old in zip(visited, stmt.seq, strict=True))
            return stmt if unchanged else seq(*kept)
        return seq(*kept)

    def visit_LetStmt(self, stmt: LetStmt) -> Stmt:
        body = self.visit(stmt.body)
        if is_no_op(body):
            return self.visit_Evaluate(Evaluate(stmt.value))
        return stmt.with_(body=body)

    def visit_Allocate(self, stmt: Allocate) -> Stmt:
        body = self.visit(stmt.body)
        return body if is_no_op(body) else stmt.with_(body=body)

    def visit_DeclBuffer(self, stmt: DeclBuffer) -> Stmt:
        body = self.visit(stmt.body)
        return body if is_no_op(body) else stmt.with_(body=body)

    def visit_While(self, stmt: While) -> Stmt:
        return stmt.with_(body=self.visit(stmt.body))


def remove_no_op(func: PrimFunc) -> PrimFunc:
    """The function without statements that do nothing."""
    return rewrite_body(func, _Remove())


class _Forget(StmtMutator):
    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        return Evaluate(0) if is_assumption(stmt.value) else stmt


def remove_assume(func: PrimFunc) -> PrimFunc:
    """The function without ``T.assume``, and without the statements that have no effect then."""
    return remove_no_op(rewrite_body(func, _Forget()))


RemoveAssume = define_pass("RemoveAssume", remove_assume)


RemoveNoOp = define_pass("RemoveNoOp", remove_no_op)
