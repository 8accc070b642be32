"""NormalizeGlobalVar: gives each public function its ``global_symbol`` as name.

Before: a private ``f`` and a public ``f1`` whose ``global_symbol`` is "f". After: the public one is
``f`` and the private one ``f1``. Calls are rewritten.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar
from weft.ir.module import IRModule, rename_functions
from weft.ir.transform import define_module_pass
from weft.relax.builder.module_builder import NameSupply
from weft.support.errors import IRValueError


def normalize_global_var(mod: IRModule) -> IRModule:
    """The module with functions renamed where needed; the same if none is."""
    public = {
        gvar: str(func.attrs["global_symbol"])
        for gvar, func in mod.functions.items()
        if "global_symbol" in func.attrs
    }
    if all(gvar.name_hint == name for gvar, name in public.items()):
        return mod
    names = NameSupply()
    taken: dict[str, GlobalVar] = {}
    for gvar, name in public.items():
        if name in taken:
            raise IRValueError(
                "NormalizeGlobalVar: expected one public function a name, but both "
                f"{taken[name].name_hint} and {gvar.name_hint} have the global_symbol {name!r}"
            )
        taken[name] = gvar
        names.fresh(name)
    renamed = dict(public)
    for gvar in mod.functions:
        if gvar not in public:
            renamed[gvar] = names.fresh(gvar.name_hint)
    return rename_functions(
        mod, {gvar: _named(gvar, name) for gvar, name in renamed.items() if gvar.name_hint != name}
    )


def _named(gvar: GlobalVar, name: str) -> GlobalVar:
    renamed = GlobalVar(name, gvar.type_)
    renamed.struct_info = gvar.struct_info
    return renamed


NormalizeGlobalVar = define_module_pass("NormalizeGlobalVar", normalize_global_var)
