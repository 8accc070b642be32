"""Solves a comparison for one loop variable, for all values of the inner loops' variables.

``surely(i*7 + j < 100, i, {j: [0, 6]})`` is ``(-inf, 13]``: for these ``i`` the comparison is true
for every ``j``. Bounds may contain variables of outer loops. LoopPartition and hoisting use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.canonical_simplify import as_sum
from weft.arith.int_set import IntervalSet, eval_set, neg_inf, pos_inf
from weft.arith.linear_form import Sum
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import contains, mentions
from weft.tir.buffer import BufferLoad
from weft.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    And,
    Call,
    CompareExpr,
    Not,
    Or,
    ProducerLoad,
    Var,
    is_call,
)

Domains = Mapping[Var, IntervalSet]

_DEPTH: Final = 4


def is_plain(condition: PrimExpr) -> bool:
    """Whether the condition is a comparison of scalar integers that reads no memory."""
    if not isinstance(condition, CompareExpr):
        return False
    dtype = condition.a.dtype
    if dtype.lanes != 1 or not dtype.is_int:
        return False
    return not contains(condition, (BufferLoad, Call, ProducerLoad))


def comparisons(condition: Any) -> list[CompareExpr]:
    """The integer comparisons in a condition, which may be joined by and, or, not."""
    if isinstance(condition, (And, Or)):
        return comparisons(condition.a) + comparisons(condition.b)
    if isinstance(condition, Not):
        return comparisons(condition.a)
    if is_call(condition, "likely"):
        return comparisons(condition.args[0])
    return [condition] if is_plain(condition) else []


class _Solver:
    """Solves ``expression >= 0``, for all values of the inner variables, for one variable."""

    def __init__(self, var: Var, inner: Domains, analyzer: Analyzer) -> None:
        self.var, self.inner, self.analyzer = var, inner, analyzer

    def mentions(self, expr: PrimExpr) -> bool:
        return mentions(expr, self.var)

    def not_negative(self, expr: PrimExpr, depth: int = _DEPTH) -> IntervalSet | None:
        """The interval where ``expr >= 0`` for all inner values; None if it is no interval."""
        form = as_sum(self.analyzer.canonical_form(expr))
        mine = [split for split in form.splits if self.mentions(split.index)]
        if len(mine) != 1 or depth == 0:
            return None
        split = mine[0]
        if split.upper is not None or (not split.floor and split.lower != 1):
            return None
        others = tuple(item for item in form.splits if item is not split)
        rest = eval_set(Sum(form.dtype, others, form.base).build(), self.inner, self.analyzer)
        low = rest.min_value
        if low is neg_inf() or low is pos_inf() or self.mentions(low):
            return None
        return self.scaled(split, low, depth)

    def scaled(self, split: Any, low: PrimExpr, depth: int) -> IntervalSet | None:
        """Solve ``split.scale * (split.index // split.lower) + low >= 0``."""
        dtype, scale = split.index.dtype, split.scale
        size = fold.const(dtype, abs(scale))
        if scale > 0:  # index // lower >= -(low // scale)
            bound = fold.sub(fold.const(dtype, 0), fold.floordiv(low, size))
        else:
            bound = fold.floordiv(low, size)
        factor = fold.const(dtype, split.lower)
        if scale > 0:
            bound = fold.mul(bound, factor)
            left = fold.sub(split.index, bound)
        else:  # index // lower <= bound
            bound = fold.add(fold.mul(bound, factor), fold.const(dtype, split.lower - 1))
            left = fold.sub(bound, split.index)
        if split.index is self.var:
            bound = self.analyzer.simplify(bound)
            ends = (bound, pos_inf()) if scale > 0 else (neg_inf(), bound)
            return IntervalSet(*ends)
        return self.not_negative(left, depth - 1)

    def holds(self, condition: Any) -> IntervalSet | None:
        """The interval where the comparison is true, or None."""
        kind, a, b = type(condition), condition.a, condition.b
        unit = fold.const(a.dtype, 1)
        if kind in (LT, LE):
            kind, a, b = (GT if kind is LT else GE), b, a
        if kind is GT:
            return self.not_negative(fold.sub(fold.sub(a, b), unit))
        if kind is GE:
            return self.not_negative(fold.sub(a, b))
        if kind is EQ:
            low, high = self.not_negative(fold.sub(a, b)), self.not_negative(fold.sub(b, a))
            return None if low is None or high is None else meet([low, high], self.analyzer)
        return None


def meet(sets: list[IntervalSet], analyzer: Analyzer) -> IntervalSet:
    """The intersection of intervals."""
    low, high = neg_inf(), pos_inf()
    for item in sets:
        low = _tighter(low, item.min_value, neg_inf(), analyzer, larger=True)
        high = _tighter(high, item.max_value, pos_inf(), analyzer, larger=False)
    return IntervalSet(low, high)


def _tighter(a: Any, b: Any, nothing: Any, analyzer: Analyzer, *, larger: bool) -> Any:
    if a is nothing:
        return b
    if b is nothing:
        return a
    if analyzer.can_prove(GE(a, b)):
        return a if larger else b
    if analyzer.can_prove(GE(b, a)):
        return b if larger else a
    return fold.max_(a, b) if larger else fold.min_(a, b)


def surely(condition: PrimExpr, var: Var, inner: Domains, analyzer: Analyzer) -> IntervalSet | None:
    """The values of ``var`` for which the comparison holds for all values of inner variables.

    None if they are no interval, or if the solver cannot find it.
    """
    if not is_plain(condition):
        return None
    solver = _Solver(var, inner, analyzer)
    if not solver.mentions(condition):
        return None
    interval = solver.holds(condition)
    return None if interval is None or is_empty(interval, analyzer) else interval


def is_empty(interval: IntervalSet, analyzer: Analyzer) -> bool:
    """Whether the interval is proved to be empty."""
    low, high = interval.min_value, interval.max_value
    if low is pos_inf() or high is neg_inf():
        return True
    if low is neg_inf() or high is pos_inf():
        return False
    if isinstance(low, IntImm) and isinstance(high, IntImm):
        return low.value > high.value
    return analyzer.can_prove(GT(low, high))


def are_large(bounds: list[PrimExpr], most: int) -> bool:
    """Whether the bounds of a range together have more than ``most`` nodes."""
    stack: list[object] = list(bounds)
    count = 0
    while stack and count <= most:
        item = stack.pop()
        count += 1
        stack += [getattr(item, name) for name in ("a", "b", "value") if hasattr(item, name)]
        stack.extend(getattr(item, "args", ()))  # += would make it an Array
    return count > most
