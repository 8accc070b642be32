"""ExpandTupleArguments: private functions take the fields of tuples one by one.

Before: ``main(a, b): return f((a, b))`` and a private ``f(t): return t[0]``. After: ``main(a, b):
return f(a, b)`` and ``f(t_0, t_1): return t_0``. So later passes see which fields are used.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.transform import define_module_pass
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import (
    BindingBlock,
    Call,
    Function,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.struct_info import TupleStructInfo
from weft.relax.transform.graph.private_functions import (
    Change,
    change_signatures,
    private_functions,
)


def _expanded(func: Function) -> Function:
    """The function with a parameter for each field; the tuples are put together inside."""
    params: list[Var] = []
    bindings: list[VarBinding] = []

    def expand(param: Var) -> None:
        if not isinstance(param.struct_info, TupleStructInfo):
            params.append(param)
            return
        fields = [
            Var(f"{param.name_hint}_{index}", info)
            for index, info in enumerate(param.struct_info.fields)
        ]
        for field in fields:
            expand(field)
        bindings.append(VarBinding(param, Tuple(fields)))

    for param in func.params:
        expand(param)
    body = SeqExpr([BindingBlock(bindings), *func.body.blocks], func.body.body)
    return Function(params, body, func.ret_struct_info, func.is_pure, func.attrs, func.span)


def _leaves(arg: RelaxExpr) -> list[RelaxExpr]:
    """The fields of a tuple, of inner tuples too; what is no tuple is its own leaf."""
    if not isinstance(arg.struct_info, TupleStructInfo):
        return [arg]
    fields = (
        arg.fields
        if isinstance(arg, Tuple)
        else [TupleGetItem(arg, index) for index in range(len(arg.struct_info.fields))]
    )
    return [leaf for field in fields for leaf in _leaves(field)]


def _rewrite_call(
    builder: BlockBuilder,  # noqa: ARG001 - the signature of Change.rewrite_call
    callee: GlobalVar,
    call: Call,
) -> Call:
    args = [leaf for arg in call.args for leaf in _leaves(arg)]
    return Call(callee, args, call.attrs, call.sinfo_args, call.span)


def expand_tuple_arguments(mod: IRModule) -> IRModule:
    """The module whose private functions take no tuples; the same if there are none."""
    changes = {
        name: Change(_expanded(func), _rewrite_call)
        for name, func in private_functions(mod).items()
        if any(isinstance(param.struct_info, TupleStructInfo) for param in func.params)
    }
    return change_signatures(mod, changes)


ExpandTupleArguments = define_module_pass("ExpandTupleArguments", expand_tuple_arguments)
