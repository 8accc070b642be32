"""What several functions of the same weights all compute from them (for LiftTransformParams).

The weights of the functions correspond by position. Two bindings of different functions are the
same value if their expressions are equal after replacing each function's variables by corresponding
ones. Values that every function computes are shared; the bindings of the first function are used
for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.ir.expr import RelaxExpr
from weft.ir.structural import structural_equal, structural_key
from weft.relax.expr import Binding, Function, Var, VarBinding
from weft.relax.ir.substitution import replace
from weft.relax.transform.weights.lift_plan import LiftPlan, definable_symbols, lift_plan
from weft.support.errors import PassError
from weft.tir.expr import Var as TirVar


@dataclass
class _Value:
    """A binding, and the indices of the functions that compute its value."""

    binding: VarBinding
    expr: RelaxExpr
    functions: set[int] = field(default_factory=set)


class SharedPlan:
    """The lift plans of several functions, and the function that they share."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.names = [*functions]
        self.functions = [*functions.values()]
        self.variables: dict[Var, Var] = {}
        self.symbols: dict[TirVar, TirVar] = {}
        self.match_weights()
        shared = self.match_bindings()
        self.plans = [lift_plan(func, self.variables.__contains__) for func in self.functions]
        self.whole = LiftPlan(self.functions[0], shared)
        for plan in self.plans:
            self.whole.from_weights.update(self.common(var) for var in plan.from_weights)
            self.whole.at_runtime.update(self.common(var) for var in plan.at_runtime)

    def common(self, var: Any) -> Any:
        """The first function's variable that corresponds to a variable of any function."""
        return self.variables.get(var) or self.symbols.get(var, var)

    def match_weights(self) -> None:
        """Match the weights of the functions by position; raises if struct infos differ."""
        first = LiftPlan(self.functions[0]).weights
        for name, func in zip(self.names, self.functions, strict=True):
            weights = LiftPlan(func).weights
            if len(weights) != len(first):
                raise PassError(
                    f"LiftTransformParams: functions that share a transform have the same weights: "
                    f"{self.names[0]} has {len(first)}, {name} has {len(weights)}"
                )
            for mine, its in zip(weights, first, strict=True):
                if not structural_equal(mine.struct_info, its.struct_info, map_free_vars=True):
                    raise PassError(
                        f"LiftTransformParams: weight {mine.name_hint} of {name}: expected "
                        f"{its.struct_info} as in {self.names[0]}, got {mine.struct_info}"
                    )
                self.variables[mine] = its
                pairs = zip(definable_symbols([mine]), definable_symbols([its]), strict=True)
                self.symbols.update(pairs)

    def match_bindings(self) -> list[Binding]:
        """Match bindings of the same value; returns the shared bindings of the first function."""
        values: dict[Any, list[_Value]] = {}
        value_of: dict[Var, _Value] = {}
        common = dict(self.variables)
        for number, func in enumerate(self.functions):
            for binding in lift_plan(func).lifted:
                if not isinstance(binding, VarBinding):
                    continue
                expr = replace(binding.value, common, self.symbols)
                same = values.setdefault(structural_key(expr), [])
                value = next((v for v in same if structural_equal(v.expr, expr)), None)
                if value is None:
                    value = _Value(binding, expr)
                    same.append(value)
                value.functions.add(number)
                value_of[binding.var] = value
                common[binding.var] = value.binding.var
        shared: list[Binding] = []
        for var, value in value_of.items():
            if len(value.functions) == len(self.functions):
                self.variables[var] = value.binding.var
                if var is value.binding.var:
                    shared.append(value.binding)
        return shared

    def outputs_of(self, number: int) -> list[list[Var]]:
        """For each output of the shared function, the variables of function ``number`` for it.

        If the function does not use an output, that is a new variable.
        """
        locals_of: dict[Var, list[Var]] = {}
        plan = self.plans[number]
        for var in [*plan.weights, *[binding.var for binding in plan.lifted]]:
            locals_of.setdefault(self.variables[var], []).append(var)
        back = dict(
            zip(definable_symbols(self.whole.weights), definable_symbols(plan.weights), strict=True)
        )
        return [
            locals_of.get(var) or [Var(var.name_hint, replace(var.struct_info, symbols=back))]
            for var in self.whole.outputs()
        ]

    def common_symbols(self) -> list[TirVar]:
        """The symbolic variables of weights that some function needs and no output defines."""
        known = definable_symbols(self.whole.outputs())
        return [
            symbol
            for symbol in definable_symbols(self.whole.weights)
            if symbol in self.whole.at_runtime and symbol not in known
        ]

    def symbols_of(self, number: int) -> list[TirVar]:
        """The variables of function ``number`` for the common symbols."""
        weights = definable_symbols(self.plans[number].weights)
        back = dict(zip(definable_symbols(self.whole.weights), weights, strict=True))
        return [back[symbol] for symbol in self.common_symbols()]
