"""AnnotateTIROpPattern: writes on each PrimFunc the pattern by which FuseOps decides.

Before: a PrimFunc ``relu``. After: the same with ``T.func_attr({"op_pattern": 0})``. An attribute
other than 0 that is already there stays. The patterns: ``weft.relax.analysis.op_pattern``.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule, with_functions
from weft.ir.transform import define_module_pass
from weft.relax.analysis.op_pattern import has_op_pattern, op_pattern
from weft.tir.function import PrimFunc


def annotate_op_patterns(mod: IRModule) -> IRModule:
    """The module with an attribute ``op_pattern`` on each PrimFunc."""
    functions: dict[GlobalVar, BaseFunc] = {
        gvar: _annotated(func) if isinstance(func, PrimFunc) else func
        for gvar, func in mod.functions.items()
    }
    return with_functions(mod, functions)


def _annotated(func: PrimFunc) -> PrimFunc:
    if has_op_pattern(func):
        return func
    kind = int(op_pattern(func))
    if func.attrs.get("op_pattern") == kind:
        return func
    return func.with_attr("op_pattern", kind)


AnnotateTIROpPattern = define_module_pass("AnnotateTIROpPattern", annotate_op_patterns)
