"""Weights are let go of once they are read (for LiftTransformParams).

Behind ``w = params[0]`` comes ``vm.builtin.tuple_reset_item(params, 0)``, so that memory of a
weight that was transformed need not wait for the last one. A list of weights loses its item, a
tuple cannot and keeps it.
"""

from __future__ import annotations

from weft.ir.expr import IntImm
from weft.relax.expr import ExternFunc, Function, PrimValue, TupleGetItem, Var, VarBinding
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.base import call_pure_packed
from weft.relax.struct_info import TupleStructInfo


class _Consumer(PyExprMutator):
    def __init__(self, params: Var) -> None:
        super().__init__()
        self.params = params
        self.read: dict[int, Var] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if not isinstance(value, TupleGetItem) or value.tuple_value is not self.params:
            super().visit_var_binding_(binding)
            return
        known = self.read.get(value.index)
        if known is not None:  # it is not there any more
            self.set_var_remap(binding.var.vid, known)
            return
        super().visit_var_binding_(binding)
        self.read[value.index] = self.get_var_remap(binding.var.vid)
        reset = ExternFunc("vm.builtin.tuple_reset_item")
        index = PrimValue(IntImm("int32", value.index))
        nothing = TupleStructInfo([])
        self.builder_.emit(call_pure_packed(reset, self.params, index, sinfo_args=nothing))


def consume_params(func: Function) -> Function:
    """The function of one tuple of weights that resets each field when it has read it."""
    rewritten = _Consumer(func.params[-1]).visit_expr(func)
    consumed: Function = rewritten
    return consumed
