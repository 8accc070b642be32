"""RemoveRedundantReshape: removes reshapes to the same shape, and the first of two in a row.

Before: ``a = reshape(x, (2, 6)); b = reshape(a, (3, 4)); c = reshape(b, (3, 4))``. After:
``b = reshape(x, (3, 4))``, and ``c`` is replaced by ``b``. Shapes are equal if that is proved.
"""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax.expr import Binding, BindingBlock, Call, DataflowBlock, DataflowVar, Function, Var
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import same_dims
from weft.relax.rewrite.canonical import canonicalize_bindings
from weft.relax.transform.passes import define_operator_pass

_RESHAPE = Op.get("relax.reshape")


class _Remover(PyExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self.local: set[Var] = set()

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.local = set()
        rewritten = super().visit_dataflow_block_(block)
        self.local = set()
        return rewritten

    def visit_binding(self, binding: Binding) -> None:
        super().visit_binding(binding)
        self.local.add(self.get_var_remap(binding.var))

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if call.op is not _RESHAPE:
            return call
        source = self.source(call.args[0])
        dims = tensor_dims(source.struct_info)
        if same_dims(dims, tensor_dims(call.struct_info)):
            return source
        return call if source is call.args[0] else Call(_RESHAPE, [source, call.args[1]])

    def source(self, data: RelaxExpr) -> RelaxExpr:
        """The tensor that ``data`` is a reshape of, if that is visible here; else ``data``."""
        value = self.lookup_binding(data)
        if not isinstance(value, Call) or value.op is not _RESHAPE:
            return data
        source = value.args[0]
        is_visible = not isinstance(source, DataflowVar) or source in self.local
        return source if is_visible else data


def remove_redundant_reshape(func: Function) -> Function:
    """The function without reshapes that change nothing or that another one follows."""
    rewritten = _Remover().visit_expr(func)
    return func if rewritten is func else canonicalize_bindings(rewritten)


RemoveRedundantReshape = define_operator_pass("RemoveRedundantReshape", remove_redundant_reshape)
