"""Private graph functions whose every use is a call in this module, so that both may change.

InlinePrivateFunctions, ExpandTupleArguments, RemoveUnusedOutputs and RemoveUnusedParameters change
a function together with all its callers. A function keeps its signature if it has a
``global_symbol`` (it is visible from outside) or if a closure or an operator refers to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Function
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.relax.rewrite.canonical import canonicalize_bindings


class _Named(PyExprVisitor):
    """The functions that are referred to other than as the callee of a call."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_call_(self, op: Call) -> None:
        if not isinstance(op.op, GlobalVar):
            self.visit_expr(op.op)
        for arg in op.args:
            self.visit_expr(arg)

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.found.add(op.name_hint)


def private_functions(mod: IRModule) -> dict[str, Function]:
    """The private graph functions of the module that are only called, by name."""
    private = {
        gvar.name_hint: func
        for gvar, func in mod.functions.items()
        if isinstance(func, Function) and "global_symbol" not in func.attrs
    }
    if not private:
        return {}
    named = _Named()
    for func in mod.functions.values():
        if isinstance(func, Function):
            named.visit_expr(func)
    return {name: func for name, func in private.items() if name not in named.found}


@dataclass(frozen=True)
class Change:
    """A new version of a function, and how its calls are rewritten.

    ``rewrite_call(builder, callee, call)`` returns the new expression; it may emit bindings first.
    """

    func: Function
    rewrite_call: Callable[[BlockBuilder, GlobalVar, Call], RelaxExpr]


class _Callers(PyExprMutator):
    def __init__(self, mod: IRModule, changes: Mapping[str, Change]) -> None:
        super().__init__(mod)
        self.changes = changes
        self.callees: dict[str, GlobalVar] = {}
        for name, change in changes.items():
            self.callees[name] = GlobalVar(name)
            self.callees[name].struct_info = change.func.struct_info

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = expect(super().visit_call_(op), Call)
        name = call.op.name_hint if isinstance(call.op, GlobalVar) else ""
        if name not in self.changes:
            return call
        return self.changes[name].rewrite_call(self.builder_, self.callees[name], call)


def change_signatures(mod: IRModule, changes: Mapping[str, Change]) -> IRModule:
    """The module with changed functions and rewritten callers, both without dead code."""
    if not changes:
        return mod
    changes = {
        name: Change(_cleaned(change.func), change.rewrite_call) for name, change in changes.items()
    }
    callers = _Callers(mod, changes)
    functions: dict[GlobalVar, BaseFunc] = {}
    for gvar, func in mod.functions.items():
        if not isinstance(func, Function):
            functions[gvar] = func
            continue
        change = changes.get(gvar.name_hint)
        before = func if change is None else change.func
        rewritten = callers.visit_expr(before)
        functions[callers.callees.get(gvar.name_hint, gvar)] = (
            before if rewritten is before else _cleaned(rewritten)
        )
    return IRModule(functions, None, mod.attrs, mod.global_infos)


def _cleaned(func: Function) -> Function:
    return remove_all_unused(canonicalize_bindings(func))
