"""Extents as text, which Python and C evaluate to the same numbers as native code.

A compiled function takes the shapes of its arguments as numbers. Its caller compares them with the
expected extents, which are stored as text over symbols. Python's integers have unlimited width, so
an operator whose result depends on the width or the sign of its operands is written out. An
expression that has no such text gives None: a check against another number than native code
computes would be no check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.tir import expr as e
from weft.tir.expr import is_call

_INFIX: Final = {
    e.Add: "+", e.Sub: "-", e.Mul: "*", e.FloorDiv: "//", e.FloorMod: "%",
    e.LT: "<", e.LE: "<=", e.GT: ">", e.GE: ">=", e.EQ: "==", e.NE: "!=",
}  # fmt: skip
_RING: Final = (e.Add, e.Sub, e.Mul)
"""Operators whose operands need not be wrapped: numbers equal modulo 2**bits stay equal."""
_WRAPS_IN: Final = 32
"""The width of sums and products that the text wraps where they may exceed it."""


def extent_text(
    expr: object, name: Callable[[e.Var], str], takes_any: Callable[[e.Var], bool] | None = None
) -> str | None:
    """The text of an integer expression, or None if no text computes the same number.

    ``name`` gives the name of a variable. ``takes_any`` says which variables may have any value of
    their type (scalar parameters). All others are extents of arrays, which are so small that adding
    a constant does not wrap. ``truncdiv(n, 2)`` gives ``(n // 2 if n >= 0 else
    0 - (0 - n) // 2)``; a narrowing cast gives None.
    """
    return _Writer(name, takes_any or (lambda var: False)).text(expr)


class _Writer:
    def __init__(self, name: Callable[[e.Var], str], takes_any: Callable[[e.Var], bool]) -> None:
        self.name = name
        self.takes_any = takes_any

    def text(self, expr: object) -> str | None:
        if isinstance(expr, IntImm):
            return str(expr.value)
        if isinstance(expr, e.Var):
            return self.name(expr)
        if isinstance(expr, e.Cast):
            return self.exact(expr.value) if _widens(expr) else None
        if isinstance(expr, (e.Div, e.Mod)):
            return self.truncated(expr)
        if isinstance(expr, e.Select):
            return self.choice(expr.condition, expr.true_value, expr.false_value)
        if is_call(expr, "if_then_else"):
            return self.choice(*expr.args)
        if isinstance(expr, (e.Not, e.And, e.Or)):
            return self.logic(expr)
        word = "min" if isinstance(expr, e.Min) else "max" if isinstance(expr, e.Max) else ""
        if not isinstance(expr, e.BinaryExpr) or (not word and type(expr) not in _INFIX):
            return None
        operand = self.text if isinstance(expr, _RING) else self.exact
        a, b = operand(expr.a), operand(expr.b)
        if a is None or b is None:
            return None
        return f"{word}({a}, {b})" if word else f"({a} {_INFIX[type(expr)]} {b})"

    def exact(self, expr: PrimExpr) -> str | None:
        """The text of an operand whose exact value matters, not only its value modulo 2**bits."""
        text = self.text(expr)
        if text is None or not self.may_wrap(expr):
            return text
        half = 1 << (_WRAPS_IN - 1)
        return f"(({text} + {half}) % {2 * half} - {half})"

    def may_wrap(self, expr: PrimExpr) -> bool:
        """Whether a 32-bit sum or product in this expression may overflow."""
        if expr.dtype.bits != _WRAPS_IN:
            return False
        if isinstance(expr, e.Select):
            return self.may_wrap(expr.true_value) or self.may_wrap(expr.false_value)
        if isinstance(expr, e.Call):
            return any(self.may_wrap(arg) for arg in expr.args[1:])
        if not isinstance(expr, _RING):
            return False
        if any(self.takes_any(var) for var in collect(expr, e.Var)):
            return True
        sides = (expr.a, expr.b)
        if isinstance(expr, e.Mul) and not any(isinstance(side, IntImm) for side in sides):
            return True
        return any(self.may_wrap(side) for side in sides)

    def choice(self, condition: PrimExpr, yes: PrimExpr, no: PrimExpr) -> str | None:
        parts = [self.exact(condition), self.text(yes), self.text(no)]
        if None in parts:
            return None
        return f"({parts[1]} if {parts[0]} else {parts[2]})"

    def logic(self, expr: e.Not | e.And | e.Or) -> str | None:
        """The text of a condition that is made of others: of a choice, which texts can say."""
        if isinstance(expr, e.Not):
            inner = self.exact(expr.a)
            return None if inner is None else f"(not {inner})"
        a, b = self.exact(expr.a), self.exact(expr.b)
        if a is None or b is None:
            return None
        return f"({b} if {a} else 0)" if isinstance(expr, e.And) else f"(1 if {a} else {b})"

    def truncated(self, expr: e.Div | e.Mod) -> str | None:
        """The text of a truncating division by a positive constant."""
        a = self.exact(expr.a)
        if a is None or not isinstance(expr.b, IntImm) or expr.b.value <= 0:
            return None
        word, b = "//" if isinstance(expr, e.Div) else "%", expr.b.value
        return f"({a} {word} {b} if {a} >= 0 else 0 - (0 - {a}) {word} {b})"


def _widens(cast: e.Cast) -> bool:
    """Whether the target type of a cast can hold every value of the source type."""
    old, new = cast.value.dtype, cast.dtype
    if not (old.is_integral and new.is_int):
        return False
    return old.bits <= new.bits if old.is_int else old.bits < new.bits
