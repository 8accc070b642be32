"""RewriteDataflowReshape: kernels that only copy in row-major order become ``R.reshape``.

Before: ``lv1 = R.call_tir(cls.reshape, (lv,), out_sinfo=R.Tensor((8,), "float32"))``, where the
PrimFunc stores element i of its argument as element i of its result. After:
``lv1 = R.reshape(lv, (8,))``, which the virtual machine does without touching the data.

Only variables that stay inside of a dataflow block are rewritten: an output that is a view of
another tensor would share memory with it where the caller sees both.
"""

from __future__ import annotations

from typing import Any

from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.relax.analysis.compile_time import has_reshape_pattern
from weft.relax.expr import Call, DataflowVar, Expr, Function, Tuple, VarBinding
from weft.relax.expr_functor import PyExprMutator
from weft.relax.lattice import tensor_dims
from weft.relax.op.manipulate import reshape
from weft.relax.shape_arith import product, same_dim
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.passes import over_functions
from weft.tir.function import PrimFunc

CALL_TIR = Op.get("relax.call_tir")


class _ReshapeRewriter(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self.mod = mod
        self.known: dict[Any, bool] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        if isinstance(binding.var, DataflowVar) and isinstance(binding.value, Call):
            made = self.reshaped(binding.value)
            if made is not None:
                self.reemit(binding, binding.var, self.builder_.normalize(self.visit_expr(made)))
                return
        super().visit_var_binding_(binding)

    def reshaped(self, call: Call) -> Expr | None:
        """The call as a reshape of its first argument (it does not read others), or None."""
        if call.op is not CALL_TIR or not isinstance(call.args[1], Tuple):
            return None
        arguments, info = call.args[1].fields, call.struct_info
        if not arguments or not isinstance(info, TensorStructInfo):
            return None
        given = arguments[0].struct_info
        before, after = tensor_dims(given), tensor_dims(info)
        if before is None or after is None or given.dtype != info.dtype:
            return None
        if not self.is_reshape(call.args[0]) or not same_dim(product(before), product(after)):
            return None
        return reshape(arguments[0], info.shape)

    def is_reshape(self, callee: Any) -> bool:
        """Whether a PrimFunc of the module copies in row-major order; asked once each."""
        if callee not in self.known:
            func = self.mod[callee] if callee in self.mod else None
            self.known[callee] = isinstance(func, PrimFunc) and has_reshape_pattern(func)
        return self.known[callee]


def rewrite_dataflow_reshape(func: Function, mod: IRModule) -> Function:
    """The function with its copying kernels as reshapes."""
    made: Function = _ReshapeRewriter(mod).visit_expr(func)
    return made


def RewriteDataflowReshape() -> Any:  # noqa: N802 - TVM's name
    """The pass that makes reshapes of kernels that only copy."""
    return over_functions("RewriteDataflowReshape", rewrite_dataflow_reshape)
