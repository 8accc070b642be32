"""Replacing variables: graph variables by expressions, symbolic variables by scalar expressions.

Unlike the expression mutator this infers nothing again: it replaces the symbols in every struct
info, those of bound variables included, so that the result is as well formed as the input. It is
used to bind parameters and symbols, to copy functions and to inline calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.functor import Mutator
from weft.ir.node import Array
from weft.relax.expr import Call, Function, If, MatchCast, PrimValue, ShapeExpr, Var, VarBinding
from weft.relax.ir.shape_arith import simplified
from weft.relax.struct_info import ShapeStructInfo, StructInfo
from weft.support.recursion import deep_recursion
from weft.tir.expr import Var as TirVar

Root = TypeVar("Root")
InfoOrNone = TypeVar("InfoOrNone", StructInfo, StructInfo | None)
AnyShape = TypeVar("AnyShape", ShapeExpr, ShapeStructInfo)


class Substitution(Mutator):
    """Replaces by identity; with ``fresh`` every bound graph variable becomes a new one."""

    def __init__(
        self,
        variables: Mapping[Var, RelaxExpr] | None = None,
        symbols: Mapping[TirVar, PrimExpr] | None = None,
        fresh: bool = False,
    ) -> None:
        super().__init__()
        self.variables: dict[Var, RelaxExpr] = dict(variables or {})
        self.symbols = dict(symbols or {})
        self.fresh = fresh
        self._infos: dict[int, tuple[StructInfo, StructInfo]] = {}

    def info(self, info: InfoOrNone) -> InfoOrNone:
        """A struct info with the symbols replaced."""
        if info is None or not (self.symbols or self.variables):
            return info
        known = self._infos.get(id(info))
        if known is None:
            known = self._infos[id(info)] = (info, self.visit(info))
        return known[1]

    def visit_Var(self, var: TirVar) -> PrimExpr:
        return self.symbols.get(var, var)

    def visit_ShapeExpr(self, shape: ShapeExpr) -> ShapeExpr:
        return self.simplified(shape)

    def visit_ShapeStructInfo(self, info: ShapeStructInfo) -> ShapeStructInfo:
        return self.simplified(info)

    def simplified(self, shape: AnyShape) -> AnyShape:
        """A shape with the symbols replaced and the new dimensions in simplest form."""
        if shape.values is None:
            return shape
        values = [self.number(value) for value in shape.values]
        same = all(new is old for new, old in zip(values, shape.values, strict=True))
        return shape if same else shape.with_(values=Array(values))

    def number(self, value: PrimExpr) -> PrimExpr:
        """A scalar expression with the symbols replaced, in simplest form if one was."""
        number: PrimExpr = self.visit(value)
        return number if number is value else simplified(number)

    def visit_PrimValue(self, value: PrimValue) -> PrimValue:
        number = self.number(value.value)
        return value if number is value.value else PrimValue(number, span=value.span)

    def visit_RelaxVar(self, var: Var) -> RelaxExpr:
        replacement = self.variables.get(var)
        return var if replacement is None else replacement

    def visit_RelaxCall(self, call: Call) -> Call:
        rebuilt: Call = self.visit_default(call)
        if rebuilt is not call or self.symbols:
            info = self.info(call.struct_info)
            if rebuilt is call and info is not call.struct_info:
                rebuilt = Call(call.op, call.args, call.attrs, call.sinfo_args, call.span)
            rebuilt.struct_info = info
        return rebuilt

    def define(self, var: Var) -> Var:
        """The variable that a binding defines: itself, or a new one."""
        replacement = self.variables.get(var)
        if isinstance(replacement, Var):
            return replacement
        info = self.info(var.struct_info)
        if info is var.struct_info and not self.fresh:
            return var
        fresh = type(var)(var.name_hint, info)
        self.variables[var] = fresh
        return fresh

    def visit_VarBinding(self, binding: VarBinding) -> VarBinding:
        value = self.visit(binding.value)
        return binding.with_(var=self.define(binding.var), value=value)

    def visit_MatchCast(self, binding: MatchCast) -> MatchCast:
        value = self.visit(binding.value)
        info = self.info(binding.struct_info)
        return binding.with_(var=self.define(binding.var), value=value, struct_info=info)

    def visit_Function(self, func: Function) -> Function:
        params = [self.define(param) for param in func.params]
        same = all(new is old for new, old in zip(params, func.params, strict=True))
        return func.with_(
            params=func.params if same else Array(params),
            body=self.visit(func.body),
            ret_struct_info=self.info(func.ret_struct_info),
        )

    def visit_If(self, node: If) -> If:
        rebuilt: If = self.visit_default(node)
        if rebuilt is not node:
            rebuilt.struct_info = self.info(node.struct_info)
        return rebuilt


@deep_recursion
def replace(
    root: Root,
    variables: Mapping[Var, RelaxExpr] | None = None,
    symbols: Mapping[TirVar, PrimExpr] | None = None,
) -> Root:
    """``root`` with graph variables and symbolic variables replaced."""
    if not variables and not symbols:
        return root
    return Substitution(variables, symbols).visit(root)


@deep_recursion
def copy_with_new_vars(func: Function) -> Function:
    """The function with new parameters and bound variables."""
    return Substitution(fresh=True).visit(func)
