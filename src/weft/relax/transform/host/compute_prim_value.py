"""ComputePrimValue: a scalar expression in the graph becomes a call of a PrimFunc that computes it.

Before: ``R.prim_value(n * 4 + 1)``. After: ``cls.compute_symbolic_expr(R.prim_value(n))`` with

::

    @T.prim_func
    def compute_symbolic_expr(n: T.int64) -> T.int64:
        T.func_attr({"tir.is_host_func": True})
        T.ret(n * T.int64(4) + T.int64(1))

Constants and plain variables stay.
"""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect, substitute
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.transform import define_module_pass
from weft.ir.type import PrimType
from weft.relax.expr import Call, Function, PrimValue
from weft.relax.expr_functor import PyExprMutator
from weft.relax.transform.passes import mutate_module
from weft.tir.expr import Call as TirCall
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Evaluate


class _PrimValueComputer(PyExprMutator):
    def visit_function_(self, op: Function) -> Function:
        """Keep the struct info of the result, since the new call does not tell its value."""
        func = expect(super().visit_function_(op), Function)
        return func.with_(ret_struct_info=op.ret_struct_info)

    def visit_prim_value_(self, op: PrimValue) -> RelaxExpr:
        value = op.value
        used = list(dict.fromkeys(collect(value, Var)))
        if isinstance(value, Var) or not used:
            return op
        params = [Var(var.name, var.dtype) for var in used]
        body = substitute(value, dict(zip(used, params, strict=True)))
        func = PrimFunc(
            params,
            Evaluate(TirCall(value.dtype, Op.get("tir.ret"), [body])),
            PrimType(value.dtype),
            attrs={"tir.is_host_func": True},
        )
        callee = self.builder_.add_func(func, "compute_symbolic_expr")
        return Call(callee, [PrimValue(var) for var in used])


def compute_prim_value(mod: IRModule) -> IRModule:
    """The module with scalar expressions computed by PrimFuncs."""
    mutator = _PrimValueComputer(mod)
    return mutate_module(mod, mutator)


ComputePrimValue = define_module_pass("ComputePrimValue", compute_prim_value)
