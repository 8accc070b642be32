"""Intervals with symbolic ends.

A missing end is the special variable ``neg_inf`` or ``pos_inf``, as in TVM. ``interval_evaluator``
computes the intervals of expressions; the public functions are in ``int_set``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, Union

from weft.arith import fold
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.facts import is_index
from weft.ir.expr import IntImm, PrimExpr, Range, as_prim_expr, integer_range
from weft.ir.node import Node, node, with_slots
from weft.support.errors import wrong_type
from weft.tir.expr import (
    Broadcast,
    Ramp,
    Var,
)
from weft.tir.op import match_types

Domain = Union["IntSet", Range, PrimExpr, int]
"""What may be given for a set of values: a set, a Range, or a point."""

POS_INF: Final = Var("pos_inf", "handle")
NEG_INF: Final = Var("neg_inf", "handle")


def pos_inf() -> Var:
    """The end of a set that has no upper bound."""
    return POS_INF


def neg_inf() -> Var:
    """The end of a set that has no lower bound."""
    return NEG_INF


class Prover(Protocol):
    """The part of an Analyzer that sets of values use."""

    def simplify(self, expr: PrimExpr) -> PrimExpr:
        """The expression, simplified under the known facts."""

    def const_int_bound(self, expr: PrimExpr) -> ConstIntBound:
        """The constant bounds of the expression."""

    def can_prove_equal(self, lhs: PrimExpr, rhs: PrimExpr) -> bool:
        """Whether both always have the same value."""

    def can_prove_greater_equal(self, expr: PrimExpr, lower_bound: int) -> bool:
        """Whether expr >= lower_bound always holds."""


@with_slots
class IntSet(Node):
    """The base of integer sets; every set is an interval."""

    min_value: PrimExpr
    max_value: PrimExpr

    @staticmethod
    def vector(vec: PrimExpr) -> IntervalSet:
        """The values of the lanes of a vector; of a scalar, that value."""
        expr = as_prim_expr(vec)
        if isinstance(expr, Broadcast):
            return IntervalSet(expr.value, expr.value)
        if isinstance(expr, Ramp) and isinstance(expr.lanes, IntImm):
            if not is_index(expr.stride.dtype):
                point = IntervalSet(expr.base, expr.base)
                return wrapping_lanes(point, expr.stride, expr.lanes.value)
            span = fold.mul(expr.stride, fold.const(expr.stride.dtype, expr.lanes.value - 1))
            if isinstance(span, IntImm):
                ends = [expr.base, fold.add(expr.base, span)]
                return IntervalSet(*(ends if span.value >= 0 else ends[::-1]))
        elif isinstance(expr, Ramp) and isinstance(expr.stride, IntImm):  # unknown number of lanes
            if expr.stride.value >= 0:
                return IntervalSet(expr.base, POS_INF)
            return IntervalSet(NEG_INF, expr.base)
        return IntSet.everything() if expr.dtype.lanes != 1 else IntervalSet(expr, expr)

    @staticmethod
    def single_point(point: PrimExpr | int) -> IntervalSet:
        """The set of one value."""
        value = as_prim_expr(point)
        return IntervalSet(value, value)

    @staticmethod
    def interval(min_value: PrimExpr | int, max_value: PrimExpr | int) -> IntervalSet:
        """The set [min_value, max_value]."""
        return IntervalSet(as_prim_expr(min_value), as_prim_expr(max_value))

    @staticmethod
    def from_range(rng: Range, analyzer: Prover | None = None) -> IntervalSet:
        """The values of a Range; if its ends have different types, in the wider one."""
        low, extent = rng.min, rng.extent
        if low.dtype is not extent.dtype:
            low, extent = match_types(low, extent)
        if isinstance(low, IntImm) and isinstance(extent, IntImm):
            return _of_numbers(low, extent.value)
        last = fold.sub(fold.add(low, extent), fold.const(extent.dtype, 1))
        return IntervalSet(low, last if analyzer is None else analyzer.simplify(last))

    @staticmethod
    def everything() -> IntervalSet:
        """All integers."""
        return IntervalSet(NEG_INF, POS_INF)

    @staticmethod
    def nothing() -> IntervalSet:
        """The empty set."""
        return IntervalSet(POS_INF, NEG_INF)


@node
class IntervalSet(IntSet):
    """The integers from ``min_value`` to ``max_value``, both included."""

    min_value: PrimExpr
    max_value: PrimExpr

    def is_nothing(self) -> bool:
        """Whether the set is empty."""
        if self.min_value is POS_INF or self.max_value is NEG_INF:
            return True
        low, high = self.min_value, self.max_value
        return isinstance(low, IntImm) and isinstance(high, IntImm) and low.value > high.value

    def is_everything(self) -> bool:
        """Whether the set has no bound."""
        return self.min_value is NEG_INF and self.max_value is POS_INF

    def is_single_point(self) -> bool:
        """Whether both ends are the same expression."""
        return expr_deep_equal(self.min_value, self.max_value)

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are numbers; those of ``nothing()`` are not."""
        infinite = (NEG_INF, POS_INF)
        return not any(end is self.min_value or end is self.max_value for end in infinite)

    def cover_range(self, default: Range, analyzer: Prover | None = None) -> Range:
        """The Range of the set; ``default`` where an end is missing."""
        if not self.is_bounded or self.is_nothing():
            return default
        if self.is_single_point():
            return Range.from_min_extent(self.min_value, fold.const(self.min_value.dtype, 1))
        try:
            last = fold.exact(fold.sub, self.max_value, self.min_value)
            extent = fold.exact(fold.add, last, fold.const(self.min_value.dtype, 1))
        except fold.ConstantOverflow:  # more values than the type can count
            return default
        simple = extent if analyzer is None else analyzer.simplify(extent)
        return Range.from_min_extent(self.min_value, simple)


