"""DataflowUseInplaceCalls: element-wise operators overwrite an argument that is not used again.

Before::

    z = R.add(x, y)
    a = R.add(z, y)        # z is not used again, and has the shape of a

After, with a PrimFunc that stores into its first parameter::

    z = R.add(x, y)
    a = R.call_tir_inplace(cls.add_inplace, (z, y), inplace_indices=[0], out_sinfo=[...])

Parameters of the function and constants are never overwritten. The kernel is that of the operator's
legalisation, with an argument's buffer in place of the result's. ``weft.relax.analysis.inplace``
finds the opportunities.
"""

from __future__ import annotations

from typing import Any

from weft.ir.expr import GlobalVar
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import define_module_pass
from weft.relax.analysis.inplace import inplace_opportunities
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Binding, BindingBlock, Call, DataflowBlock, MatchCast, Tuple, VarBinding
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.base import call_tir_inplace
from weft.relax.transform.legalize.legalize_ops import LegalizeMutator
from weft.relax.transform.memory.over_argument import over_argument
from weft.relax.transform.passes import mutate_module
from weft.support.errors import LegalizeError


def single_inplace_call(
    mod: IRModule, call: Call, inplace_indices: list[int]
) -> tuple[Call, IRModule]:
    """The call, writing its result over an argument, and the module with the kernel for that."""
    builder = BlockBuilder(mod)
    return InplaceKernels(builder).call(call, inplace_indices[0]), builder.get()


class InplaceKernels:
    """The in-place kernels of one module; equal calls share a kernel."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder
        self.legalizer = LegalizeMutator(IRModule(), {})
        self.added: dict[tuple[GlobalVar, int], GlobalVar] = {}

    def call(self, call: Call, index: int) -> Call:
        """``call`` as call_tir_inplace of a kernel that writes over argument ``index``."""
        operands: Any = self.lowered(call).args
        gvar, tensors, *scalars = operands
        arguments = list(tensors.fields)
        if list(call.args) != arguments:
            raise LegalizeError(
                f"DataflowUseInplaceCalls: the kernel of {call} takes other arguments"
            )
        key = (gvar, index)
        if key not in self.added:
            lowered: Any = self.legalizer.builder_.function_of(gvar)
            # Two arguments may be the same tensor now, or after a later pass merges two tensors.
            kernel = over_argument(lowered, index).without_attr("tir.noalias")
            name = call.op.name.rpartition(".")[2]
            self.added[key] = self.builder.add_func(kernel, f"{name}_inplace")
        infos = [call.struct_info]
        return call_tir_inplace(self.added[key], Tuple(arguments), [index], infos, *scalars)

    def lowered(self, call: Call) -> Call:
        """The ``call_tir`` that legalisation makes of a call."""
        builder = self.legalizer.builder_
        builder.begin_binding_block()
        try:
            lowered = self.legalizer.visit_expr(call)
        finally:
            builder.end_block()
        if not isinstance(lowered, Call) or lowered.op is call.op:
            raise LegalizeError(f"DataflowUseInplaceCalls: {call} has no kernel of its own")
        return lowered


class _InplaceMutator(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.kernels = InplaceKernels(self.builder_)
        self.chosen: dict[int, int] = {}

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        outer = self.chosen
        self.chosen = {
            id(block.bindings[opportunity.binding_idx]): opportunity.arg_idxs[0]
            for opportunity in inplace_opportunities(block, ())[1]
        }
        rewritten = super().visit_dataflow_block_(block)
        self.chosen = outer
        return rewritten

    def visit_binding(self, binding: Binding) -> None:
        index = self.chosen.get(id(binding))
        if index is None or not isinstance(binding, VarBinding | MatchCast):
            super().visit_binding(binding)
            return
        call = expect(self.visit_expr(binding.value), Call)
        try:
            value = self.builder_.normalize(self.kernels.call(call, index))
        except LegalizeError:  # an argument, such as a scalar, is written into the kernel itself
            super().visit_binding(binding)
            return
        self.builder_.emit_normalized(binding.with_(value=value))


def dataflow_use_inplace_calls(mod: IRModule) -> IRModule:
    """The module with in-place calls where these are possible."""
    mutator = _InplaceMutator(mod)
    return mutate_module(mod, mutator)


DataflowUseInplaceCalls = define_module_pass("DataflowUseInplaceCalls", dataflow_use_inplace_calls)
