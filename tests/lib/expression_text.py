"""Expressions written as Python text: how tables of the tests of arith say what they mean.

``expression("(i*4 + j) // 4 < n", variables)``: Python's operators and numbers, ``min``, ``max``,
``div`` and ``mod`` (rounded towards zero), ``select``, ``ite``, and casts by the name of a type.
Nothing is simplified on the way.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.tir import expr as nodes
from weft.tir import op

_OPERATORS: Final[dict[type, type[PrimExpr]]] = {
    ast.Add: nodes.Add, ast.Sub: nodes.Sub, ast.Mult: nodes.Mul, ast.FloorDiv: nodes.FloorDiv,
    ast.Mod: nodes.FloorMod, ast.Eq: nodes.EQ, ast.NotEq: nodes.NE, ast.Lt: nodes.LT,
    ast.LtE: nodes.LE, ast.Gt: nodes.GT, ast.GtE: nodes.GE, ast.And: nodes.And, ast.Or: nodes.Or,
}  # fmt: skip
_FUNCTIONS: Final[dict[str, type[PrimExpr]]] = {
    "min": nodes.Min, "max": nodes.Max, "div": nodes.Div, "mod": nodes.Mod,
    "truncdiv": nodes.Div, "truncmod": nodes.Mod, "select": nodes.Select,
}  # fmt: skip


def expression(text: str, names: Mapping[str, PrimExpr], dtype: str = "int32") -> PrimExpr:
    """The expression that ``text`` says; numbers are of ``dtype``, or of what stands beside."""
    return _Builder(names, dtype).build(ast.parse(text, mode="eval").body)


def analyzer_of(text: str, names: Mapping[str, nodes.Var]) -> Analyzer:
    """An Analyzer that knows facts such as ``"i < 8, 2 <= j < n"``; without a begin it is 0."""
    analyzer = Analyzer()
    for part in filter(None, (part.strip() for part in text.split(","))):
        ends = part.split("<")
        low = int(ends.pop(0)) if ends[0].strip().isdigit() else 0
        name, high = ends[0].strip(" ="), expression(ends[1].strip(), names)
        var = names[name]
        begin = IntImm(high.dtype, low)
        extent = IntImm(high.dtype, high.value - low) if isinstance(high, IntImm) else high
        analyzer.bind(var, Range.from_min_extent(begin, extent))
    return analyzer


class _Builder:
    """Walks Python's syntax tree."""

    def __init__(self, names: Mapping[str, PrimExpr], dtype: str) -> None:
        self.names = names
        self.dtype = dtype

    def build(self, tree: ast.expr) -> PrimExpr:
        match tree:
            case ast.Name(id=name):
                return self.names[name]
            case ast.Constant(value=bool() as truth):
                return IntImm("bool", int(truth))
            case ast.Constant(value=int() as number):
                return IntImm(self.dtype, number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
                return IntImm(self.dtype, -number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.binary(nodes.Sub, IntImm(self.dtype, 0), self.build(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return nodes.Not(self.build(operand))
            case ast.BinOp(left=a, op=kind, right=b):
                return self.binary(_OPERATORS[type(kind)], self.build(a), self.build(b))
            case ast.Compare(left=a, ops=[order], comparators=[b]):
                return self.binary(_OPERATORS[type(order)], self.build(a), self.build(b))
            case ast.BoolOp(op=join, values=[first, *rest]):
                total = self.build(first)
                for part in rest:
                    total = _OPERATORS[type(join)](total, self.build(part))
                return total
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.call(name, [self.build(argument) for argument in arguments])
        raise ValueError(f"no expression: {ast.unparse(tree)}")

    def binary(self, kind: type[PrimExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr:
        """A node of two operands; a number takes the type of the other operand."""
        if a.dtype is not b.dtype and isinstance(b, IntImm):
            b = IntImm(a.dtype, b.value)
        elif a.dtype is not b.dtype and isinstance(a, IntImm):
            a = IntImm(b.dtype, a.value)
        return kind(a, b)

    def call(self, name: str, arguments: list[PrimExpr]) -> PrimExpr:
        if name == "ite":
            condition, true_value, false_value = arguments
            return op.if_then_else(condition, true_value, false_value)
        if name in _FUNCTIONS:
            return _FUNCTIONS[name](*arguments)
        return nodes.Cast(name, *arguments)
