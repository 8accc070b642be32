"""CallTIRRewrite: makes the destinations of calls in destination-passing style explicit.

Before::

    y: R.Tensor((n,), "float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), "float32"))

After::

    alloc: R.Tensor((n,), "float32") = R.builtin.alloc_tensor(R.shape([n]), "float32", 0, "global")
    _: R.Tuple = cls.exp(x, alloc)
    y: R.Tensor((n,), "float32") = alloc

``call_tir_inplace`` writes to its arguments, and only outputs whose index is -1 are allocated.
``call_dps_packed`` becomes a call of the registered function. A call with ``tir_vars`` becomes a
``vm.call_tir_dyn``. The shapes of the outputs must be known. The new calls have side effects, so
ToNonDataflow and RemovePurityChecking must come before.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.expr import Call, Expr, Function, Tuple
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op import builtin, vm
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.relax.transform.passes import define_function_pass
from weft.support.errors import IRTypeError

REWRITTEN: Final = frozenset(
    {"relax.call_tir", "relax.call_tir_with_grad", "relax.call_tir_inplace",
     "relax.call_dps_packed"}
)  # fmt: skip
"""The operators that the pass removes."""
NEW_OUTPUT: Final = -1
"""The in-place index of an output that is not written over an argument."""


class _CallTIRRewriter(PyExprMutator):
    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            return call
        return self.rewritten(call) if call.op.name in REWRITTEN else call

    def rewritten(self, call: Call) -> Expr:
        """Emit the allocations and the call; returns the outputs."""
        single = isinstance(call.struct_info, TensorStructInfo)
        infos = [call.struct_info] if single else getattr(call.struct_info, "fields", None)
        if infos is None:
            raise IRTypeError(
                f"CallTIRRewrite: expected a tensor or a tuple of tensors as the result of "
                f"{call.op.name}, got {call.struct_info}"
            )
        inputs = self.inputs(call)
        indices = call.attrs.get("inplace_indices", [NEW_OUTPUT] * len(infos))
        places = [int(index) for index in indices]
        outputs = [
            inputs[place] if place != NEW_OUTPUT else self.allocated(info)
            for place, info in zip(places, infos, strict=True)
        ]
        fresh = [out for place, out in zip(places, outputs, strict=True) if place == NEW_OUTPUT]
        arguments = [*inputs, *fresh]
        if len(call.args) == 2:
            self.builder_.emit(Call(call.args[0], arguments), "_")
        else:
            scalars = call.args[2]
            self.builder_.emit(vm.call_tir_dyn(call.args[0], Tuple([*arguments, scalars])), "_")
        return outputs[0] if single else Tuple(outputs)

    def inputs(self, call: Call) -> list[Expr]:
        """The arguments of a destination-passing call, as a list."""
        arguments = call.args[1]
        if isinstance(arguments, Tuple):
            return list(arguments.fields)
        if isinstance(arguments.struct_info, TupleStructInfo):
            count = len(arguments.struct_info.fields)
            return [self.builder_.emit(arguments[i]) for i in range(count)]
        return [arguments]

    def allocated(self, info: StructInfo) -> Expr:
        """Emit the allocation of a tensor with this struct info."""
        if not isinstance(info, TensorStructInfo) or info.shape is None:
            raise IRTypeError(
                f"CallTIRRewrite: an output needs a tensor struct info with a shape, got {info}"
            )
        shape = expect(info.shape, Expr)
        return self.builder_.emit(builtin.alloc_tensor(shape, info.dtype, 0), "alloc")


def call_tir_rewrite(func: Function) -> Function:
    """The function with explicit destinations of its calls."""
    return _CallTIRRewriter().visit_expr(func)


CallTIRRewrite = define_function_pass("CallTIRRewrite", call_tir_rewrite)
