"""UpdateParamStructInfo: gives parameters other struct infos, and infers all others again.

Before: ``main(x: R.Tensor([16]), w: R.Tensor([32, 16])): return R.matmul(w, x)``, a vector of 32.
After, with a function that returns ``R.Tensor([64, 16])`` for ``w``: a vector of 64. An operator
that does not accept its new arguments raises its usual error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.ir.expr import GlobalVar
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import define_module_pass
from weft.relax.analysis.variables import all_global_vars
from weft.relax.expr import Function, Var
from weft.relax.expr_functor import PyExprMutator
from weft.relax.struct_info import FuncStructInfo, StructInfo
from weft.support.errors import PassError


class _Updater(PyExprMutator):
    """Rewrites functions, callees before callers."""

    def __init__(self, mod: IRModule, sinfo_func: Callable[[Var], StructInfo | None]) -> None:
        super().__init__()
        self.sinfo_func = sinfo_func
        self.functions = {gvar.name_hint: func for gvar, func in mod.functions.items()}
        self.renewed: dict[str, GlobalVar] = {}

    def run(self) -> None:
        """Rewrite every graph function."""
        before = {name: f for name, f in self.functions.items() if isinstance(f, Function)}
        for name, func in before.items():
            params = [self.updated_param(param) for param in func.params]
            if any(new is not old for new, old in zip(params, func.params, strict=True)):
                infos = [param.struct_info for param in params]
                self.renew(name, FuncStructInfo(infos, func.struct_info.ret, func.is_pure))
        for name in _callees_first(before):
            rewritten = self.functions[name] = self.visit_expr(before[name])
            if rewritten.struct_info != before[name].struct_info:
                self.renew(name, rewritten.struct_info)

    def renew(self, name: str, info: StructInfo) -> None:
        """Make later calls of a function see its new struct info."""
        self.renewed.setdefault(name, GlobalVar(name)).struct_info = info

    def updated_param(self, param: Var) -> Var:
        """The parameter with the struct info that the user's function returns for it."""
        if param not in self._var_remap:
            info = self.sinfo_func(param)
            if not isinstance(info, StructInfo | None):
                raise PassError(
                    "UpdateParamStructInfo: expected the function to return struct info or None, "
                    f"got {type(info).__name__} for {param.name_hint}"
                )
            self.set_var_remap(param.vid, self.with_struct_info(param, info))
        renewed_param: Var = self.get_var_remap(param.vid)
        return renewed_param

    def visit_function_(self, op: Function) -> Function:
        for param in op.params:
            self.updated_param(param)
        return expect(super().visit_function_(op), Function)

    def visit_var_def_(self, var: Var) -> Var:
        definition: Var = self.get_var_remap(var.vid)
        return definition

    def visit_global_var_(self, op: GlobalVar) -> GlobalVar:
        return self.renewed.get(op.name_hint, op)


def _callees_first(functions: Mapping[str, Function]) -> list[str]:
    """The functions in an order in which callees come before callers (except in cycles)."""
    order: dict[str, None] = {}
    started: set[str] = set()
    todo = [*functions][::-1]
    while todo:
        name = todo[-1]
        if name in started:
            order[todo.pop()] = None
            continue
        started.add(name)
        callees = [gvar.name_hint for gvar in all_global_vars(functions[name])]
        todo += [callee for callee in callees if callee in functions and callee not in started]
    return [*order]


def update_param_struct_info(
    mod: IRModule, sinfo_func: Callable[[Var], StructInfo | None]
) -> IRModule:
    """The module with new struct infos, callers included; the same object if nothing changes."""
    updater = _Updater(mod, sinfo_func)
    updater.run()
    updated = {
        updater.renewed.get(gvar.name_hint, gvar): updater.functions[gvar.name_hint]
        for gvar in mod.functions
    }
    if all(func is old for func, old in zip(updated.values(), mod.functions.values(), strict=True)):
        return mod
    return IRModule(updated, None, mod.attrs, mod.global_infos)


UpdateParamStructInfo = define_module_pass(
    "UpdateParamStructInfo", update_param_struct_info, opt_level=1
)