def _of_numbers(low: IntImm, extent: int) -> IntervalSet:
    """``extent`` numbers from ``low`` on; without an end where that is no number of the type."""
    last = low.value + extent - 1
    type_low, type_high = integer_range(low.dtype)
    if last < type_low:
        return IntSet.nothing()
    return IntervalSet(low, POS_INF if last > type_high else fold.const(low.dtype, last))


def wrapping_lanes(base: IntervalSet, step: PrimExpr, lanes: int) -> IntervalSet:
    """The lanes of a ramp of a type that wraps, if none of them does."""
    low, high = base.min_value, base.max_value
    if not (isinstance(low, IntImm) and isinstance(high, IntImm) and isinstance(step, IntImm)):
        return IntSet.everything()
    span = step.value * (lanes - 1)
    first, last = low.value + min(span, 0), high.value + max(span, 0)
    type_low, type_high = integer_range(step.dtype)
    if first < type_low or type_high < last:
        return IntSet.everything()
    return IntervalSet(fold.const(step.dtype, first), fold.const(step.dtype, last))


def as_int_set(value: Domain, analyzer: Prover | None = None) -> IntervalSet:
    """An IntervalSet from a set, a Range or a point."""
    if isinstance(value, IntervalSet):
        return value
    if isinstance(value, Range):
        return IntSet.from_range(value, analyzer)
    if isinstance(value, (PrimExpr, int)):
        return IntSet.single_point(value)
    raise wrong_type("expected an IntSet, a Range or an expression", value)


def _extreme(a: PrimExpr, b: PrimExpr, analyzer: Prover, *, low: bool) -> PrimExpr:
    """The smaller of two lower ends, or the larger of two upper ends."""
    end = NEG_INF if low else POS_INF
    other = POS_INF if low else NEG_INF
    if a is end or b is end:
        return end
    if a is other or b is other:
        return b if a is other else a
    if a is b or expr_deep_equal(a, b):
        return a
    if a.dtype is not b.dtype:
        return end
    return analyzer.simplify(fold.min_(a, b) if low else fold.max_(a, b))


def union(sets: Iterable[IntervalSet], analyzer: Prover) -> IntervalSet:
    """The smallest interval that holds all the sets."""
    result: IntervalSet | None = None
    for item in sets:
        if result is None or result.is_nothing():
            result = item
        elif not item.is_nothing():
            low = _extreme(result.min_value, item.min_value, analyzer, low=True)
            high = _extreme(result.max_value, item.max_value, analyzer, low=False)
            result = IntervalSet(low, high)
    return IntSet.nothing() if result is None else result


def intersect(sets: Iterable[IntervalSet], analyzer: Prover) -> IntervalSet:
    """The interval of the values that lie in all the sets."""
    low: PrimExpr = NEG_INF
    high: PrimExpr = POS_INF
    for item in sets:
        if item.is_nothing():
            return IntSet.nothing()
        if low is NEG_INF or item.min_value is NEG_INF:
            low = item.min_value if low is NEG_INF else low
        else:
            low = analyzer.simplify(fold.max_(low, item.min_value))
        if high is POS_INF or item.max_value is POS_INF:
            high = item.max_value if high is POS_INF else high
        else:
            high = analyzer.simplify(fold.min_(high, item.max_value))
    return IntervalSet(low, high)
