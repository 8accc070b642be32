"""AttachGlobalSymbol: every function of the module gets its name as ``global_symbol``."""

from __future__ import annotations

from typing import Any

from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.relax.transform.passes import make_module_pass


def attach_global_symbol(mod: IRModule, ctx: PassContext) -> IRModule:  # noqa: ARG001 - a pass
    """The module with all functions visible by name; the same if they are already."""
    functions = {}
    for gvar, func in mod.functions.items():
        if func.attrs.get("global_symbol") != gvar.name_hint:
            func = func.with_attr("global_symbol", gvar.name_hint)
        functions[gvar] = func
    if all(func is mod.functions[gvar] for gvar, func in functions.items()):
        return mod
    return IRModule(functions, None, mod.attrs, mod.global_infos)


def AttachGlobalSymbol() -> Any:  # noqa: N802 - TVM's name
    """The pass that makes every function visible from outside."""
    return make_module_pass("AttachGlobalSymbol", attach_global_symbol)
