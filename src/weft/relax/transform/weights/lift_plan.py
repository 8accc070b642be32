"""Which bindings of a function depend on weights only, so that LiftTransformParams may lift them.

The attribute ``num_input`` counts the leading parameters that are inputs; the others are weights. A
binding can be lifted if it is in a dataflow block, uses only weights and liftable bindings, and has
only symbolic variables of weights. ``R.builtin.stop_lift_params`` ends a chain. A value that does
not depend on any weight (``R.zeros``) is not passed to the run-time function, which computes it
again instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax.analysis.variables import free_vars
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    ExternFunc,
    Function,
    MatchCast,
    SeqExpr,
    Var,
)
from weft.relax.expr_functor import PyExprVisitor
from weft.relax.ir.lattice import defining_vars, symbolic_vars
from weft.tir.expr import Var as TirVar

STOP: Final = Op.get("relax.builtin.stop_lift_params")


def definable_symbols(params: Iterable[Var]) -> dict[TirVar, None]:
    """The symbolic variables that parameters define, in order."""
    return {symbol: None for param in params for symbol in defining_vars(param.struct_info)}


@dataclass
class LiftPlan:
    """The part of a function that can be computed from its weights before it runs."""

    func: Function
    lifted: list[Binding] = field(default_factory=list)
    """The liftable bindings, in order."""
    from_weights: set[Var] = field(default_factory=set)
    """The weights, and the variables computed from them."""
    at_runtime: set[Var | TirVar] = field(default_factory=set)
    """The graph and symbolic variables that the rest of the function uses."""

    @property
    def inputs(self) -> list[Var]:
        """The parameters that are inputs."""
        return [*self.func.params[: int(self.func.attrs["num_input"])]]

    @property
    def weights(self) -> list[Var]:
        """The parameters that are weights."""
        return [*self.func.params[int(self.func.attrs["num_input"]) :]]

    def outputs(self) -> list[Var]:
        """What the rest of the function needs: unchanged weights, then values from them."""
        lifted = [weight for weight in self.weights if weight in self.at_runtime]
        bound = [binding.var for binding in self.lifted]
        return lifted + [v for v in bound if v in self.from_weights and v in self.at_runtime]

    def symbols(self) -> list[TirVar]:
        """The symbolic variables needed at run time that weights define and the outputs do not."""
        known = definable_symbols([*self.inputs, *self.outputs()])
        return [
            symbol
            for symbol in definable_symbols(self.func.params)
            if symbol in self.at_runtime and symbol not in known
        ]


class _Collector(PyExprVisitor):
    def __init__(self, plan: LiftPlan, is_shared: Callable[[Var], bool]) -> None:
        self.plan, self.is_shared = plan, is_shared
        self.block: BindingBlock | None = None
        self.liftable: set[Var | TirVar] = {*plan.weights, *definable_symbols(plan.weights)}
        plan.from_weights.update(plan.weights)

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        for block in op.blocks:
            self.block = block
            for binding in block.bindings:
                self.visit_binding(binding)
        self.use(op.body)

    def visit_binding(self, binding: Binding) -> None:
        used = free_vars(binding.value)
        if self.can_lift(binding, used) and self.is_shared(binding.var):
            self.plan.lifted.append(binding)
            self.liftable.add(binding.var)
            if any(var in self.plan.from_weights for var in used):
                self.plan.from_weights.add(binding.var)
            else:
                self.use(binding.value)  # it is computed again at run time
        else:
            self.use(binding.value)
            if isinstance(binding, MatchCast):
                self.plan.at_runtime.update(symbolic_vars(binding.struct_info))

    def use(self, value: RelaxExpr) -> None:
        """Record the variables that an expression of the run-time function uses."""
        self.plan.at_runtime.update(free_vars(value))
        self.plan.at_runtime.update(symbolic_vars(value))

    def can_lift(self, binding: Binding, used: Iterable[Var]) -> bool:
        """Whether a binding depends on weights only."""
        value = binding.value
        if not isinstance(self.block, DataflowBlock) or isinstance(value, ExternFunc):
            return False
        if isinstance(value, Call) and value.op is STOP:
            return False
        symbols = [*symbolic_vars(value), *symbolic_vars(binding.var.struct_info)]
        return all(var in self.liftable for var in (*used, *symbols))


def lift_plan(func: Function, is_shared: Callable[[Var], bool] | None = None) -> LiftPlan:
    """The plan for a function with ``num_input``.

    If ``is_shared`` is given, only bindings of variables for which it returns True are lifted.
    """
    plan = LiftPlan(func)
    _Collector(plan, is_shared or (lambda var: True)).visit_expr(func.body)
    return plan
