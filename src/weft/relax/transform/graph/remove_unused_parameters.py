"""RemoveUnusedParameters: private functions no longer take what they do not use.

Before: ``main(a, b): return f(a, b)`` and a private ``f(a, b): return a``. After: ``main(a, b):
return f(a)`` and ``f(a): return a``. If only an unused parameter defines a symbolic variable that
the body needs, the variable itself becomes a parameter (``param_n: R.Prim(value="n")``), provided
that its value is known at every call.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar, PrimExpr
from weft.ir.module import IRModule
from weft.ir.transform import define_module_pass
from weft.relax.analysis.variables import free_symbolic_vars, free_vars
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Function, PrimValue, Var
from weft.relax.expr_functor import PyExprVisitor
from weft.relax.ir.lattice import match_params
from weft.relax.struct_info import PrimStructInfo
from weft.relax.transform.graph.private_functions import (
    Change,
    change_signatures,
    private_functions,
)
from weft.tir.expr import Var as TirVar


class _Calls(PyExprVisitor):
    """Collects the calls of each function."""

    def __init__(self) -> None:
        self.found: dict[str, list[Call]] = {}

    def visit_call_(self, op: Call) -> None:
        if isinstance(op.op, GlobalVar):
            self.found.setdefault(op.op.name_hint, []).append(op)
        super().visit_call_(op)


def _symbol_values(func: Function, call: Call) -> dict[TirVar, PrimExpr]:
    """The values at a call of the symbolic variables that the parameters define."""
    params = [param.struct_info for param in func.params]
    return match_params(params, [arg.struct_info for arg in call.args])


def _with_params(func: Function, params: list[Var]) -> Function:
    """The function with other parameters; ``num_input`` counts the inputs that are left."""
    attrs = func.attrs
    shortened = Function(params, func.body, func.ret_struct_info, func.is_pure, attrs, func.span)
    count = attrs.get("num_input")
    if count is None:
        return shortened
    kept = [param for param in func.params[: int(count)] if param in set(params)]
    return shortened.with_attr("num_input", len(kept))


def _without_unused(func: Function, calls: list[Call]) -> Change | None:
    """The function without unused parameters, or None if it has none or needs them all."""
    used = set(free_vars(func.body))
    kept = [index for index, param in enumerate(func.params) if param in used]
    if len(kept) == len(func.params):
        return None
    params = [func.params[index] for index in kept]
    symbols = [*free_symbolic_vars(_with_params(func, params))]
    symbols.reverse()  # TVM 0.20 puts the last one first
    if any(symbol not in _symbol_values(func, call) for call in calls for symbol in symbols):
        return None
    params += [Var(f"param_{symbol.name}", PrimStructInfo(value=symbol)) for symbol in symbols]

    def rewrite_call(
        builder: BlockBuilder,  # noqa: ARG001 - the signature of Change.rewrite_call
        callee: GlobalVar,
        call: Call,
    ) -> Call:
        values = _symbol_values(func, call) if symbols else {}
        args = [call.args[index] for index in kept]
        args += [PrimValue(values[symbol]) for symbol in symbols]
        return Call(callee, args, call.attrs, call.sinfo_args, call.span)

    return Change(_with_params(func, params), rewrite_call)


def remove_unused_parameters(mod: IRModule) -> IRModule:
    """The module whose private functions take only what they use; the same if all do."""
    candidates = private_functions(mod)
    if not candidates:
        return mod
    calls = _Calls()
    for func in mod.functions.values():
        if isinstance(func, Function):
            calls.visit_expr(func)
    changes = {}
    for name, func in candidates.items():
        change = _without_unused(func, calls.found.get(name, []))
        if change is not None:
            changes[name] = change
    return change_signatures(mod, changes)


RemoveUnusedParameters = define_module_pass("RemoveUnusedParameters", remove_unused_parameters)
