"""Bounds of one variable from a condition: ``deduce_bound`` (TVM's ``arith.deduce_bound``).

The operators around the variable are moved to the other side one by one, from the outside in:
``x * 4 + 3 <= 30`` becomes ``x * 4 <= 27`` and then ``x <= 6``. Quotients are rounded such that
every value in the result makes the condition true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.facts import is_index
from weft.arith.interval import Domain, IntervalSet, IntSet, as_int_set
from weft.arith.interval_evaluator import SetEvaluator
from weft.ir.expr import PrimExpr, as_prim_expr
from weft.ir.node import Node
from weft.support.recursion import deep_recursion
from weft.tir.expr import EQ, GE, GT, LE, LT, SWAPPED, Add, CompareExpr, FloorDiv, Mul, Sub, Var

_FLIPPED: Final[dict[type, type]] = {LE: GE, GE: LE, EQ: EQ}


class _Undecided(ArithmeticError):
    """The condition cannot be solved for the variable."""


@deep_recursion
def deduce_bound(
    var: PrimExpr,
    cond: PrimExpr,
    hint_map: Mapping[Var, Domain] | None = None,
    relax_map: Mapping[Var, Domain] | None = None,
) -> IntervalSet:
    """The interval of ``var`` (a variable or any part of ``cond``) in which ``cond`` holds.

    Variables of ``relax_map`` take any value of their sets; those of ``hint_map`` stay symbols,
    their sets say what sign a factor has. The empty set where nothing can be deduced.
    """
    try:
        return _Deducer(var, hint_map or {}, relax_map or {}).deduce(as_prim_expr(cond))
    except (_Undecided, fold.ConstantOverflow):
        return IntSet.nothing()


class _Deducer:
    """Solves ``expr <kind> result`` for the target, where kind is LE, GE or EQ."""

    def __init__(
        self, target: PrimExpr, hints: Mapping[Var, Domain], relaxed: Mapping[Var, Domain]
    ) -> None:
        self.target = target
        self.analyzer = Analyzer()
        self.hints = self._evaluator(hints)
        self.relaxed = self._evaluator(relaxed)
        self.kind: type[CompareExpr] = EQ
        self.result: PrimExpr = target
        """What the side with the target is compared with, once ``deduce`` has found the sides."""

    def _evaluator(self, sets: Mapping[Var, Domain]) -> SetEvaluator:
        known = {var: as_int_set(value, self.analyzer) for var, value in sets.items()}
        return SetEvaluator(known, self.analyzer)

    def deduce(self, condition: PrimExpr) -> IntervalSet:
        """The interval; raises _Undecided."""
        if not isinstance(condition, (LT, LE, GT, GE, EQ)) or self._count(condition) != 1:
            raise _Undecided
        expr = self._oriented(condition)
        expr = self._relax(expr)
        if self._count(expr) != 1:
            raise _Undecided
        while expr is not self.target:
            step = _STEPS.get(type(expr))
            if step is None:
                raise _Undecided
            expr = step(self, expr)
        value = self.analyzer.simplify(self.result)
        everything = IntSet.everything()
        low = everything.min_value if self.kind is LE else value
        high = everything.max_value if self.kind is GE else value
        return IntervalSet(low, high)

    def _oriented(self, condition: CompareExpr) -> PrimExpr:
        """The side with the target; sets ``kind`` and ``result`` to what it is compared with."""
        kind: type[CompareExpr] = type(condition)
        expr, other = condition.a, condition.b
        if not self._count(expr):
            expr, other = other, expr
            kind = SWAPPED[kind]
        if not is_index(other.dtype):  # sums of other types wrap
            raise _Undecided
        step = fold.const(other.dtype, 1)
        if kind is LT:
            other, kind = fold.exact(fold.sub, other, step), LE
        elif kind is GT:
            other, kind = fold.exact(fold.add, other, step), GE
        self.kind, self.result = kind, other
        return expr

    def _relax(self, expr: PrimExpr) -> PrimExpr:
        """Both sides with the relaxed variables at the values that are hardest to satisfy."""
        mine, its = self.relaxed.visit(expr), self.relaxed.visit(self.result)
        if self.kind is EQ:
            if not (mine.is_single_point() and its.is_single_point()):
                raise _Undecided
        low = self.kind is GE
        expr = mine.min_value if low else mine.max_value
        self.result = its.max_value if low else its.min_value
        everything = IntSet.everything()
        ends = (everything.min_value, everything.max_value)
        if _is_among(expr, ends) or _is_among(self.result, ends):
            raise _Undecided
        return expr

    def _count(self, expr: Node) -> int:
        """How often the target occurs."""
        if expr is self.target:
            return 1
        total = 0
        for name in expr.CHILDREN:
            value = getattr(expr, name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Node):
                    total += self._count(item)
        return total

    def _sign(self, factor: PrimExpr) -> int:
        values = self.hints.visit(factor)
        if values.is_bounded or values.is_single_point():
            low = self.analyzer.const_int_bound(values.min_value).min_value
            high = self.analyzer.const_int_bound(values.max_value).max_value
            if low > 0 or high < 0:
                return 1 if low > 0 else -1
        raise _Undecided

    def add(self, expr: Add) -> PrimExpr:
        """``x + c <= r`` is ``x <= r - c``."""
        inner, other = (expr.a, expr.b) if self._count(expr.a) else (expr.b, expr.a)
        self.result = fold.exact(fold.sub, self.result, other)
        return inner

    def sub(self, expr: Sub) -> PrimExpr:
        """``x - c <= r`` is ``x <= r + c``; ``c - x <= r`` is ``x >= c - r``."""
        if self._count(expr.a):
            self.result = fold.exact(fold.add, self.result, expr.b)
            return expr.a
        self.result = fold.exact(fold.sub, expr.a, self.result)
        self.kind = _FLIPPED[self.kind]
        return expr.b

    def mul(self, expr: Mul) -> PrimExpr:
        """``x * c <= r`` is ``x <= r // c`` for a positive c."""
        inner, factor = (expr.a, expr.b) if self._count(expr.a) else (expr.b, expr.a)
        if self._sign(factor) < 0:
            self.kind = _FLIPPED[self.kind]
        zero = fold.const(factor.dtype, 0)
        exact = self.analyzer.can_prove_equal(fold.floormod(self.result, factor), zero)
        self.result = fold.floordiv(self.result, factor)
        if not exact:
            if self.kind is EQ:
                raise _Undecided
            if self.kind is GE:
                self.result = fold.exact(fold.add, self.result, fold.const(factor.dtype, 1))
        return inner

    def floordiv(self, expr: FloorDiv) -> PrimExpr:
        """``x // c >= r`` is ``x >= r * c``, ``x // c <= r`` is ``x <= r * c + c - 1``."""
        if self.kind is EQ or self._count(expr.b):
            raise _Undecided
        by, sign = expr.b, self._sign(expr.b)
        unit = fold.const(by.dtype, 1)
        if sign < 0:  # x // -c is (-x) // c: solve for -x, then negate the interval
            by = fold.exact(fold.sub, fold.const(by.dtype, 0), by)
        result = fold.exact(fold.mul, self.result, by)
        if self.kind is LE:
            result = fold.exact(fold.add, result, fold.exact(fold.sub, by, unit))
        if sign < 0:
            result = fold.exact(fold.sub, fold.const(by.dtype, 0), result)
            self.kind = _FLIPPED[self.kind]
        self.result = result
        return expr.a


def _is_among(expr: PrimExpr, items: tuple[PrimExpr, ...]) -> bool:
    for item in items:
        if item is expr:
            return True
    return False


_STEPS: Final[dict[type[PrimExpr], Callable[[_Deducer, Any], PrimExpr]]] = {
    Add: _Deducer.add, Sub: _Deducer.sub, Mul: _Deducer.mul, FloorDiv: _Deducer.floordiv,
}  # fmt: skip
