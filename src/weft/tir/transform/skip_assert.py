"""SkipAssert: programs without their asserts.

Before: ``assert n > 0, "n"; A[0] = n``. After: ``A[0] = n``. Checks that weft adds itself stay:
that an index lies in its buffer, that no integer is divided by 0.
"""

from __future__ import annotations

from weft.ir.transform import Pass, PassContext
from weft.tir.function import PrimFunc
from weft.tir.stmt import AssertStmt, Stmt
from weft.tir.transform.prim_func_pass import StmtOnlyMutator, make_pass, rewrite_body


class _Skip(StmtOnlyMutator):
    def visit_AssertStmt(self, stmt: AssertStmt) -> Stmt:
        return self.visit(stmt.body)


def SkipAssert(always: bool = True) -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.SkipAssert``.

    Unless ``always``, it runs only where the option ``tir.disable_assert`` says so.
    """

    def run(func: PrimFunc) -> PrimFunc:
        applies = always or PassContext.current().config.get("tir.disable_assert", False)
        return rewrite_body(func, _Skip()) if applies else func

    return make_pass("SkipAssert", run)
