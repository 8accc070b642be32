"""ConvertForLoopsToSerial: parallel loops run serially, for targets without threads."""

from __future__ import annotations

from weft.tir.function import PrimFunc
from weft.tir.stmt import For, ForKind, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body


class _Serial(StmtMutator):
    def visit_For(self, loop: For) -> Stmt:
        kind = ForKind.SERIAL if loop.kind is ForKind.PARALLEL else loop.kind
        return loop.with_(kind=kind, body=self.visit(loop.body))


def convert_for_loops_to_serial(func: PrimFunc) -> PrimFunc:
    """The function with its parallel loops serial."""
    return rewrite_body(func, _Serial())


ConvertForLoopsToSerial = define_pass("ConvertForLoopsToSerial", convert_for_loops_to_serial)
