"""How to write a graph pass: TVM's decorators, and the definitions of weft's own passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec

from weft.ir.expr import RelaxExpr
from weft.ir.module import IRModule, with_functions
from weft.ir.node import expect
from weft.ir.transform import (
    FunctionPass,
    PassContext,
    PassInfo,
    function_pass_decorator,
    pass_constructor,
)
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.expr import BindingBlock, Constant, DataflowBlock, Function, Var
from weft.relax.expr_functor import PyExprMutator
from weft.support.errors import PassError

P = ParamSpec("P")
function_pass = function_pass_decorator(Function)
"""``@relax.transform.function_pass(opt_level=0)`` on ``(func, mod, ctx) -> func`` or on a class
with ``transform_function``."""


class UnfusedFunctions(PyExprMutator):
    """A mutator that skips functions for another compiler, and functions that are fused already."""

    def visit_function_(self, op: Function) -> Function:
        """Rewrite a function unless its attributes say that it is one of these."""
        taken = {"Codegen", "Composite", "Primitive"} & set(op.attrs)
        return op if taken else expect(super().visit_function_(op), Function)


class _Blocks(PyExprMutator):
    def __init__(self, function: Callable[..., Any], mod: IRModule, ctx: PassContext) -> None:
        super().__init__()
        self.function, self.mod, self.ctx = function, mod, ctx

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        visited = super().visit_dataflow_block_(block)
        rewritten = self.function(visited, self.mod, self.ctx)
        if isinstance(rewritten, BindingBlock):
            return rewritten
        given = "None" if rewritten is None else type(rewritten).__name__
        raise PassError(f"expected a block, got {given}: end the pass with 'return block'")


def _over_blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(func: Function, mod: IRModule, ctx: PassContext) -> Any:
        return _Blocks(function, mod, ctx).visit_expr(func)

    return run


def dataflowblock_pass(
    pass_func: Any = None,
    opt_level: int = 0,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of ``(block, mod, ctx) -> block`` or a class with that as its method.

    The method is ``transform_dataflowblock``.
    """

    def apply(decorated: Any) -> Any:
        info = PassInfo(opt_level, name or decorated.__name__, tuple(required or ()), traceable)
        if not isinstance(decorated, type):
            return FunctionPass(_over_blocks(decorated), info, Function)

        def create(*args: Any, **kwargs: Any) -> FunctionPass:
            instance: Any = decorated(*args, **kwargs)
            return FunctionPass(_over_blocks(instance.transform_dataflowblock), info, Function)

        create.__name__, create.__doc__ = decorated.__name__, decorated.__doc__
        return create

    return apply if pass_func is None else apply(pass_func)


def define_function_pass(
    name: str, function: Callable[Concatenate[Function, P], Function | None], opt_level: int = 0
) -> Callable[P, FunctionPass]:
    """The constructor of the pass that runs ``function(func, ...)`` on each graph function."""

    def as_pass(run: Callable[[Function], Function | None]) -> FunctionPass:
        return FunctionPass(lambda func, mod, ctx: run(func), PassInfo(opt_level, name), Function)

    return pass_constructor(name, function, as_pass)


def define_operator_pass(
    name: str, function: Callable[Concatenate[Function, P], Function]
) -> Callable[P, FunctionPass]:
    """As ``define_function_pass``; what is not used after the rewriting is removed.

    A group of FuseOps stays as it is: its operators are chosen.
    """

    def as_pass(rewrite: Callable[[Function], Function]) -> FunctionPass:
        def cleaned(func: Function) -> Function:
            if func.attrs.get("Primitive"):
                return func
            rewritten = rewrite(func)
            return func if rewritten is func else remove_all_unused(rewritten)

        return FunctionPass(lambda func, mod, ctx: cleaned(func), PassInfo(0, name), Function)

    return pass_constructor(name, function, as_pass)


def over_functions(
    function: Callable[[Function, IRModule], Function],
) -> Callable[[IRModule], IRModule]:
    """A function of modules that runs ``function(func, mod)`` on each graph function ``func``."""

    def rewritten(mod: IRModule) -> IRModule:
        functions = {
            gvar: function(func, mod) if isinstance(func, Function) else func
            for gvar, func in mod.functions.items()
        }
        return with_functions(mod, functions)

    rewritten.__name__, rewritten.__doc__ = function.__name__, function.__doc__
    return rewritten


def bound_constant(mutator: PyExprMutator, arg: RelaxExpr) -> Constant | None:
    """The constant that ``arg`` is, or that a variable is bound to; None for other values."""
    value = mutator.lookup_binding(arg) if isinstance(arg, Var) else arg
    return value if isinstance(value, Constant) else None


def mutate_module(mod: IRModule, mutator: PyExprMutator) -> IRModule:
    """The module with each graph function rewritten by the mutator.

    Functions that the mutator has added to its builder (kernels) are in the result. If no function
    changed, the result is ``mod`` itself.
    """
    changed = False
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            rewritten = mutator.visit_expr(func)
            if rewritten is not func:
                mutator.builder_.update_func(gvar, rewritten)
                changed = True
    return mutator.builder_.get() if changed else mod
