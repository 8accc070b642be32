"""Modular sets: an integer expression is known to be ``coeff * k + base`` for some ``k``.

``coeff`` 0 means the constant ``base``; ``coeff`` 1 says nothing. Follows TVM's ModularSet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any, Final

from weft.arith.data import has_data
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.facts import Facts, is_index
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.node import Node
from weft.tir.expr import (
    Add,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Select,
    SizeVar,
    Sub,
    Var,
)

Entry = tuple[int, int]
_ANY: Final[Entry] = (1, 0)
_LARGEST: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class ModularSet:
    """The numbers ``coeff * k + base``."""

    coeff: int
    base: int


def _make(coeff: int, base: int) -> Entry:
    coeff = abs(coeff)
    return (coeff, base % coeff) if coeff else (0, base)


def _union(a: Entry, b: Entry) -> Entry:
    return _make(gcd(gcd(a[0], b[0]), abs(a[1] - b[1])), a[1])


def meet(a: Entry, b: Entry) -> Entry:
    """The numbers that fulfil two facts (by the Chinese remainder theorem).

    If the facts exclude each other, as in code that never runs, the stronger one is returned.
    """
    if a[0] == 0 or b[0] == 0:
        return a if a[0] == 0 else b
    step = gcd(a[0], b[0])
    if (b[1] - a[1]) % step or a[0] // step * b[0] > _LARGEST:
        return a if a[0] >= b[0] else b
    other = b[0] // step
    times = (b[1] - a[1]) // step * pow(a[0] // step, -1, other) % other if other > 1 else 0
    return _make(a[0] * other, a[1] + a[0] * times)


class ModularSetAnalyzer:
    """Computes modular sets under the facts of an Analyzer."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.nonnegative: Callable[[PrimExpr], bool] = _unknown_sign

    def modular(self, expr: PrimExpr) -> Entry:
        """(coeff, base)."""
        if type(expr) is IntImm:
            return 0, expr.value
        handler = _HANDLERS.get(type(expr))
        if handler is None or not is_index(expr.dtype):
            return _ANY
        memoised = self.facts.modular_memo.get(id(expr))
        if memoised is not None:
            return memoised[1]
        result = handler(self, expr)
        if result[0] and has_data(expr):  # wrapping keeps remainders by powers of two only
            result = _make(result[0] & -result[0], result[1])
        for known, coeff, base in self.facts.expr_modular:
            if expr_deep_equal(known, expr):
                result = meet((coeff, base), result)
        self.facts.modular_memo[id(expr)] = expr, result
        return result

    def divides(self, expr: PrimExpr, factor: int) -> bool:
        """Whether ``expr`` is a multiple of ``factor``."""
        coeff, base = self.modular(expr)
        return coeff % factor == 0 and base % factor == 0

    def visit_var(self, expr: Var) -> Entry:
        self.facts.seen.add(expr)
        return self.facts.modular.get(expr, _ANY)

    def visit_add(self, expr: Add) -> Entry:
        a, b = self.modular(expr.a), self.modular(expr.b)
        return _make(gcd(a[0], b[0]), a[1] + b[1])

    def visit_sub(self, expr: Sub) -> Entry:
        a, b = self.modular(expr.a), self.modular(expr.b)
        return _make(gcd(a[0], b[0]), a[1] - b[1])

    def visit_mul(self, expr: Mul) -> Entry:
        a, b = self.modular(expr.a), self.modular(expr.b)
        return _make(gcd(gcd(a[0] * b[0], a[0] * b[1]), b[0] * a[1]), a[1] * b[1])

    def visit_floordiv(self, expr: FloorDiv) -> Entry:
        if type(expr.b) is not IntImm or expr.b.value == 0:
            return _ANY
        by = expr.b.value
        coeff, base = self.modular(expr.a)
        return _make(coeff // by, base // by) if coeff % by == 0 else _ANY

    def visit_truncdiv(self, expr: Div) -> Entry:
        if type(expr.b) is not IntImm or expr.b.value == 0:
            return _ANY
        by = expr.b.value
        coeff, base = self.modular(expr.a)
        if coeff % by == 0 and (base % by == 0 or (by > 0 and self.nonnegative(expr.a))):
            return _make(coeff // by, base // by)
        return _ANY

    def visit_truncmod(self, expr: Mod) -> Entry:
        if type(expr.b) is not IntImm or expr.b.value == 0:
            return _ANY
        if self.nonnegative(expr.a) and expr.b.value > 0:
            return self.visit_floormod(expr)
        coeff, base = self.modular(expr.a)
        step = gcd(coeff, expr.b.value)
        return (step, 0) if coeff and base % step == 0 else _ANY

    def visit_call(self, expr: Call) -> Entry:
        name = getattr(expr.op, "name", "")
        if name == "tir.likely":
            return self.modular(expr.args[0])
        if name not in ("tir.shift_right", "tir.bitwise_and"):
            return _ANY
        coeff, base = self.modular(expr.args[0])
        value = expr.args[1].value if type(expr.args[1]) is IntImm else -1
        if name == "tir.shift_right" and 0 <= value < expr.dtype.bits:
            return _make(coeff >> value, base >> value) if coeff % (1 << value) == 0 else _ANY
        if name == "tir.bitwise_and" and value > 0 and value & (value + 1) == 0:
            return _make(gcd(coeff, value + 1), base) if coeff else (0, base & value)
        return _ANY

    def visit_let(self, expr: Let) -> Entry:
        if expr.var not in self.facts.modular:
            self.facts.modular[expr.var] = self.modular(expr.value)
        return self.modular(expr.body)

    def visit_floormod(self, expr: FloorMod | Mod) -> Entry:
        if type(expr.b) is not IntImm or expr.b.value == 0:
            return _ANY
        coeff, base = self.modular(expr.a)
        if coeff == 0:
            return 0, base % expr.b.value
        return _make(gcd(coeff, expr.b.value), base)

    def visit_choice(self, expr: Min | Max) -> Entry:
        return _union(self.modular(expr.a), self.modular(expr.b))

    def visit_select(self, expr: Select) -> Entry:
        return _union(self.modular(expr.true_value), self.modular(expr.false_value))

    def visit_cast(self, expr: Cast) -> Entry:
        source, target = expr.value.dtype, expr.dtype
        wide = is_index(source) and target.is_int and target.bits >= source.bits
        return self.modular(expr.value) if wide else _ANY


def _unknown_sign(expr: PrimExpr) -> bool:
    return False


_HANDLERS: Final[dict[type[Node], Callable[[ModularSetAnalyzer, Any], Entry]]] = {
    Var: ModularSetAnalyzer.visit_var,
    SizeVar: ModularSetAnalyzer.visit_var,
    Add: ModularSetAnalyzer.visit_add,
    Sub: ModularSetAnalyzer.visit_sub,
    Mul: ModularSetAnalyzer.visit_mul,
    FloorDiv: ModularSetAnalyzer.visit_floordiv,
    Div: ModularSetAnalyzer.visit_truncdiv,
    FloorMod: ModularSetAnalyzer.visit_floormod,
    Min: ModularSetAnalyzer.visit_choice,
    Max: ModularSetAnalyzer.visit_choice,
    Select: ModularSetAnalyzer.visit_select,
    Cast: ModularSetAnalyzer.visit_cast,
    Mod: ModularSetAnalyzer.visit_truncmod,
    Call: ModularSetAnalyzer.visit_call,
    Let: ModularSetAnalyzer.visit_let,
}
