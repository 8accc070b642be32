"""BindParams and BindSymbolicVars: parameters become constants, symbols become known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.relax.binding import bind_params, bind_symbolic_vars
from weft.relax.expr import Function, Var
from weft.relax.transform.passes import make_module_pass
from weft.support.errors import PassError


def BindParams(func_name: str, params: Mapping[Any, Any]) -> Any:  # noqa: N802 - TVM's name
    """The pass that binds parameters of one function, by name or Var, to arrays."""
    if not isinstance(params, Mapping):
        raise PassError(
            f"BindParams: expected a dict from parameters to arrays, got {type(params).__name__}"
        )

    def run(mod: IRModule, ctx: PassContext) -> IRModule:  # noqa: ARG001 - a pass
        func = _function(mod, func_name, "BindParams")
        known = {param.name_hint for param in func.params}
        unknown = [key for key in params if not isinstance(key, Var) and key not in known]
        if unknown:
            raise PassError(
                f"BindParams: {func_name} has no parameter {unknown[0]!r}; its parameters are: "
                f"{', '.join(sorted(known))}"
            )
        result = mod.clone()
        result.update_func(mod.get_global_var(func_name), bind_params(func, params))
        return result

    return make_module_pass("BindParams", run)


def _function(mod: IRModule, name: str, what: str) -> Function:
    func = mod[name]
    if not isinstance(func, Function):
        raise PassError(f"{what}: {name} is a {type(func).__name__}, expected a graph function")
    return func


def BindSymbolicVars(  # noqa: N802 - TVM's name
    binding_map: Mapping[Any, Any], func_name: str | None = None
) -> Any:
    """The pass that replaces symbolic variables, in one function or in all graph functions."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:  # noqa: ARG001 - a pass
        result = mod.clone()
        for gvar, func in mod.functions.items():
            if isinstance(func, Function) and func_name in (None, gvar.name_hint):
                result.update_func(gvar, bind_symbolic_vars(func, binding_map))
        return result

    return make_module_pass("BindSymbolicVars", run)
