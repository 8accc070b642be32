"""Rewrite rules written as modules: ``pattern`` and ``replacement``, two functions of one type.

::

    @R.rewriter
    class Double:
        @R.function
        def pattern(x: R.Tensor):
            return x + x

        @R.function
        def replacement(x: R.Tensor):
            return x * R.const(2.0)

A parameter is a wildcard of its struct info, whose symbolic variables stand for any dimension.
Further functions of the module, private ones, are added to the module that is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from weft.ir.expr import GlobalVar
from weft.ir.functor import Mutator
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.relax.dpl.kinds import (
    CallPattern,
    DFPattern,
    ExprPattern,
    ExternFuncPattern,
    StructInfoPattern,
    TupleGetItemPattern,
    TuplePattern,
    WildcardPattern,
)
from weft.relax.expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.ir.lattice import match_params
from weft.relax.ir.shape_arith import simplified
from weft.support.errors import IRKeyError, IRTypeError, IRValueError


class Rule(NamedTuple):
    """What a module says: replace ``pattern`` by what ``replace`` makes, add ``subroutines``."""

    pattern: DFPattern
    replace: Callable[[Any, Mapping[DFPattern, Any]], Any]
    subroutines: dict[GlobalVar, Any]


def rule_of_module(mod: IRModule) -> Rule:
    """The rule of a module with the functions ``pattern`` and ``replacement``."""
    pattern, replacement = (_rule_function(mod, name) for name in ("pattern", "replacement"))
    if not structural_equal(pattern.struct_info, replacement.struct_info):
        raise IRValueError(
            "rewriter: pattern and replacement must have the same signature, got "
            f"{pattern.struct_info} and {replacement.struct_info}"
        )
    wildcards = [WildcardPattern() for _ in pattern.params]
    top = _PatternMaker(pattern, wildcards).of(pattern.body.body)

    def replace(expr: Any, matches: Mapping[DFPattern, Any]) -> Any:  # noqa: ARG001 - its signature
        return _instance(replacement, [matches[wildcard] for wildcard in wildcards])

    replace.__qualname__ = "the function 'replacement' of the module"
    return Rule(top, replace, _subroutines(mod))


def _subroutines(mod: IRModule) -> dict[GlobalVar, Any]:
    found: dict[GlobalVar, Any] = {}
    for gvar, func in mod.functions.items():
        if gvar.name_hint in ("pattern", "replacement"):
            continue
        if "global_symbol" in func.attrs:
            raise IRValueError(
                "rewriter: expected module to have no publicly-exposed functions other than "
                f"pattern and replacement, but {gvar.name_hint!r} is publicly exposed; make it "
                "private=True"
            )
        found[gvar] = func
    return found


def _rule_function(mod: IRModule, name: str) -> Function:
    if name not in mod:
        raise IRKeyError(f"rewriter: expected a module with a function {name!r}, found none")
    func = mod[name]
    if not isinstance(func, Function):
        raise IRTypeError(
            f"rewriter: expected {name!r} to be a graph function, got {type(func).__name__}"
        )
    return func


class _PatternMaker:
    """Patterns of the expressions of a function; a variable has one pattern."""

    def __init__(self, func: Function, wildcards: list[WildcardPattern]) -> None:
        self.known: dict[Var, DFPattern] = {
            param: StructInfoPattern(wildcard, param.struct_info)
            for param, wildcard in zip(func.params, wildcards, strict=True)
        }
        for block in func.body.blocks:
            for binding in block.bindings:
                made = self.of(binding.value)
                if isinstance(binding, MatchCast):
                    made = StructInfoPattern(made, binding.struct_info)
                self.known[binding.var] = made

    def of(self, expr: Any) -> DFPattern:
        """The pattern of an expression."""
        if isinstance(expr, Var):
            return self.known[expr]
        if isinstance(expr, Call):
            made: DFPattern = CallPattern(
                self.of(expr.op), [self.of(arg) for arg in expr.args], add_constraint=False
            )
            return made.has_attr(expr.attrs) if expr.attrs else made
        if isinstance(expr, Tuple):
            return TuplePattern([self.of(item) for item in expr.fields])
        if isinstance(expr, TupleGetItem):
            return TupleGetItemPattern(self.of(expr.tuple_value), expr.index)
        if isinstance(expr, ExternFunc):
            return ExternFuncPattern(expr.global_symbol)
        if isinstance(expr, PrimValue | ShapeExpr):
            return StructInfoPattern(WildcardPattern(), expr.struct_info)
        if isinstance(expr, Op | Constant | StringImm | DataTypeImm):
            return ExprPattern(expr)
        raise IRTypeError(
            f"rewriter: a pattern cannot hold {type(expr).__name__}: {expr!s:.80}; write calls of "
            "operators and registered functions, tuples and their fields"
        )


class _Instance(Mutator):
    """Copies an expression without struct info, with variables and symbols replaced."""

    def __init__(self, variables: dict[Var, Any], symbols: Mapping[Any, Any]) -> None:
        super().__init__()
        self.variables, self.symbols = variables, symbols

    def visit_RelaxVar(self, var: Var) -> Any:
        return self.variables.get(var, var)

    def visit_DataflowVar(self, var: Var) -> Any:
        return self.variables.get(var, var)

    def visit_Var(self, var: Any) -> Any:
        return self.symbols.get(var, var)

    def visit_ShapeExpr(self, shape: ShapeExpr) -> Any:
        return ShapeExpr([simplified(self.visit(dim)) for dim in shape.values])

    def visit_PrimValue(self, prim: PrimValue) -> Any:
        made = self.visit(prim.value)
        return prim if made is prim.value else PrimValue(simplified(made))

    def visit_RelaxCall(self, call: Call) -> Any:
        args = [self.visit(arg) for arg in call.args]
        infos = [self.visit(info) for info in call.sinfo_args]
        return Call(self.visit(call.op), args, call.attrs, infos, call.span)


def _instance(func: Function, arguments: list[Any]) -> Any:
    """The body of ``func`` on these arguments, its variables new and without struct info."""
    infos = [argument.struct_info for argument in arguments]
    symbols = match_params([param.struct_info for param in func.params], infos)
    variables: dict[Var, Any] = dict(zip(func.params, arguments, strict=True))
    copy = _Instance(variables, symbols)
    bindings: list[Any] = []
    for block in func.body.blocks:
        for binding in block.bindings:
            value = copy.visit(binding.value)
            if isinstance(value, Var) and isinstance(binding, VarBinding):
                variables[binding.var] = value
                continue
            new = DataflowVar(binding.var.name_hint)
            variables[binding.var] = new
            if isinstance(binding, MatchCast):
                info = copy.visit(binding.struct_info)
                new.struct_info = info
                bindings.append(MatchCast(new, value, info))
            else:
                bindings.append(VarBinding(new, value))
    body = copy.visit(func.body.body)
    return SeqExpr([BindingBlock(bindings)], body) if bindings else body
