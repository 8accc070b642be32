"""SkipAssert: programs without their asserts.

Before: ``assert n > 0, "n"; A[0] = n``. After: ``A[0] = n``. Checks that weft adds itself stay:
that an index lies in its buffer, that no integer is divided by 0.
"""

from __future__ import annotations

from weft.ir.transform import PassContext
from weft.tir.function import PrimFunc
from weft.tir.stmt import AssertStmt, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body


class _Skip(StmtMutator):
    def visit_AssertStmt(self, stmt: AssertStmt) -> Stmt:
        return self.visit(stmt.body)


def skip_asserts(func: PrimFunc, always: bool = True) -> PrimFunc:
    """The function without asserts; itself unless ``always`` or ``tir.disable_assert`` is set."""
    applies = always or PassContext.current().config.get("tir.disable_assert", False)
    return rewrite_body(func, _Skip()) if applies else func


SkipAssert = define_pass("SkipAssert", skip_asserts)
