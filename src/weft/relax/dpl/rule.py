"""Rewrite rules written as modules with two functions, ``pattern`` and ``replacement``.

::

    @R.rewriter
    class Double:
        @R.function
        def pattern(x: R.Tensor):
            return x + x

        @R.function
        def replacement(x: R.Tensor):
            return x * R.const(2.0)

A parameter matches any expression of its struct info; a symbolic variable matches any dimension.
Other functions of the module, which must be private, are added to the module that is rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from weft.ir.expr import GlobalVar, PrimExpr, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.functor import Mutator
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.relax.dpl.engine import RewriteCall
from weft.relax.dpl.kinds import CallPattern, DFPattern, StructInfoPattern
from weft.relax.dpl.leaves import ExprPattern, ExternFuncPattern, WildcardPattern
from weft.relax.dpl.matcher import Pattern
from weft.relax.dpl.tuples import TupleGetItemPattern, TuplePattern
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowVar,
    DataTypeImm,
    Expr,
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
from weft.support.errors import IRKeyError, IRTypeError, IRValueError, wrong_type
from weft.tir.expr import Var as TirVar


class Rule(NamedTuple):
    """Replace ``pattern`` by what ``replace`` returns, and add ``subroutines`` to the module."""

    pattern: DFPattern
    replace: RewriteCall
    subroutines: dict[GlobalVar, BaseFunc]


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

    def replace(
        expr: Expr,  # noqa: ARG001 - of the signature of every replacement
        matches: Mapping[Pattern, RelaxExpr],
    ) -> Expr:
        return _instance(replacement, [expect(matches[wildcard], Expr) for wildcard in wildcards])

    replace.__qualname__ = "the function 'replacement' of the module"
    return Rule(top, replace, _subroutines(mod))


def _subroutines(mod: IRModule) -> dict[GlobalVar, BaseFunc]:
    subroutines: dict[GlobalVar, BaseFunc] = {}
    for gvar, func in mod.functions.items():
        if gvar.name_hint in ("pattern", "replacement"):
            continue
        if "global_symbol" in func.attrs:
            raise IRValueError(
                "rewriter: expected module to have no publicly-exposed functions other than "
                f"pattern and replacement, but {gvar.name_hint!r} is publicly exposed; make it "
                "private=True"
            )
        subroutines[gvar] = func
    return subroutines


def _rule_function(mod: IRModule, name: str) -> Function:
    if name not in mod:
        raise IRKeyError(f"rewriter: expected a module with a function {name!r}, found none")
    func = mod[name]
    if not isinstance(func, Function):
        raise wrong_type(f"rewriter: expected {name!r} to be a graph function", func)
    return func


class _PatternMaker:
    """Converts the expressions of a function to patterns; each variable has one pattern."""

    def __init__(self, func: Function, wildcards: list[WildcardPattern]) -> None:
        self.known: dict[Var, DFPattern] = {
            param: StructInfoPattern(wildcard, param.struct_info)
            for param, wildcard in zip(func.params, wildcards, strict=True)
        }
        for block in func.body.blocks:
            for binding in block.bindings:
                value = self.of(binding.value)
                if isinstance(binding, MatchCast):
                    value = StructInfoPattern(value, binding.struct_info)
                self.known[binding.var] = value

    def of(self, expr: RelaxExpr) -> DFPattern:
        """The pattern of an expression."""
        if isinstance(expr, Var):
            return self.known[expr]
        if isinstance(expr, Call):
            call = CallPattern(
                self.of(expr.op), [self.of(arg) for arg in expr.args], add_constraint=False
            )
            return call.has_attr(expr.attrs) if expr.attrs else call
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

    def __init__(self, variables: dict[Var, Expr], symbols: Mapping[TirVar, PrimExpr]) -> None:
        super().__init__()
        self.variables, self.symbols = variables, symbols

    def visit_RelaxVar(self, var: Var) -> Expr:
        return self.variables.get(var, var)

    def visit_DataflowVar(self, var: Var) -> Expr:
        return self.variables.get(var, var)

    def visit_Var(self, var: TirVar) -> PrimExpr:
        return self.symbols.get(var, var)

    def visit_ShapeExpr(self, shape: ShapeExpr) -> ShapeExpr:
        return ShapeExpr([simplified(self.visit(dim)) for dim in shape.values])

    def visit_PrimValue(self, prim: PrimValue) -> PrimValue:
        value = self.visit(prim.value)
        return prim if value is prim.value else PrimValue(simplified(value))

    def visit_RelaxCall(self, call: Call) -> Call:
        args = [self.visit(arg) for arg in call.args]
        infos = [self.visit(info) for info in call.sinfo_args]
        callee: RelaxExpr = call.op
        return Call(self.visit(callee), args, call.attrs, infos, call.span)


def _instance(func: Function, arguments: list[Expr]) -> Expr:
    """The body of ``func`` for these arguments, with new variables, without struct info."""
    infos = [argument.struct_info for argument in arguments]
    symbols = match_params([param.struct_info for param in func.params], infos)
    variables: dict[Var, Expr] = dict(zip(func.params, arguments, strict=True))
    copy = _Instance(variables, symbols)
    bindings: list[Binding] = []
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
