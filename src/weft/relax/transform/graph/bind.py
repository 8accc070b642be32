"""BindParams replaces parameters by constants, BindSymbolicVars symbols by expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.ir.expr import GlobalVar, PrimExpr
from weft.ir.module import IRModule
from weft.ir.transform import Pass, define_module_pass
from weft.relax.expr import Function, Var
from weft.relax.rewrite.binding import bind_params, bind_symbolic_vars, function_symbols
from weft.support.errors import IRValueError, PassError
from weft.tir.expr import Var as TirVar

Symbols = Mapping[str | TirVar, PrimExpr | int]
"""Symbolic variable, or its name -> what replaces it."""


def BindParams(func_name: str, params: Mapping[Any, object]) -> Pass:  # noqa: N802 - TVM's name
    """The pass that binds parameters of one function, by name or Var, to arrays."""
    if not isinstance(params, Mapping):
        raise PassError(
            f"BindParams: expected a dict from parameters to arrays, got {type(params).__name__}"
        )

    def run(mod: IRModule) -> IRModule:
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

    return define_module_pass("BindParams", run)()


def _function(mod: IRModule, name: str, what: str) -> Function:
    func = mod[name]
    if not isinstance(func, Function):
        raise PassError(f"{what}: {name} is a {type(func).__name__}, expected a graph function")
    return func


def _with_symbols_bound(
    mod: IRModule, binding_map: Symbols, func_name: str | None = None
) -> IRModule:
    """The module with symbolic variables replaced, in one function or in all graph functions."""
    if func_name is not None:
        func = _function(mod, func_name, "BindSymbolicVars")
        targets = {mod.get_global_var(func_name): (func, binding_map)}
    else:
        targets = _users(mod, binding_map)
    result = mod.clone()
    for gvar, (func, bound) in targets.items():
        result.update_func(gvar, bind_symbolic_vars(func, bound))
    return result if targets else mod


BindSymbolicVars = define_module_pass("BindSymbolicVars", _with_symbols_bound)


def _users(mod: IRModule, binding_map: Symbols) -> dict[GlobalVar, tuple[Function, Symbols]]:
    """GlobalVar -> (graph function, the part of the map that it uses).

    A key that no function uses is an error.
    """
    users: dict[GlobalVar, tuple[Function, Symbols]] = {}
    unused = dict(binding_map)
    names: dict[str, None] = {}
    for gvar, func in mod.functions.items():
        if not isinstance(func, Function):
            continue
        symbols = function_symbols(func)
        names.update(dict.fromkeys(symbol.name for symbol in symbols))
        known = {*symbols, *[symbol.name for symbol in symbols]}
        bound = {key: value for key, value in binding_map.items() if key in known}
        for key in bound:
            unused.pop(key, None)
        if bound:
            users[gvar] = (func, bound)
    for key in unused:
        if isinstance(key, str):
            raise IRValueError(
                f"BindSymbolicVars: no symbolic variable has the name {key!r}; there are: "
                f"{', '.join(names) or 'none'}"
            )
        raise IRValueError(f"BindSymbolicVars: no function of the module uses {key.name}")
    return users
