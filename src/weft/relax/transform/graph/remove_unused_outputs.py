"""RemoveUnusedOutputs: private functions no longer return what no caller uses.

Before: ``main(x): t = f(x); return t[0]`` and a private ``f(x): return (R.exp(x), R.sin(x))``.
After: ``main(x): t = f(x); return t`` and ``f(x): return R.exp(x)``. If only one field is used, it
is returned without a tuple. A use of the whole tuple counts as a use of all fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import define_module_pass
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import (
    BindingBlock,
    Call,
    Function,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprVisitor
from weft.relax.struct_info import TupleStructInfo
from weft.relax.transform.graph.private_functions import (
    Change,
    change_signatures,
    private_functions,
)


class _Usage(PyExprVisitor):
    """Collects which fields of the results of the candidates are used."""

    def __init__(self, candidates: Iterable[str]) -> None:
        self.used: dict[str, set[int] | None] = {name: set() for name in candidates}
        self.called: dict[str, None] = {}
        self.source: dict[Var, str] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value: RelaxExpr = binding.value
        name = self.callee(value)
        if isinstance(value, Var) and value in self.source:  # another name of the same result
            self.source[binding.var] = self.source[value]
        elif name is None:
            self.visit_expr(value)
        else:
            self.source[binding.var] = name
            self.called[name] = None
            for arg in expect(value, Call).args:
                self.visit_expr(arg)

    def callee(self, value: RelaxExpr) -> str | None:
        """The name of the candidate that a value calls; None if it calls none."""
        name = getattr(getattr(value, "op", None), "name_hint", None)
        is_call = isinstance(value, Call) and isinstance(value.op, GlobalVar)
        return name if is_call and name in self.used else None

    def visit_tuple_getitem_(self, op: TupleGetItem) -> None:
        whole = op.tuple_value
        name = self.source.get(whole) if isinstance(whole, Var) else self.callee(whole)
        fields = self.used.get(name) if name is not None else None
        if fields is not None:
            fields.add(op.index)
        if not isinstance(whole, Var):
            self.visit_expr(whole)

    def visit_var_(self, op: Var) -> None:
        if op in self.source:
            self.used[self.source[op]] = None

    def visit_call_(self, op: Call) -> None:
        name = self.callee(op)  # a call that is not bound to a variable: all of it is used
        if name is not None:
            self.used[name] = None
        super().visit_call_(op)


def _without_outputs(func: Function, kept: list[int]) -> Change:
    """The function that returns only the fields ``kept``, and how its calls are rewritten."""
    whole = Var("outputs", func.ret_struct_info)
    fields = [TupleGetItem(whole, index) for index in kept]
    variables = [Var(f"output_{index}", field.struct_info) for index, field in enumerate(fields)]
    pairs = zip(variables, fields, strict=True)
    bindings = [VarBinding(whole, func.body.body), *[VarBinding(v, f) for v, f in pairs]]
    result: RelaxExpr = variables[0] if len(kept) == 1 else Tuple(variables)
    body = SeqExpr([*func.body.blocks, BindingBlock(bindings)], result)
    shortened = Function(func.params, body, result.struct_info, func.is_pure, func.attrs, func.span)

    def rewrite_call(builder: BlockBuilder, callee: GlobalVar, call: Call) -> RelaxExpr:
        info = expect(func.ret_struct_info, TupleStructInfo)
        new = builder.emit(Call(callee, call.args, call.attrs, call.sinfo_args, call.span))
        results: list[RelaxExpr] = [PrimValue(math.nan)] * len(info.fields)  # nan stands for unused
        for place, index in enumerate(kept):
            results[index] = new if len(kept) == 1 else TupleGetItem(new, place)
        return Tuple(results)

    return Change(shortened, rewrite_call)


def remove_unused_outputs(mod: IRModule) -> IRModule:
    """The module whose private functions return only what is used; the same if all do."""
    candidates = {
        name: func
        for name, func in private_functions(mod).items()
        if isinstance(func.ret_struct_info, TupleStructInfo)
    }
    if not candidates:
        return mod
    usage = _Usage(candidates)
    for func in mod.functions.values():
        if isinstance(func, Function):
            usage.visit_expr(func)
    changes = {}
    for name in usage.called:
        info = expect(candidates[name].ret_struct_info, TupleStructInfo)
        fields = usage.used[name]
        if fields is not None and len(fields) < len(info.fields):
            changes[name] = _without_outputs(candidates[name], sorted(fields))
    return change_signatures(mod, changes)


RemoveUnusedOutputs = define_module_pass("RemoveUnusedOutputs", remove_unused_outputs)
