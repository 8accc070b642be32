"""AnnotateEntryFunc: the only function of a module is its entry (``tir.is_entry_func``)."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.ir.transform import define_module_pass
from weft.tir.function import PrimFunc


def annotate_entry_func(mod: IRModule) -> IRModule:
    """Mark the single PrimFunc of the module."""
    functions = [(v, f) for v, f in mod.functions.items() if isinstance(f, PrimFunc)]
    if len(functions) != 1 or "tir.is_entry_func" in functions[0][1].attrs:
        return mod
    result = mod.clone()
    result[functions[0][0]] = functions[0][1].with_attr("tir.is_entry_func", True)
    return result


AnnotateEntryFunc = define_module_pass("tir.AnnotateEntryFunc", annotate_entry_func)
