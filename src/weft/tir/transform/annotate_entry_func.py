"""AnnotateEntryFunc: the only function of a module is its entry (``tir.is_entry_func``)."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.ir.transform import ModulePass, Pass, PassContext, PassInfo
from weft.tir.function import PrimFunc


def annotate_entry_func(mod: IRModule) -> IRModule:
    """Mark the single PrimFunc of the module."""
    functions = [(v, f) for v, f in mod.functions.items() if isinstance(f, PrimFunc)]
    if len(functions) != 1 or "tir.is_entry_func" in functions[0][1].attrs:
        return mod
    result = mod.clone()
    result[functions[0][0]] = functions[0][1].with_attr("tir.is_entry_func", True)
    return result


def AnnotateEntryFunc() -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.AnnotateEntryFunc``."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return annotate_entry_func(mod)

    return ModulePass(run, PassInfo(0, "tir.AnnotateEntryFunc"))
