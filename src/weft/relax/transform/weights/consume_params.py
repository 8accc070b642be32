"""Releases each weight after it is read (for LiftTransformParams).

After ``w = params[0]``, ``vm.builtin.tuple_reset_item(params, 0)`` is inserted, so that the memory
of a weight can be freed once it is transformed, before the other weights are. A list of weights
gives up its item; a tuple cannot.
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
        if known is not None:  # the item has been read and reset before
            self.set_var_remap(binding.var.vid, known)
            return
        super().visit_var_binding_(binding)
        self.read[value.index] = self.get_var_remap(binding.var.vid)
        reset = ExternFunc("vm.builtin.tuple_reset_item")
        index = PrimValue(IntImm("int32", value.index))
        nothing = TupleStructInfo([])
        self.builder_.emit(call_pure_packed(reset, self.params, index, sinfo_args=nothing))


def consume_params(func: Function) -> Function:
    """The function, which takes one tuple of weights, with each field reset after it is read."""
    rewritten = _Consumer(func.params[-1]).visit_expr(func)
    return rewritten
