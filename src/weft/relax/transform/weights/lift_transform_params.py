"""LiftTransformParams: moves computations on weights only to a function of their own.

Before: ``main(x, w)`` with ``num_input`` 1: ``t = R.permute_dims(w); y = R.matmul(x, t)``. After:
``main(x, t): y = R.matmul(x, t)`` and ``main_transform_params(params): t =
R.permute_dims(params[0]); return (t,)``, which is called once, before the first inference. In its
result, weights that are used unchanged come first; symbolic variables that only weights define come
before them, as one shape.

With ``shared_transform``, several functions of the same weights share one function,
``transform_params``, which computes what all of them have in common. If the module has such a
function already, the new one is applied to its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import Pass, PassContext, define_module_pass
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Function,
    SeqExpr,
    ShapeExpr,
    Tuple,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import match_params
from weft.relax.ir.substitution import replace
from weft.relax.rewrite.canonical import canonicalize_bindings
from weft.relax.struct_info import ShapeStructInfo
from weft.relax.transform.graph.lambda_lift import lambda_lift
from weft.relax.transform.weights.bundle_model_params import bundle_model_params
from weft.relax.transform.weights.consume_params import consume_params
from weft.relax.transform.weights.lift_plan import STOP, LiftPlan, lift_plan
from weft.relax.transform.weights.shared_weights import SharedPlan
from weft.relax.utils import copy_with_new_vars
from weft.support.errors import PassError
from weft.tir.expr import Var as TirVar

_SUFFIX = "transform_params"


class _WithoutLifted(PyExprMutator):
    """Drops lifted bindings and the marks that stop lifting."""

    def __init__(self, lifted: set[Var]) -> None:
        super().__init__()
        self.lifted = lifted

    def visit_binding(self, binding: Binding) -> None:
        if binding.var not in self.lifted:
            super().visit_binding(binding)

    def visit_call_(self, op: Call) -> RelaxExpr:
        return self.visit_expr(op.args[0]) if op.op is STOP else super().visit_call_(op)


def _transform_function(
    weights: list[Var], lifted: Sequence[Binding], symbols: list[TirVar], outputs: list[Var]
) -> Function:
    """The function that maps the tuple of weights to the tuple that the run-time function needs."""
    results: list[RelaxExpr] = [ShapeExpr(symbols)] if symbols else []
    whole = Tuple([*results, *outputs])
    if not whole.fields:
        body = SeqExpr([], whole)
    else:
        var = Var("output_tuple", whole.struct_info)
        body = SeqExpr([DataflowBlock([*lifted, VarBinding(var, whole)])], var)
    func = Function(weights, body, whole.struct_info, True, {"num_input": 0})
    bundled = bundle_model_params(copy_with_new_vars(func))
    return remove_all_unused(canonicalize_bindings(bundled))


def _runtime_function(
    plan: LiftPlan, symbols: list[TirVar], outputs: Sequence[Sequence[Var]]
) -> Function:
    """The function that takes what was computed from the weights.

    ``outputs`` has, for each value, all variables of the function that stand for it.
    """
    lifted = {binding.var for binding in plan.lifted if binding.var in plan.from_weights}
    body = _WithoutLifted(lifted).visit_expr(plan.func.body)
    params = [*plan.inputs]
    if symbols:
        params.append(Var("vars_from_compile_time_params", ShapeStructInfo(symbols)))
    param_of: dict[Var, Var] = {}
    for names in outputs:
        params.append(Var(names[0].name_hint, names[0].struct_info))
        param_of.update(dict.fromkeys(names, params[-1]))
    func = plan.func
    runtime = Function(
        params, replace(body, param_of), func.ret_struct_info, func.is_pure, func.attrs, func.span
    )
    return canonicalize_bindings(copy_with_new_vars(runtime))


def _composed(first: Function, second: Function) -> Function:
    """The function that passes the result of ``first`` to ``second``."""
    first, second = copy_with_new_vars(first), copy_with_new_vars(second)
    between = Var("between", first.body.body.struct_info)
    param = second.params[0]
    symbols = match_params([param.struct_info], [between.struct_info])
    inner = replace(second.body, {param: between}, symbols)
    blocks: list[BindingBlock] = []
    handed = DataflowBlock([VarBinding(between, first.body.body)])
    for block in (*first.body.blocks, handed, *inner.blocks):
        if blocks and isinstance(blocks[-1], DataflowBlock) and isinstance(block, DataflowBlock):
            blocks[-1] = DataflowBlock([*blocks[-1].bindings, *block.bindings])
        else:
            blocks.append(block)
    body = SeqExpr(blocks, inner.body)
    composed = Function(first.params, body, inner.body.struct_info, True, second.attrs)
    return remove_all_unused(canonicalize_bindings(composed))


@dataclass
class _Lifting:
    """The module while it is rewritten: the new functions, by name."""

    functions: dict[str, BaseFunc]

    def transform(self, name: str, func: Function) -> None:
        """Add a function of weights; if one of that name exists, it takes the result of that."""
        earlier = self.functions.get(name)
        is_first = earlier is None
        self.functions[name] = func if is_first else _composed(expect(earlier, Function), func)

    def each(self, targets: dict[str, Function]) -> None:
        """Lift from each function separately."""
        for name, func in targets.items():
            plan = lift_plan(func)
            symbols, outputs = plan.symbols(), plan.outputs()
            self.functions[name] = _runtime_function(plan, symbols, [[var] for var in outputs])
            transform = _transform_function(plan.weights, plan.lifted, symbols, outputs)
            self.transform(f"{name}_{_SUFFIX}", transform)

    def together(self, plan: SharedPlan) -> None:
        """Lift what all functions have in common."""
        whole = plan.whole
        for number, name in enumerate(plan.names):
            self.functions[name] = _runtime_function(
                plan.plans[number], plan.symbols_of(number), plan.outputs_of(number)
            )
        transform = _transform_function(
            whole.weights, whole.lifted, plan.common_symbols(), whole.outputs()
        )
        self.transform(_SUFFIX, transform)


def _targets(mod: IRModule, names: Sequence[str]) -> dict[str, Function]:
    """Name -> function, for the functions with ``num_input``, or for ``names`` if given."""
    functions: dict[str, BaseFunc] = {gvar.name_hint: func for gvar, func in mod.functions.items()}
    for name in names:
        func = functions.get(name)
        if not isinstance(func, Function) or "num_input" not in func.attrs:
            raise PassError(
                f"LiftTransformParams: expected {name!r} to be a graph function of the module with "
                "the attribute num_input"
            )
    if names:
        return {name: expect(functions[name], Function) for name in names}
    return {
        name: func
        for name, func in sorted(functions.items())
        if isinstance(func, Function) and "num_input" in func.attrs and not name.endswith(_SUFFIX)
    }


def lift_transform_params(
    mod: IRModule, shared_transform: bool | Sequence[str] = False
) -> IRModule:
    """The module with computations on weights only in functions of their own."""
    names = [] if isinstance(shared_transform, bool) else [*shared_transform]
    targets = _targets(mod, names)
    if not targets:
        return mod
    lifting = _Lifting({gvar.name_hint: func for gvar, func in mod.functions.items()})
    if shared_transform is False:
        lifting.each(targets)
    else:
        lifting.together(SharedPlan(targets))
    for name, func in lifting.functions.items():
        if name.endswith(_SUFFIX) and isinstance(func, Function):
            public = func.with_attr("global_symbol", name)
            config = PassContext.current().config
            consume = config.get("relax.lift_transform_params.consume_params", False)
            lifting.functions[name] = consume_params(public) if consume else public
    functions: dict[GlobalVar | str, BaseFunc] = {
        gvar if lifting.functions[gvar.name_hint] is func else gvar.name_hint: (
            lifting.functions.pop(gvar.name_hint)
        )
        for gvar, func in mod.functions.items()
    }
    functions.update(lifting.functions)
    return lambda_lift(IRModule(functions, None, mod.attrs, mod.global_infos))


def LiftTransformParams(  # noqa: N802 - TVM's name
    shared_transform: bool | Sequence[str] = False,
) -> Pass:
    """The pass that moves computations on weights only to ``<function>_transform_params``.

    With ``shared_transform``, they move to one function ``transform_params`` for all functions with
    ``num_input`` (True), or for the functions that are named.
    """
    if not isinstance(shared_transform, bool | list | tuple):
        raise PassError(
            "LiftTransformParams: shared_transform: expected a bool or a list of functions' names, "
            f"got {shared_transform!r}"
        )

    make = define_module_pass("LiftTransformParams", lift_transform_params, opt_level=1)
    return make(shared_transform)
