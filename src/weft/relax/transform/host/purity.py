"""RemovePurityChecking and ToNonDataflow: the first passes when a graph is lowered to the VM."""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.expr import BindingBlock, Call, DataflowBlock, DataflowVar, Function, Var
from weft.relax.expr_functor import PyExprMutator
from weft.relax.transform.passes import define_function_pass


class _Impure(PyExprMutator):
    """Replaces calls that only assert purity (``call_pure_packed``) by plain calls."""

    def visit_call_(self, op: Call) -> RelaxExpr:
        if op.op in (Op.get("relax.call_pure_packed"), Op.get("relax.call_inplace_packed")):
            attrs = op.attrs if op.op == Op.get("relax.call_pure_packed") else None
            return super().visit_call_(Call(op.args[0], op.args[1:], attrs, op.sinfo_args))
        if op.op == Op.get("relax.invoke_pure_closure"):
            closure = Op.get("relax.invoke_closure")
            return super().visit_call_(Call(closure, op.args, op.attrs, op.sinfo_args))
        return super().visit_call_(op)

    def visit_function_(self, op: Function) -> Function:
        return _forced(expect(super().visit_function_(op), Function))


def _forced(func: Function) -> Function:
    if not func.is_pure or func.attrs.get("relax.force_pure"):
        return func
    return func.with_attr("relax.force_pure", True)


def remove_purity_checking(func: Function) -> Function:
    """The function, and its local functions, marked as pure whatever they call."""
    return _Impure().visit_expr(func)


class _NonDataflow(PyExprMutator):
    """Replaces dataflow blocks and variables by plain ones."""

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.builder_.begin_binding_block()
        for binding in block.bindings:
            self.visit_binding(binding)
        return self.builder_.end_block()

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Var:
        plain_var = Var(var.name_hint, var.struct_info)
        self.set_var_remap(var.vid, plain_var)
        return plain_var


def to_non_dataflow(func: Function) -> Function:
    """The function without dataflow blocks."""
    return _NonDataflow().visit_expr(func)


RemovePurityChecking = define_function_pass("RemovePurityChecking", remove_purity_checking)


ToNonDataflow = define_function_pass("ToNonDataflow", to_non_dataflow)
