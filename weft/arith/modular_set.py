"""Modular sets: what is known of an integer expression as ``coeff * k + base``.

``coeff`` 0 is a constant, 1 says nothing. Follows TVM's ModularSet.
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
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Select,
    SizeVar,
    Sub,
    Var,
)

Entry = tuple[int, int]
_ANY: Final[Entry] = (1, 0)


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


def _meet(a: Entry, b: Entry) -> Entry:
    """The stronger of two facts (their common solutions are not computed)."""
    if a[0] == 0 or (b[0] != 0 and a[0] >= b[0]):
        return a
    return b


class ModularSetAnalyzer:
    """Computes modular sets under the facts of an Analyzer."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def modular(self, expr: PrimExpr) -> Entry:
        """(coeff, base)."""
        kind = type(expr)
        if kind is IntImm:
            return 0, expr.value  # type: ignore[attr-defined]
        handler = _HANDLERS.get(kind)
        if handler is None or not is_index(expr.dtype):
            return _ANY
        found = self.facts.modular_memo.get(id(expr))
        if found is not None:
            return found[1]
        result = handler(self, expr)
        if result[0] and has_data(expr):  # what wraps keeps its remainder by powers of two only
            result = _make(result[0] & -result[0], result[1])
        for known, coeff, base in self.facts.expr_modular:
            if expr_deep_equal(known, expr):
                result = _meet((coeff, base), result)
        self.facts.modular_memo[id(expr)] = expr, result
        return result

    def divides(self, expr: PrimExpr, factor: int) -> bool:
        """Whether ``expr`` is a multiple of ``factor``."""
        coeff, base = self.modular(expr)
        return coeff % factor == 0 and base % factor == 0

    def visit_var(self, expr: Any) -> Entry:
        self.facts.seen.add(expr)
        return self.facts.modular.get(expr, _ANY)

    def visit_add(self, expr: Any) -> Entry:
        a, b = self.modular(expr.a), self.modular(expr.b)
        return _make(gcd(a[0], b[0]), a[1] + b[1])

    def visit_sub(self, expr: Any) -> Entry:
        a, b = self.modular(expr.a), self.modular(expr.b)
        return _make(gcd(a[0], b[0]), a[1] - b[1])

    def visit_mul(self, expr: Any) -> Entry:
        a, b = self.modular(expr.a), self.modular(expr.b)
        return _make(gcd(gcd(a[0] * b[0], a[0] * b[1]), b[0] * a[1]), a[1] * b[1])

    def visit_floordiv(self, expr: Any) -> Entry:
        if type(expr.b) is not IntImm or expr.b.value == 0:
            return _ANY
        by = expr.b.value
        coeff, base = self.modular(expr.a)
        return _make(coeff // by, base // by) if coeff % by == 0 else _ANY

    def visit_truncdiv(self, expr: Any) -> Entry:
        if type(expr.b) is not IntImm or expr.b.value == 0:
            return _ANY
        by = expr.b.value
        coeff, base = self.modular(expr.a)
        return _make(coeff // by, base // by) if coeff % by == 0 and base % by == 0 else _ANY

    def visit_floormod(self, expr: Any) -> Entry:
        if type(expr.b) is not IntImm or expr.b.value == 0:
            return _ANY
        coeff, base = self.modular(expr.a)
        if coeff == 0:
            return 0, base % expr.b.value
        return _make(gcd(coeff, expr.b.value), base)

    def visit_choice(self, expr: Any) -> Entry:
        return _union(self.modular(expr.a), self.modular(expr.b))

    def visit_select(self, expr: Any) -> Entry:
        return _union(self.modular(expr.true_value), self.modular(expr.false_value))

    def visit_cast(self, expr: Any) -> Entry:
        source, target = expr.value.dtype, expr.dtype
        wide = is_index(source) and target.is_int and target.bits >= source.bits
        return self.modular(expr.value) if wide else _ANY


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
}
