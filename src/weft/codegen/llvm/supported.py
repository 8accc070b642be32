"""Which operations a processor does in one instruction, so that lowering need not expand them."""

from __future__ import annotations

from weft.codegen.llvm.context import ModuleContext
from weft.codegen.llvm.convert import saturates
from weft.codegen.llvm.whole_registers import has_dot_four_bytes, has_lookup, has_scaleb
from weft.ir.expr import PrimExpr
from weft.tir.expr import Call, Cast, is_call


def is_supported(context: ModuleContext, expr: PrimExpr) -> bool:
    """Whether the target has an instruction that means exactly what ``expr`` means.

    ``weft.tir.lowering`` asks; it writes all else as TensorIR of simpler operations.
    """
    if isinstance(expr, Cast):
        return saturates(context, expr)
    if not isinstance(expr, Call):
        return False
    if is_call(expr, "fma"):
        return expr.dtype.bits in context.fused_bits
    if is_call(expr, "scaleb"):
        return has_scaleb(context, expr)
    if is_call(expr, "dot_four_bytes"):
        return has_dot_four_bytes(context, expr)
    return is_call(expr, "lookup") and has_lookup(context, expr)
