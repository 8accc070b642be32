"""RewriteDataflowReshape: kernels that only copy in row-major order become ``R.reshape``.

Before: ``lv1 = R.call_tir(cls.reshape, (lv,), out_sinfo=R.Tensor((8,), "float32"))``, where the
PrimFunc stores element i of its argument as element i of its result. After:
``lv1 = R.reshape(lv, (8,))``, which the virtual machine does without touching the data. A copy of
the same shape (``x - 0`` of integers) is ``x`` itself.

An output of a dataflow block is rewritten only if it is the only use of a tensor that a kernel of
the block wrote. Else the output would share memory with another tensor that the caller can see. A
tensor that an in-place call overwrites gets no view that is used afterwards.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.transform import define_module_pass
from weft.relax.analysis.bindings import uses
from weft.relax.analysis.compile_time import has_reshape_pattern
from weft.relax.analysis.inplace import copies_to_keep
from weft.relax.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    Tuple,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import product, same_dim, same_dims
from weft.relax.op.base import CALL_TIR, CALL_TIR_INPLACE
from weft.relax.op.manipulate import reshape
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.passes import over_functions
from weft.tir.function import PrimFunc


class _ReshapeRewriter(PyExprMutator):
    def __init__(self, mod: IRModule, counts: dict[Var, int]) -> None:
        super().__init__()
        self.mod, self.counts = mod, counts
        self.known: dict[GlobalVar, bool] = {}
        self.values: dict[Var, Expr] = {}
        """Variable of the current block -> its value."""
        self.views: dict[Var, Call] = {}
        """Variable that becomes a view -> the reshape for it."""

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        outer = self.values, self.views
        self.values = {item.var: item.value for item in block.bindings}
        self.views = {
            var: reshaped
            for var, value in self.values.items()
            if (reshaped := self.reshaped(value)) is not None
            and (isinstance(var, DataflowVar) or self.is_its_own(reshaped.args[0]))
        }
        for var in copies_to_keep(block, (), self.views):
            del self.views[var]
        rewritten = super().visit_dataflow_block_(block)
        self.values, self.views = outer
        return rewritten

    def visit_var_binding_(self, binding: VarBinding) -> None:
        view = self.views.get(binding.var)
        if view is None:
            super().visit_var_binding_(binding)
        elif isinstance(binding.var, DataflowVar) and _has_shape_of_argument(binding.var, view):
            self.set_var_remap(binding.var.vid, self.visit_expr(view.args[0]))
        else:
            self.reemit(binding, binding.var, self.builder_.normalize(self.visit_expr(view)))

    def is_its_own(self, tensor: RelaxExpr) -> bool:
        """Whether a kernel of this block wrote a tensor, and it has a single use."""
        is_used_once = isinstance(tensor, Var) and self.counts.get(tensor) == 1
        return is_used_once and self.is_of_a_kernel(tensor)

    def is_of_a_kernel(self, tensor: RelaxExpr) -> bool:
        """Whether kernels of this block wrote the memory of a tensor."""
        value = self.values.get(tensor) if isinstance(tensor, DataflowVar) else None
        if not isinstance(value, Call) or not isinstance(value.struct_info, TensorStructInfo):
            return False
        if value.op is CALL_TIR_INPLACE and isinstance(value.args[1], Tuple):
            place = int(value.attrs["inplace_indices"][0])
            return place < 0 or self.is_of_a_kernel(value.args[1].fields[place])
        return value.op is CALL_TIR and self.reshaped(value) is None

    def reshaped(self, call: RelaxExpr) -> Call | None:
        """The call as a reshape of its first argument; None if it is none."""
        if not isinstance(call, Call) or call.op is not CALL_TIR:
            return None
        callee, operands = call.args[:2]
        if not isinstance(callee, GlobalVar) or not isinstance(operands, Tuple):
            return None
        arguments, info = operands.fields, call.struct_info
        if not arguments or not isinstance(info, TensorStructInfo):
            return None
        data_info = arguments[0].struct_info
        before, after = tensor_dims(data_info), tensor_dims(info)
        if before is None or after is None or data_info.dtype != info.dtype:
            return None
        if not self.is_reshape(callee) or not same_dim(product(before), product(after)):
            return None
        return reshape(arguments[0], info.shape)

    def is_reshape(self, callee: GlobalVar) -> bool:
        """Whether a PrimFunc of the module copies in row-major order (the answer is kept)."""
        if callee not in self.known:
            func = self.mod[callee] if callee in self.mod else None
            self.known[callee] = isinstance(func, PrimFunc) and has_reshape_pattern(func)
        return self.known[callee]


def _has_shape_of_argument(var: Var, view: Call) -> bool:
    return same_dims(tensor_dims(var.struct_info), tensor_dims(view.args[0].struct_info))


def rewrite_dataflow_reshape(func: Function, mod: IRModule) -> Function:
    """The function with kernels that only copy replaced by reshapes."""
    return _ReshapeRewriter(mod, dict(uses(func))).visit_expr(func)


RewriteDataflowReshape = define_module_pass(
    "RewriteDataflowReshape", over_functions(rewrite_dataflow_reshape)
)
