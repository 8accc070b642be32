"""RemovePurityChecking and ToNonDataflow: what the lowering to the VM does first."""

from __future__ import annotations

from typing import Any

from weft.relax.expr import BindingBlock, DataflowBlock, DataflowVar, Function, Var
from weft.relax.expr_functor import PyExprMutator
from weft.relax.transform.passes import make_function_pass


def remove_purity_checking(func: Function) -> Function:
    """The function marked to be taken as pure, whatever it calls."""
    if not func.is_pure or func.attrs.get("relax.force_pure"):
        return func
    return func.with_attr("relax.force_pure", True)


class _NonDataflow(PyExprMutator):
    """Dataflow blocks become plain blocks, their variables plain variables."""

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.builder_.begin_binding_block()
        for binding in block.bindings:
            self.visit_binding(binding)
        return self.builder_.end_block()

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Var:
        made = Var(var.name_hint, var.struct_info)
        self.set_var_remap(var.vid, made)
        return made


def to_non_dataflow(func: Function) -> Function:
    """The function without dataflow blocks."""
    made: Function = _NonDataflow().visit_expr(func)
    return made


def RemovePurityChecking() -> Any:  # noqa: N802 - TVM's name
    """The pass that marks pure functions with ``relax.force_pure``."""
    return make_function_pass("RemovePurityChecking", remove_purity_checking)


def ToNonDataflow() -> Any:  # noqa: N802 - TVM's name
    """The pass that turns dataflow blocks into plain ones."""
    return make_function_pass("ToNonDataflow", to_non_dataflow)
