"""ConcatenateInPlace: kernels whose results are concatenated write into the concatenation.

Before::

    a = R.call_tir(cls.convolution, (x, w), out_sinfo=R.Tensor((1, 4, 8, 8, 16)))
    b = R.call_tir(cls.conv2d1, (x, v), out_sinfo=R.Tensor((1, 4, 8, 8, 16)))
    y = R.call_tir(cls.concatenate, (a, b), out_sinfo=R.Tensor((1, 8, 8, 8, 16)))

After, with PrimFuncs that each write one half of their last argument::

    lv = R.call_tir(cls.conv2d_part, (x, w), out_sinfo=R.Tensor((1, 8, 8, 8, 16)))
    y = R.call_tir_inplace(cls.conv2d1_part, (x, v, lv), inplace_indices=[2], ...)

This saves the copy, which reads and writes the whole result and takes as long as a short matrix
product. Each part must be the result of a kernel in the same block, and the concatenation must be
its only use. The pass runs after kernels are scheduled, since schedules expect to write whole
buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import define_module_pass
from weft.relax.analysis.bindings import uses
from weft.relax.analysis.concatenation import concatenated_axis, extents_along, into_part
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    Tuple,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.base import CALL_TIR, call_tir, call_tir_inplace
from weft.relax.transform.passes import mutate_module
from weft.tir.function import PrimFunc


@dataclass(frozen=True)
class _Part:
    """One part of a concatenation: the PrimFunc that writes it, the concatenation, and whether it
    is the last part that is written.
    """

    kernel: PrimFunc
    whole: VarBinding
    is_last: bool


class _Joiner(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.counts: dict[Var, int] = {}
        self.axes: dict[GlobalVar, int | None] = {}
        self.parts: dict[Var, _Part] = {}
        self.started: dict[Var, Var] = {}
        """Concatenation with some parts written -> the variable that holds it so far."""

    def visit_function_(self, op: Function) -> Function:
        self.counts = dict(uses(op))
        return expect(super().visit_function_(op), Function)

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        outer, self.parts = self.parts, {}
        mod = self.mod
        kernels = [binding for binding in block.bindings if _is_kernel(binding, mod)]
        calls = {binding.var: expect(binding.value, Call) for binding in kernels}
        for binding in kernels:
            self.parts.update(self.parts_of(binding, calls))
        rewritten = super().visit_dataflow_block_(block)
        self.parts = outer
        return rewritten

    def parts_of(self, whole: VarBinding, calls: dict[Var, Call]) -> dict[Var, _Part]:
        """Operand -> its part of a concatenation; empty unless all operands can be written so."""
        callee, operands = _callee(calls[whole.var]), expect(calls[whole.var].args[1], Tuple).fields
        axis = self.axis_of(callee)
        if axis is None or not all(self.is_free(operand, calls) for operand in operands):
            return {}
        *sizes, extent = extents_along(self.mod[callee], axis)
        last = [var for var in calls if var in set(operands)][-1]
        begins: dict[Var, _Part] = {}
        begin = 0
        for operand, size in zip(operands, sizes, strict=True):
            var = expect(operand, Var)
            kernel = into_part(self.mod[_callee(calls[var])], axis, begin, extent)
            if kernel is None:
                return {}
            begins[var] = _Part(kernel, whole, var is last)
            begin += size
        return begins

    def axis_of(self, callee: GlobalVar) -> int | None:
        """The axis along which a PrimFunc concatenates; None if it does something else."""
        if callee not in self.axes:
            self.axes[callee] = concatenated_axis(self.mod[callee])
        return self.axes[callee]

    def is_free(self, var: RelaxExpr, calls: dict[Var, Call]) -> bool:
        """Whether a kernel of this block writes the tensor and a single call reads it, once."""
        is_inside = isinstance(var, DataflowVar) and var in calls and self.counts.get(var) == 1
        return is_inside and var not in {part.whole.var for part in self.parts.values()}

    def visit_binding(self, binding: Binding) -> None:
        part = self.parts.get(binding.var)
        if part is not None and isinstance(binding, VarBinding):
            self.write(binding, part)
        elif self.started.pop(binding.var, None) is None:
            super().visit_binding(binding)

    def write(self, binding: VarBinding, part: _Part) -> None:
        """Emit the kernel that writes a part into the memory of the concatenation."""
        call = expect(self.visit_expr(binding.value), Call)
        kernel, operands = expect(call.args[0], GlobalVar), expect(call.args[1], Tuple)
        arguments, info = list(operands.fields), part.whole.value.struct_info
        gvar = self.builder_.add_func(part.kernel, f"{kernel.name_hint}_part")
        held = self.started.get(part.whole.var)
        if held is None:
            writing = call_tir(gvar, Tuple(arguments), info)
        else:
            writing = call_tir_inplace(gvar, Tuple([*arguments, held]), [len(arguments)], info)
        writing = self.builder_.normalize(writing)
        if part.is_last:
            self.reemit(part.whole, part.whole.var, writing)
            self.started[part.whole.var] = part.whole.var
        else:
            self.started[part.whole.var] = self.builder_.emit(writing)


def _callee(call: Call) -> GlobalVar:
    return expect(call.args[0], GlobalVar)


def _is_kernel(binding: Binding, mod: IRModule) -> TypeGuard[VarBinding]:
    """Whether a binding calls a PrimFunc that takes tensors only and writes one tensor."""
    value = binding.value
    if not isinstance(binding, VarBinding) or getattr(value, "op", None) is not CALL_TIR:
        return False
    if len(value.args) != 2 or not isinstance(value.args[1], Tuple):
        return False
    func = mod[value.args[0]]
    return isinstance(func, PrimFunc) and len(func.params) == len(value.args[1].fields) + 1


def concatenate_in_place(mod: IRModule) -> IRModule:
    """The module whose kernels write their results into the concatenation of them."""
    return mutate_module(mod, _Joiner(mod))


ConcatenateInPlace = define_module_pass("ConcatenateInPlace", concatenate_in_place)
