"""AttachAttrLayoutFreeBuffers: marks the inputs of PrimFuncs whose layout a schedule may choose.

These are weights (parameters after the first ``num_input``) and constants, which are prepared
before inference. A call ``call_tir(f, (x, w))`` with a weight ``w`` becomes a call of a copy of
``f`` with the attribute ``layout_free_buffers = [1]``; a call with weights in other places calls
another copy. Schedules that rewrite layouts use the attribute, and so does
SplitLayoutRewritePreproc after them. A variable that is another name of a weight is not recognised,
so CanonicalizeBindings should come before.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import Sequential, define_module_pass
from weft.relax.expr import Call, Constant, Function, Tuple, Var
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.base import CALL_TIR
from weft.relax.transform.graph.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.passes import mutate_module
from weft.tir.function import PrimFunc
from weft.tir.stmt_functor import renew_defs

ATTRIBUTE = "layout_free_buffers"


class _Attacher(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.weights: set[Var] = set()
        self.marked_kernels: dict[tuple[GlobalVar, tuple[int, ...]], GlobalVar] = {}

    def visit_function_(self, op: Function) -> Function:
        outer, count = self.weights, op.attrs.get("num_input")
        if count is not None:
            self.weights = set(op.params[int(count) :])
        rewritten = expect(super().visit_function_(op), Function)
        self.weights = outer
        return rewritten

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if call.op is not CALL_TIR:
            return call
        kernel, operands = call.args[:2]
        if not isinstance(kernel, GlobalVar) or kernel not in self.mod:
            return call
        func = self.mod[kernel]
        if not isinstance(func, PrimFunc):
            return call
        free = tuple(
            index
            for index, arg in enumerate(expect(operands, Tuple).fields)
            if isinstance(arg, Constant) or arg in self.weights
        )
        gvar = self.marked(kernel, func, free)
        if gvar is kernel:
            return call
        return Call(CALL_TIR, [gvar, *call.args[1:]], call.attrs, call.sinfo_args, call.span)

    def marked(self, gvar: GlobalVar, func: PrimFunc, free: tuple[int, ...]) -> GlobalVar:
        """The copy of a PrimFunc that has the inputs ``free`` in its attribute."""
        known = self.marked_kernels.get((gvar, free))
        if known is None:
            copy = renew_defs(func.with_attr(ATTRIBUTE, list(free)))
            known = self.marked_kernels[gvar, free] = self.builder_.add_func(copy, gvar.name_hint)
        return known


def _attach(mod: IRModule) -> IRModule:
    return mutate_module(mod, _Attacher(mod))


def AttachAttrLayoutFreeBuffers() -> Sequential:  # noqa: N802 - as TVM
    """Mark weights and constants among the inputs of PrimFuncs; remove PrimFuncs without calls."""
    attach = define_module_pass("_AttachAttrLayoutFreeBuffers", _attach)()
    return Sequential([attach, DeadCodeElimination()], name="AttachAttrLayoutFreeBuffers")
