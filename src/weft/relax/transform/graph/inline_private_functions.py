"""InlinePrivateFunctions: replaces calls of private graph functions by their bodies.

Before: ``main(x): y = f(x); return y`` and a private ``f(x): return R.exp(x)``. After: ``main(x):
y = R.exp(x); return y``. A function stays if it is recursive, if it is used other than by a call
(in a closure), or if it branches and is called in a dataflow block.
"""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.ir.transform import define_module_pass
from weft.relax.analysis.purity import detect_recursion
from weft.relax.analysis.variables import all_global_vars
from weft.relax.expr import Function
from weft.relax.rewrite.binding import inline_functions
from weft.relax.rewrite.canonical import canonicalize_bindings
from weft.relax.transform.graph.private_functions import private_functions


def inline_private_functions(mod: IRModule) -> IRModule:
    """The module without private functions that can be inlined; the same if there are none."""
    recursive = {gvar.name_hint for group in detect_recursion(mod) for gvar in group}
    inlined = {name: func for name, func in private_functions(mod).items() if name not in recursive}
    if not inlined:
        return mod
    changed = {
        gvar: _inlined(func, inlined) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    removable = set(inlined)
    waiting = [func for gvar, func in changed.items() if gvar.name_hint not in removable]
    while waiting:  # a call that cannot be inlined keeps its function, and the functions it calls
        func = waiting.pop()
        for gvar in all_global_vars(func) if isinstance(func, Function) else ():
            if gvar.name_hint in removable:
                removable.remove(gvar.name_hint)
                waiting.append(changed[gvar])
    functions = {gvar: func for gvar, func in changed.items() if gvar.name_hint not in removable}
    return IRModule(functions, None, mod.attrs, mod.global_infos)


def _inlined(func: Function, callees: dict[str, Function]) -> Function:
    inlined = inline_functions(func, callees)
    return func if inlined is func else canonicalize_bindings(inlined)


InlinePrivateFunctions = define_module_pass("InlinePrivateFunctions", inline_private_functions)
