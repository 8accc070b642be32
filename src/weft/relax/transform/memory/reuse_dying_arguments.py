"""ReuseDyingArguments: a kernel writes its result over an argument that is not used again.

Before, where ``lv`` is a dataflow variable that no later binding uses::

    lv2 = R.call_tir(cls.conv2d_add_relu, (lv1, w, lv), out_sinfo=R.Tensor((1, 4, 56, 56, 16)))

After, with a PrimFunc that stores into its third buffer::

    lv2 = R.call_tir_inplace(
        cls.conv2d_add_relu_inplace, (lv1, w, lv), inplace_indices=[2], out_sinfo=[...])

This saves the allocation of the result and its way into the caches. The argument must have the type
and shape of the result. Parameters, constants, and memory that is still used under another name are
not overwritten (``weft.relax.analysis.inplace``). The kernel must read each element of the argument
only where it stores the same element of the result (``weft.tir.analysis.overwritable``), whether it
is scheduled or not. Calls of one kernel that overwrite the same argument share the new kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.expr import GlobalVar
from weft.ir.module import IRModule
from weft.ir.transform import define_module_pass
from weft.relax.analysis.inplace import inplace_opportunities
from weft.relax.expr import Binding, BindingBlock, Call, DataflowBlock, Tuple, VarBinding
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.base import CALL_TIR, call_tir_inplace
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.memory.over_argument import over_argument
from weft.relax.transform.passes import mutate_module
from weft.tir.analysis.overwritable import overwritable_arguments
from weft.tir.function import PrimFunc


class _Reuser(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.places: dict[GlobalVar, tuple[int, ...]] = {}
        self.kernels: dict[tuple[GlobalVar, int], GlobalVar | None] = {}
        """(kernel, argument) -> the kernel that overwrites that argument."""
        self.chosen: dict[int, tuple[int, ...]] = {}

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        outer = self.chosen
        self.chosen = {
            id(block.bindings[opportunity.binding_idx]): opportunity.arg_idxs
            for opportunity in inplace_opportunities(block, (), self.candidates)[1]
        }
        rewritten = super().visit_dataflow_block_(block)
        self.chosen = outer
        return rewritten

    def candidates(self, call: Call) -> Sequence[tuple[int, Any]]:
        """(index, argument) of those that the kernel of a call may overwrite.

        An argument that is passed twice is not among them.
        """
        if call.op is not CALL_TIR or len(call.args) != 2 or not isinstance(call.args[1], Tuple):
            return ()
        kernel: Any = call.args[0]
        arguments = call.args[1].fields
        tensors = [*arguments, call] if isinstance(call.struct_info, TensorStructInfo) else []
        func = self.mod[kernel]
        if not isinstance(func, PrimFunc) or not all(
            isinstance(item.struct_info, TensorStructInfo) for item in tensors
        ):
            return ()
        if len(tensors) != len(func.buffer_map) or len(func.params) != len(func.buffer_map):
            return ()
        if kernel not in self.places:
            self.places[kernel] = overwritable_arguments(func)
        writable = [(at, arguments[at]) for at in self.places[kernel]]
        return [(at, arg) for at, arg in writable if sum(arg is item for item in arguments) == 1]

    def visit_binding(self, binding: Binding) -> None:
        places = self.chosen.get(id(binding))
        if places is None or not isinstance(binding, VarBinding):
            super().visit_binding(binding)
            return
        call: Any = self.visit_expr(binding.value)
        kernel, arguments = call.args
        index = next((at for at in places if (kernel, at) in self.kernels), places[0])
        writer = self.writer_of(kernel, index)
        writing = call_tir_inplace(writer, arguments, [index], [call.struct_info])
        self.reemit(binding, binding.var, self.builder_.normalize(writing))

    def writer_of(self, kernel: GlobalVar, index: int) -> GlobalVar | None:
        """The kernel that overwrites an argument."""
        key = kernel, index
        if key not in self.kernels:
            func: Any = self.mod[kernel]
            name = f"{kernel.name_hint}_inplace"
            self.kernels[key] = self.builder_.add_func(over_argument(func, index), name)
        return self.kernels[key]


def reuse_dying_arguments(mod: IRModule) -> IRModule:
    """The module whose kernels overwrite arguments that are not used again."""
    return mutate_module(mod, _Reuser(mod))


ReuseDyingArguments = define_module_pass("ReuseDyingArguments", reuse_dying_arguments)
