"""AttachBytePairs: tells kernels which of their weights ``vpmaddubsw`` multiplies exactly.

A call ``call_tir(f, (x, w))`` of a constant ``w`` in int8 becomes a call of a copy of ``f`` with
the attribute ``exact_byte_pairs = [[], [0]]`` if int16 holds the pairs of ``w`` along its first
axis (``weft.tir.byte_pairs``). The pass runs only for processors that have this instruction and
none that adds up four products of bytes without cutting off.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.transform import Sequential, define_module_pass
from weft.relax.expr import Call, Constant, Tuple
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.base import CALL_TIR
from weft.relax.transform.graph.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.passes import mutate_module
from weft.target.machine import machine_of
from weft.target.target import Target
from weft.tir.byte_pairs import EXACT_BYTE_PAIRS, has_exact_pairs
from weft.tir.function import PrimFunc
from weft.tir.stmt_functor import renew_defs

_Axes = tuple[tuple[int, ...], ...]
"""For each argument of a call, the axes along which its pairs are exact."""


class _Attacher(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.axes: dict[int, tuple[int, ...]] = {}
        """The ``id`` of a constant, which the module keeps alive -> its axes."""
        self.kernels: dict[tuple[GlobalVar, _Axes], GlobalVar] = {}

    def visit_call_(self, op: Call) -> RelaxExpr:
        """A call of the copy for its weights, if one of them is exact."""
        call = self.visit_expr_post_order(op)
        if call.op is not CALL_TIR or not isinstance(call.args[1], Tuple):
            return call
        kernel = call.args[0]
        func = self.mod[kernel] if isinstance(kernel, GlobalVar) and kernel in self.mod else None
        axes = tuple([self.axes_of(arg) for arg in call.args[1].fields])
        if not isinstance(kernel, GlobalVar) or not isinstance(func, PrimFunc) or not any(axes):
            return call
        gvar = self.marked(kernel, func, axes)
        return Call(CALL_TIR, [gvar, *call.args[1:]], call.attrs, call.sinfo_args, call.span)

    def axes_of(self, arg: RelaxExpr) -> tuple[int, ...]:
        """The axes along which an argument's pairs are exact."""
        if not isinstance(arg, Constant) or str(arg.data.dtype) != "int8":
            return ()
        if id(arg) not in self.axes:
            weights = arg.data.numpy()
            exact = [axis for axis in range(weights.ndim) if has_exact_pairs(weights, axis)]
            self.axes[id(arg)] = tuple(exact)
        return self.axes[id(arg)]

    def marked(self, gvar: GlobalVar, func: PrimFunc, axes: _Axes) -> GlobalVar:
        """The copy of a PrimFunc with this attribute; parameters beside the arguments have none."""
        known = self.kernels.get((gvar, axes))
        if known is None:
            lists = [list(each) for each in axes]
            lists += [[] for _ in range(len(func.params) - len(lists))]
            copy = renew_defs(func.with_attr(EXACT_BYTE_PAIRS, lists))
            known = self.kernels[gvar, axes] = self.builder_.add_func(copy, gvar.name_hint)
        return known


def _attach(mod: IRModule) -> IRModule:
    machine = machine_of(Target.current(allow_none=True))
    if machine.multiplies_bytes or not machine.multiplies_byte_pairs:
        return mod
    return mutate_module(mod, _Attacher(mod))


def AttachBytePairs() -> Sequential:  # noqa: N802 - a pass
    """Mark the weights of kernels whose byte products int16 holds in pairs."""
    attach = define_module_pass("_AttachBytePairs", _attach)()
    return Sequential([attach, DeadCodeElimination()], name="AttachBytePairs")
