"""What a processor has instructions for, of all that ``weft.tir.lowering`` can write otherwise."""

from __future__ import annotations

from weft.codegen.llvm.context import ModuleContext
from weft.codegen.llvm.convert import saturates
from weft.codegen.llvm.whole_registers import has_lookup, has_scaleb
from weft.ir.expr import PrimExpr
from weft.tir.expr import Call, Cast
from weft.tir.lowering.facts import is_call


def is_supported(context: ModuleContext, expr: PrimExpr) -> bool:
    """Whether the target of a module has an instruction with the very meaning of ``expr``."""
    if isinstance(expr, Cast):
        return saturates(context, expr)
    if not isinstance(expr, Call):
        return False
    if is_call(expr, "fma"):
        return context.fuses
    if is_call(expr, "scaleb"):
        return has_scaleb(context, expr)
    return is_call(expr, "lookup") and has_lookup(context, expr)
