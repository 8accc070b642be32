"""DataflowUseInplaceCalls: element-wise operators write over an argument that nothing needs later.

Before::

    z = R.add(x, y)
    a = R.add(z, y)        # z is not used again, and has the shape of a

After, with a PrimFunc that stores into its first parameter::

    z = R.add(x, y)
    a = R.call_tir_inplace(cls.add_inplace, (z, y), inplace_indices=[0], out_sinfo=[...])

Parameters of the function and constants are not written. The kernel is that of the operator's
legalisation with the result's buffer replaced. weft.relax.analysis.inplace finds the opportunities.
"""

from __future__ import annotations

from typing import Any

from weft.ir.functor import substitute
from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.relax.analysis.inplace import inplace_opportunities
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Binding, Call, DataflowBlock, Function, MatchCast, Tuple, VarBinding
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.base import call_tir_inplace
from weft.relax.transform.legalize_ops import LegalizeMutator
from weft.relax.transform.passes import make_module_pass
from weft.support.errors import LegalizeError
from weft.tir.function import PrimFunc


def single_inplace_call(
    mod: IRModule, call: Call, inplace_indices: list[int]
) -> tuple[Call, IRModule]:
    """The call with its result in an argument, and the module with the kernel that does it."""
    builder = BlockBuilder(mod)
    return inplace_call(builder, call, inplace_indices[0]), builder.get()


def inplace_call(builder: BlockBuilder, call: Call, index: int) -> Call:
    """``call`` as call_tir_inplace of a new kernel, which writes over argument ``index``."""
    kernel, arguments, scalars = _kernel_of(call)
    params = [param for param in kernel.params if param in kernel.buffer_map]
    buffers = [kernel.buffer_map[param] for param in params]
    target, result = buffers[index], buffers[-1]
    kept = [param for param in kernel.params if param is not params[-1]]
    mapping = {param: kernel.buffer_map[param] for param in kept if param in kernel.buffer_map}
    made = PrimFunc(
        kept, substitute(kernel.body, {result: target}), kernel.ret_type, mapping, kernel.attrs
    )
    if sum(1 for arg in arguments if arg is arguments[index]) > 1:
        made = made.without_attr("tir.noalias")  # the same tensor is read as another argument
    name = call.op.name.rpartition(".")[2]
    callee = builder.add_func(made, f"{name}_inplace")
    return call_tir_inplace(callee, Tuple(arguments), [index], [call.struct_info], scalars)


def _kernel_of(call: Call) -> tuple[PrimFunc, list[Any], Any]:
    """The PrimFunc that computes an operator, its tensors, and its scalars or None."""
    mutator = LegalizeMutator(IRModule(), {})
    builder = mutator.builder_
    builder.begin_binding_block()
    lowered = mutator.visit_expr(call)
    builder.end_block()
    if not isinstance(lowered, Call) or lowered.op is call.op:
        raise LegalizeError(f"DataflowUseInplaceCalls: {call} has no kernel of its own")
    kernel = builder.get()[lowered.args[0]]
    arguments = list(lowered.args[1].fields)
    if list(call.args) != arguments:
        raise LegalizeError(f"DataflowUseInplaceCalls: the kernel of {call} takes other arguments")
    return kernel, arguments, lowered.args[2] if len(lowered.args) > 2 else None


class _InplaceMutator(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.chosen: dict[int, int] = {}

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        outer = self.chosen
        self.chosen = {
            id(block.bindings[found.binding_idx]): found.arg_idxs[0]
            for found in inplace_opportunities(block, ())[1]
        }
        made = super().visit_dataflow_block_(block)
        self.chosen = outer
        return made

    def visit_binding(self, binding: Binding) -> None:
        index = self.chosen.get(id(binding))
        if index is None or not isinstance(binding, VarBinding | MatchCast):
            super().visit_binding(binding)
            return
        call = self.visit_expr(binding.value)
        try:
            made = self.builder_.normalize(inplace_call(self.builder_, call, index))
        except LegalizeError:  # an argument that stands in the kernel, as a scalar
            super().visit_binding(binding)
            return
        self.builder_.emit_normalized(binding.with_(value=made))


def dataflow_use_inplace_calls(mod: IRModule) -> IRModule:
    """The module with in-place calls where they are possible."""
    mutator = _InplaceMutator(mod)
    changed = False
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            made = mutator.visit_expr(func)
            if made is not func:
                mutator.builder_.update_func(gvar, made)
                changed = True
    return mutator.builder_.get() if changed else mod


def DataflowUseInplaceCalls() -> Any:  # noqa: N802 - TVM's name
    """The pass that lets element-wise operators write over arguments that nothing needs later."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:  # noqa: ARG001 - a pass
        return dataflow_use_inplace_calls(mod)

    return make_module_pass("DataflowUseInplaceCalls", run)
