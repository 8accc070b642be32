"""AttachGlobalSymbol: every function of the module gets its name as ``global_symbol``.

If the module has the attribute ``system_lib_prefix``, PrimFuncs are renamed to start with it.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar
from weft.ir.module import IRModule, rename_functions, with_functions
from weft.ir.transform import define_module_pass
from weft.tir.function import PrimFunc


def attach_global_symbol(mod: IRModule) -> IRModule:
    """The module with a ``global_symbol`` on each function; the same object if all have it."""
    prefix = str(mod.attrs.get("system_lib_prefix") or "")
    renamed = _prefixed(mod, prefix) if prefix else {}
    mod = rename_functions(mod, renamed) if renamed else mod
    functions = {}
    for gvar, func in mod.functions.items():
        if func.attrs.get("global_symbol") != gvar.name_hint:
            func = func.with_attr("global_symbol", gvar.name_hint)
        functions[gvar] = func
    return with_functions(mod, functions)


def _prefixed(mod: IRModule, prefix: str) -> dict[GlobalVar, GlobalVar]:
    """The new variables of PrimFuncs that have no ``global_symbol`` yet."""
    renamed: dict[GlobalVar, GlobalVar] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, PrimFunc) and "global_symbol" not in func.attrs:
            renamed[gvar] = GlobalVar(prefix + gvar.name_hint, gvar.type_)
            renamed[gvar].struct_info = gvar.struct_info
    return renamed


AttachGlobalSymbol = define_module_pass("AttachGlobalSymbol", attach_global_symbol)
