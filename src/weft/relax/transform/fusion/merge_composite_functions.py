"""MergeCompositeFunctions: merges neighbouring composite functions of one backend.

Before, with two composites of "dnnl"::

    lv = cls.fused_conv2d_relu(data, w1)      # Composite "dnnl.conv2d_relu"
    gv = cls.fused_conv2d_relu1(lv, w2)

After::

    gv = cls.fused_conv2d_relu_conv2d_relu1_dnnl(data, w1, w2)

where the new public function has the attribute ``Codegen`` ("dnnl") and contains the composites as
local functions, so that a backend needs nothing else. A call joins the groups of its arguments, in
order, unless two groups would then depend on each other (``UnitOrder``). Functions that are no
longer called are removed.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import define_module_pass
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Function,
    SeqExpr,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.relax.ir.substitution import copy_with_new_vars
from weft.relax.transform.fusion.fuse_ops_by_pattern import add_public, codegen_name
from weft.relax.transform.fusion.grouping import Group, is_groupable, make_grouped_functions
from weft.relax.transform.fusion.unit_order import UnitOrder
from weft.relax.transform.graph.dead_code_elimination import eliminate_dead_code
from weft.relax.transform.host.purity import to_non_dataflow


def composite_of(mod: IRModule, callee: RelaxExpr) -> Function | None:
    """The composite function that a callee refers to, or None."""
    func = mod.functions.get(callee) if isinstance(callee, GlobalVar) else None
    return func if isinstance(func, Function) and "Composite" in func.attrs else None


class _Partition(PyExprVisitor):
    """Finds the groups of composite calls in the dataflow blocks of a function."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.groups: dict[Var, Group] = {}

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        order = UnitOrder(block.bindings)
        for binding in block.bindings:
            value = binding.value
            func = composite_of(self.mod, value.op) if isinstance(value, Call) else None
            if func is not None and isinstance(binding, VarBinding):
                _join(order, binding.var, value, codegen_name(str(func.attrs["Composite"])))
        self.groups.update(order.groups)


def _join(order: UnitOrder, var: Var, call: Call, backend: str) -> None:
    """Let a call join the groups of its arguments where that makes no cycle."""
    group = Group({"Codegen": backend})
    order.merge([var], group)
    for arg in call.args:
        if not isinstance(arg, Var) or arg not in order.groups:
            continue
        parent = order.groups[arg]
        if parent is group or parent.attrs["Codegen"] != backend:
            continue
        if order.can_merge([var, arg]):
            order.merge([var, arg], group)


def merge_composite_functions(mod: IRModule) -> IRModule:
    """The module with composite calls merged; ``mod`` if there are none."""
    partition = _Partition(mod)
    for func in mod.functions.values():
        if isinstance(func, Function) and is_groupable(func) and "Composite" not in func.attrs:
            partition.visit_expr(func)
    if not partition.groups:
        return mod
    grouped = make_grouped_functions(mod, partition.groups)
    return eliminate_dead_code(_Finisher(grouped, set(mod.functions)).run())


class _Finisher(PyExprMutator):
    """Names the merged functions after their backend, and moves the composites into them."""

    def __init__(self, mod: IRModule, old: set[GlobalVar]) -> None:
        super().__init__(mod)
        self.mod, self.old = mod, old
        self.renamed: dict[GlobalVar, GlobalVar] = {}

    def run(self) -> IRModule:
        """The finished module."""
        for gvar, func in self.mod.functions.items():
            if gvar in self.old and isinstance(func, Function) and is_groupable(func):
                rewritten = self.visit_expr(func)
                if rewritten is not func:
                    self.builder_.update_func(gvar, rewritten)
        result = self.builder_.get()
        kept = {gvar: func for gvar, func in result.functions.items() if gvar not in self.renamed}
        return IRModule(kept, None, result.attrs, result.global_infos)

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = expect(super().visit_call_(op), Call)
        if not isinstance(call.op, GlobalVar) or call.op in self.old:
            return call
        func = self.mod.functions.get(call.op)
        if not isinstance(func, Function) or "Codegen" not in func.attrs:
            return call
        if call.op not in self.renamed:
            hint = f"{call.op.name_hint}_{func.attrs['Codegen']}"
            contained = self_contained(self.mod, func).without_attr("Primitive")
            self.renamed[call.op] = add_public(self.builder_, contained, hint)
        return Call(self.renamed[call.op], call.args)


def self_contained(mod: IRModule, func: Function) -> Function:
    """The function with plain blocks, and with the composites it calls as local functions."""
    func = to_non_dataflow(func)
    local: dict[GlobalVar, Var] = {}
    blocks = [BindingBlock(_localized(mod, block.bindings, local)) for block in func.body.blocks]
    return func.with_(body=SeqExpr(blocks, func.body.body))


def _localized(
    mod: IRModule, bindings: Sequence[Binding], local: dict[GlobalVar, Var]
) -> list[Binding]:
    copies: list[Binding] = []
    for binding in bindings:
        call = binding.value
        composite = composite_of(mod, call.op) if isinstance(call, Call) else None
        if composite is None:
            copies.append(binding)
            continue
        if call.op not in local:
            inner = copy_with_new_vars(composite).without_attr("Primitive")
            local[call.op] = Var("lv", inner.struct_info)
            copies.append(VarBinding(local[call.op], inner))
        new = Call(local[call.op], call.args)
        new.struct_info = call.struct_info
        copies.append(VarBinding(binding.var, new))
    return copies


MergeCompositeFunctions = define_module_pass("MergeCompositeFunctions", merge_composite_functions)
