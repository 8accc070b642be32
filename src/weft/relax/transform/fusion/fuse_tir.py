"""FuseTIR: a graph function marked ``Primitive`` that calls PrimFuncs becomes one PrimFunc.

Before::

    @R.function
    def fused(x, w, b):            # attribute Primitive
        with R.dataflow():
            lv = R.call_tir(cls.dense, (x, w), ...)
            gv = R.call_tir(cls.add, (lv, b), ...)
            R.output(gv)
        return gv

After: ``fused`` is a PrimFunc with the buffers ``x``, ``w``, ``b`` and ``T_add``. ``lv`` becomes an
``alloc_buffer`` of its root block. Calls become ``R.call_tir(cls.fused, ...)``, and functions that
are no longer used are removed. The pass fuses no loops, which is left to schedules. It does what
TVM's pass of this name does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.transform import define_module_pass
from weft.relax.expr import Call, Function, ShapeExpr, Tuple, TupleGetItem, Var
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import match_params
from weft.relax.op.base import call_tir, call_tir_inplace
from weft.relax.struct_info import PrimStructInfo, ShapeStructInfo, StructInfo, TupleStructInfo
from weft.relax.transform.fusion.fused_kernel import NEW_OUTPUT, KernelFuser
from weft.relax.transform.graph.dead_code_elimination import eliminate_dead_code
from weft.tir.expr import Var as TirVar

Structure: TypeAlias = int | tuple["Structure", ...]
"""The number of an output, or a tuple of layouts."""


@dataclass(frozen=True)
class Fused:
    """The PrimFunc of a Primitive function, with what is needed to rewrite its calls."""

    gvar: GlobalVar
    func: Function
    extra: list[TirVar]
    """Symbols that are passed by value."""
    structure: Structure
    """The structure of the result, as nested tuples of numbers (``structure_of``)."""
    places: list[int]
    """For each output, the index of the argument that it overwrites, or NEW_OUTPUT."""
    kept: list[int]
    """The indices of the tensors among the arguments that the PrimFunc takes."""


def place_infos(structure: Structure, info: Any, infos: dict[int, StructInfo]) -> None:
    """Add to ``infos`` the struct info of each output, taken from that of the whole result."""
    if isinstance(structure, tuple):
        for item, field in zip(structure, info.fields, strict=True):
            place_infos(item, field, infos)
    elif structure >= 0:
        infos[structure] = info


class _Rewriter(PyExprMutator):
    """Rewrites calls of fused functions to ``call_tir``."""

    def __init__(self, fused: dict[str, Fused]) -> None:
        super().__init__()
        self.fused = fused

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call.op, GlobalVar) or call.op.name_hint not in self.fused:
            return call
        kernel = self.fused[call.op.name_hint]
        tensors = [tensor for arg in call.args for tensor in self.tensors(arg)]
        args = [tensors[index] for index in kernel.kept]
        infos = [arg.struct_info for arg in call.args]
        symbols = match_params([param.struct_info for param in kernel.func.params], infos)
        tir_vars = ShapeExpr([symbols[var] for var in kernel.extra]) if kernel.extra else None
        outputs: dict[int, StructInfo] = {}
        place_infos(kernel.structure, call.struct_info, outputs)
        out = [outputs[index] for index in range(len(outputs))]
        info = out[0] if len(out) == 1 else out
        if all(place == NEW_OUTPUT for place in kernel.places):
            fused_call = call_tir(kernel.gvar, args, info, tir_vars)
        else:
            fused_call = call_tir_inplace(kernel.gvar, args, kernel.places, info, tir_vars)
        if kernel.structure == (0 if len(out) == 1 else tuple(range(len(out)))):
            return fused_call
        return self.rebuilt(kernel.structure, self.builder_.emit(fused_call), len(out), tensors)

    def rebuilt(
        self, structure: Structure, var: Var, count: int, inputs: list[RelaxExpr]
    ) -> RelaxExpr:
        """The result of the fused function, put together from the outputs of the PrimFunc."""
        if isinstance(structure, tuple):
            return Tuple([self.rebuilt(item, var, count, inputs) for item in structure])
        if structure < 0:
            return inputs[-1 - structure]
        return var if count == 1 else self.builder_.emit(TupleGetItem(var, structure))

    def tensors(self, arg: RelaxExpr) -> list[RelaxExpr]:
        """The tensors in an argument; a shape has none, since symbols are passed instead."""
        info = arg.struct_info
        if isinstance(info, ShapeStructInfo | PrimStructInfo):
            return []
        if not isinstance(info, TupleStructInfo):
            return [arg]
        if isinstance(arg, Tuple):
            return [item for field in arg.fields for item in self.tensors(field)]
        leaves: list[RelaxExpr] = []
        for index in range(len(info.fields)):
            leaves.extend(self.tensors(self.builder_.emit(TupleGetItem(arg, index))))
        return leaves


def fuse_tir(mod: IRModule) -> IRModule:
    """The module with its Primitive functions fused."""
    fused: dict[str, Fused] = {}
    functions: dict[GlobalVar, BaseFunc] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and bool(func.attrs.get("Primitive", 0)):
            fuser = KernelFuser(mod, gvar.name_hint, func)
            new_gvar = GlobalVar(gvar.name_hint)
            functions[new_gvar] = fuser.fuse()
            fused[gvar.name_hint] = Fused(
                new_gvar, func, fuser.extra, fuser.structure, fuser.places, fuser.kept
            )
        else:
            functions[gvar] = func
    if not fused:
        return mod
    for gvar, func in functions.items():
        if isinstance(func, Function):
            functions[gvar] = _Rewriter(fused).visit_expr(func)
    result = IRModule(functions, None, mod.attrs, mod.global_infos)
    return eliminate_dead_code(result)


FuseTIR = define_module_pass("FuseTIR", fuse_tir)
