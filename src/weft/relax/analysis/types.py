"""Checks that the struct infos of a graph agree with each other and with the operators' rules.

A variable, the value it binds and the callee's signature each carry struct info. A pass, or a user
who replaces one function of a module, may change one of them and forget the others; native code
would then read a tensor of one type as another. Only contradictions are reported: two infos that no
value can have both. ``type_problem`` compares the infos that are stored; with ``reinfer`` it also
runs the rule of every operator again (``PassContext(verify=True)`` does).
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.relax.analysis.bindings import bindings_in_order
from weft.relax.block_builder import BlockBuilder
from weft.relax.builder.normalize import infer_call
from weft.relax.expr import Binding, Call, Function, MatchCast
from weft.relax.ir.lattice import (
    BaseCheckResult,
    derive_call_ret_struct_info,
    struct_info_base_check,
)
from weft.relax.struct_info import FuncStructInfo, StructInfo
from weft.support.errors import TVMError, VerifyError
from weft.support.recursion import deep_recursion


def verify_calls(module: IRModule) -> None:
    """Raise VerifyError where calls, bindings or results of the graphs are of wrong types."""
    problem = type_problem(module)
    if problem is not None:
        raise VerifyError(problem)


@deep_recursion
def type_problem(module: IRModule, reinfer: bool = False) -> str | None:
    """The first disagreement in the module's graph functions as a text, or None."""
    for gvar, func in module.functions.items():
        if not isinstance(func, Function):
            continue
        for binding in bindings_in_order(func):
            problem = binding_problem(binding, module, reinfer)
            if problem is not None:
                return f"{gvar.name_hint}: {problem}"
        if _differ(func.ret_struct_info, func.body.struct_info):
            return (
                f"{gvar.name_hint}: expected a result of type {func.ret_struct_info}, as the "
                f"function says, got {func.body.struct_info}; whoever changed the body has to "
                "give it as ret_struct_info, too"
            )
    return None


def binding_problem(binding: Binding, module: IRModule | None, reinfer: bool = False) -> str | None:
    """What is wrong with the types of one binding, or None."""
    if isinstance(binding, MatchCast):
        return None
    value, var = binding.value, binding.var
    if isinstance(value, Call):
        problem = _call_problem(value, module, reinfer)
        if problem is not None:
            return f"the value of {var.name_hint}: {problem}"
    if _differ(var.struct_info, value.struct_info):
        return (
            f"variable {var.name_hint}: expected the type of its value, {value.struct_info}, "
            f"got {var.struct_info}"
        )
    return None


def _call_problem(call: Call, module: IRModule | None, reinfer: bool) -> str | None:
    """How a call disagrees with the callee."""
    op = call.op
    if isinstance(op, Op):
        form_problem = op.get_attr("form_problem")
        problem = None if form_problem is None else form_problem(call)
        if problem is not None:
            return str(problem)
    try:
        if isinstance(op, GlobalVar) and module is not None and op in module:
            signature = getattr(module[op], "struct_info", None)
            if not isinstance(signature, FuncStructInfo) or call.sinfo_args:
                return None
            derived, name = derive_call_ret_struct_info(signature, call), op.name_hint
        elif reinfer and isinstance(op, Op):
            is_users = op.get_attr("infer_struct_info") is None  # a user's rule takes a builder
            derived, name = infer_call(call, BlockBuilder() if is_users else None), op.name
        else:
            return None
    except TVMError as error:
        return f"{error}"
    if not _differ(call.struct_info, derived):
        return None
    return (
        f"{name} returns {derived}, but the call says {call.struct_info}; make the call again, or "
        "give it struct_info=None and run relax.transform.Normalize"
    )


def _differ(info: StructInfo | None, other: StructInfo | None) -> bool:
    """Whether the infos contradict each other: no value can have both."""
    if info is None or other is None or info is other:
        return False
    return struct_info_base_check(info, other) == BaseCheckResult.FAIL_L0


__all__ = ["binding_problem", "type_problem", "verify_calls"]
