"""DeadCodeElimination: removes unused bindings, and functions that no entry function reaches.

Entry functions are those named by the caller and those with a ``global_symbol`` (visible from
outside). If a function is called that the module does not have, all functions stay: the module is
then a part of another one (as in ``ApplyPassToFunction``), and the missing function may call any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.functor import collect
from weft.ir.module import IRModule, with_functions
from weft.ir.transform import define_module_pass
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.expr import Function
from weft.support.errors import PassError
from weft.tir.expr import Call as TirCall
from weft.tir.function import PrimFunc


def eliminate_dead_code(mod: IRModule, entry_functions: Sequence[str] | None = None) -> IRModule:
    """The module with the functions and bindings that its entry functions need."""
    functions: dict[GlobalVar, BaseFunc] = {
        gvar: remove_all_unused(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    entries = _entries(mod, entry_functions)
    if entries:
        reached = _reach(entries, {gvar.name_hint: func for gvar, func in functions.items()})
        if all(name in mod for name in reached):
            functions = {gvar: f for gvar, f in functions.items() if gvar.name_hint in reached}
    return with_functions(mod, functions)


def _entries(mod: IRModule, names: Sequence[str] | None) -> list[str]:
    if names:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise PassError(
                f"DeadCodeElimination: expected a list of functions' names, got {names!r}"
            )
        for name in names:
            if name not in mod:
                raise PassError(f"DeadCodeElimination: the module has no function {name!r}")
    functions = mod.functions.items()
    public = [gvar.name_hint for gvar, func in functions if "global_symbol" in func.attrs]
    return [*(names or ()), *public]


def _reach(entries: list[str], functions: Mapping[str, BaseFunc]) -> set[str]:
    reached: set[str] = set()
    todo = list(entries)
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        todo.extend(_callees(functions.get(name)))
    return reached


def _callees(func: BaseFunc | None) -> list[str]:
    """The names of the functions that a function calls or refers to."""
    if isinstance(func, PrimFunc):  # the callee of a TensorIR call is no child of it
        called = [call.op for call in collect(func, TirCall)]
        return [op.name_hint for op in called if isinstance(op, GlobalVar)]
    return [gvar.name_hint for gvar in collect(func, GlobalVar)]


DeadCodeElimination = define_module_pass("DeadCodeElimination", eliminate_dead_code, opt_level=1)
