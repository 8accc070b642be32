"""MergeBranches: neighbours under the same condition become one branch.

Before::

    if 2 <= i: s[0] = s[0] + x[i] * w[0]
    if 2 <= i: s[1] = s[1] + x[i] * w[1]

After::

    if 2 <= i:
        s[0] = s[0] + x[i] * w[0]
        s[1] = s[1] + x[i] * w[1]

An unrolled loop leaves such branches if a condition does not depend on it. Conditions that read
memory stay, since what they read may change in between. Runs after unrolling.
"""

from __future__ import annotations

import operator

from weft.arith.deep_equal import expr_deep_equal
from weft.ir.functor import contains
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call
from weft.tir.function import PrimFunc
from weft.tir.stmt import IfThenElse, SeqStmt, Stmt, seq
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body


class _Merger(StmtMutator):
    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        """Join each branch with the one before it, if both are taken together."""
        merged: list[Stmt] = []
        for item in [self.visit(item) for item in stmt.seq]:
            before = merged[-1] if merged else None
            both = None if before is None else _merged(before, item)
            if both is None:
                merged.append(item)
            else:
                merged[-1] = both
        is_same = len(merged) == len(stmt.seq) and all(map(operator.is_, merged, stmt.seq))
        return stmt if is_same else seq(*merged)


def _merged(before: Stmt, item: Stmt) -> IfThenElse | None:
    """Two branches as one; None if their conditions differ, or the first one may change them."""
    if not isinstance(before, IfThenElse) or not isinstance(item, IfThenElse):
        return None
    if before.else_case is not None or item.else_case is not None:
        return None
    if contains(before.condition, (BufferLoad, Call)):
        return None
    if not expr_deep_equal(before.condition, item.condition):
        return None
    return before.with_(then_case=seq(before.then_case, item.then_case))


def merge_branches(func: PrimFunc) -> PrimFunc:
    """Merge neighbours under the same condition in a function."""
    return rewrite_body(func, _Merger())


MergeBranches = define_pass("MergeBranches", merge_branches)
