"""Intervals with symbolic ends, and the evaluation of expressions over them.

Missing ends are the special variables ``neg_inf`` and ``pos_inf``, as in TVM. The public functions
are in ``int_set``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, Union

from weft.arith import fold
from weft.arith.const_int_bound import ConstIntBound, type_bound
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr, Range, as_prim_expr
from weft.ir.functor import collect
from weft.ir.node import Node, node
from weft.support.errors import IRTypeError
from weft.tir.buffer import BufferLoad
from weft.tir.expr import (
    Add,
    BinaryExpr,
    Broadcast,
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
    Ramp,
    Select,
    Sub,
    Var,
)
from weft.tir.op import match_types

Domain = Union["IntSet", Range, PrimExpr, int]
"""What may be given for a set of values: a set, a Range, or a point."""

_POS_INF: Final = Var("pos_inf", "handle")
_NEG_INF: Final = Var("neg_inf", "handle")
_ROUNDS: Final = 8
Build = Callable[[PrimExpr, PrimExpr], PrimExpr]
_GUARD_BITS: Final = 6


def pos_inf() -> Var:
    """The end of a set that has no upper bound."""
    return _POS_INF


def neg_inf() -> Var:
    """The end of a set that has no lower bound."""
    return _NEG_INF


class Prover(Protocol):
    """What sets of values ask of an Analyzer."""

    def simplify(self, expr: PrimExpr) -> PrimExpr:
        """The expression, simplified under the known facts."""

    def const_int_bound(self, expr: PrimExpr) -> ConstIntBound:
        """The constant bounds of the expression."""

    def can_prove_equal(self, lhs: PrimExpr, rhs: PrimExpr) -> bool:
        """Whether both always have the same value."""

    def can_prove_greater_equal(self, expr: PrimExpr, lower_bound: int) -> bool:
        """Whether expr >= lower_bound always holds."""


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
            span = fold.mul(expr.stride, fold.const(expr.stride.dtype, expr.lanes.value - 1))
            if isinstance(span, IntImm):
                ends = [expr.base, fold.add(expr.base, span)]
                return IntervalSet(*(ends if span.value >= 0 else ends[::-1]))
        elif isinstance(expr, Ramp) and isinstance(expr.stride, IntImm):  # so many lanes as fit
            if expr.stride.value >= 0:
                return IntervalSet(expr.base, _POS_INF)
            return IntervalSet(_NEG_INF, expr.base)
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
        """The values of a Range; in the wider type of its ends, where a gather mixes them."""
        low, extent = rng.min, rng.extent
        if low.dtype is not extent.dtype:
            low, extent = match_types(low, extent)
        last = fold.sub(fold.add(low, extent), fold.const(extent.dtype, 1))
        return IntervalSet(low, last if analyzer is None else analyzer.simplify(last))

    @staticmethod
    def everything() -> IntervalSet:
        """All integers."""
        return IntervalSet(_NEG_INF, _POS_INF)

    @staticmethod
    def nothing() -> IntervalSet:
        """The empty set."""
        return IntervalSet(_POS_INF, _NEG_INF)


@node
class IntervalSet(IntSet):
    """The integers from ``min_value`` to ``max_value``, both included."""

    min_value: PrimExpr
    max_value: PrimExpr

    def is_nothing(self) -> bool:
        """Whether the set is empty."""
        if self.min_value is _POS_INF or self.max_value is _NEG_INF:
            return True
        low, high = self.min_value, self.max_value
        return isinstance(low, IntImm) and isinstance(high, IntImm) and low.value > high.value

    def is_everything(self) -> bool:
        """Whether the set has no bound."""
        return self.min_value is _NEG_INF and self.max_value is _POS_INF

    def is_single_point(self) -> bool:
        """Whether both ends are the same expression."""
        return expr_deep_equal(self.min_value, self.max_value)

    @property
    def is_bounded(self) -> bool:
        """Whether both ends are known."""
        return self.min_value is not _NEG_INF and self.max_value is not _POS_INF

    def cover_range(self, default: Range, analyzer: Prover | None = None) -> Range:
        """The Range of the set; ``default`` where an end is missing."""
        if not self.is_bounded or self.is_nothing():
            return default
        if self.is_single_point():
            return Range.from_min_extent(self.min_value, fold.const(self.min_value.dtype, 1))
        last = fold.sub(self.max_value, self.min_value)
        extent = fold.add(last, fold.const(self.min_value.dtype, 1))
        simple = extent if analyzer is None else analyzer.simplify(extent)
        return Range.from_min_extent(self.min_value, simple)


def as_int_set(value: Domain, analyzer: Prover | None = None) -> IntervalSet:
    """An IntervalSet from a set, a Range or a point."""
    if isinstance(value, IntervalSet):
        return value
    if isinstance(value, Range):
        return IntSet.from_range(value, analyzer)
    if isinstance(value, PrimExpr | int):
        return IntSet.single_point(value)
    raise IRTypeError(f"expected an IntSet, a Range or an expression, got {type(value).__name__}")


def _extreme(a: PrimExpr, b: PrimExpr, analyzer: Prover, *, low: bool) -> PrimExpr:
    """The smaller of two lower ends, or the larger of two upper ends."""
    end = _NEG_INF if low else _POS_INF
    other = _POS_INF if low else _NEG_INF
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
    """The interval of what lies in all the sets."""
    low: PrimExpr = _NEG_INF
    high: PrimExpr = _POS_INF
    for item in sets:
        if low is _NEG_INF or item.min_value is _NEG_INF:
            low = item.min_value if low is _NEG_INF else low
        else:
            low = analyzer.simplify(fold.max_(low, item.min_value))
        if high is _POS_INF or item.max_value is _POS_INF:
            high = item.max_value if high is _POS_INF else high
        else:
            high = analyzer.simplify(fold.min_(high, item.max_value))
    return IntervalSet(low, high)


class SetEvaluator:
    """Interval arithmetic over the variables of ``domains``; other variables stay symbols."""

    def __init__(self, domains: Mapping[Var, IntervalSet], analyzer: Prover) -> None:
        self.domains = domains
        self.analyzer = analyzer

    def visit(self, expr: PrimExpr) -> IntervalSet:
        handler = _HANDLERS.get(type(expr))
        if handler is None:
            if isinstance(expr, Var):
                return self.domains.get(expr) or IntervalSet(expr, expr)
            return self.opaque(expr)
        return handler(self, expr)

    def opaque(self, expr: PrimExpr) -> IntervalSet:
        """A value that is computed another way: itself, unless it depends on the domains."""
        if isinstance(expr, IntImm) or not self.depends(expr):
            return IntervalSet(expr, expr)
        bound = self.analyzer.const_int_bound(expr)
        if not expr.dtype.is_integral:
            return IntSet.everything()
        low: PrimExpr = _NEG_INF
        high: PrimExpr = _POS_INF
        type_low, type_high = type_bound(expr.dtype)
        if expr.dtype.bits >= 32:
            # Ends this far out come from the type of a symbol: arithmetic on them would wrap.
            type_low, type_high = type_low >> _GUARD_BITS, type_high >> _GUARD_BITS
        if bound.min_value > type_low:
            low = fold.const(expr.dtype, bound.min_value)
        if bound.max_value < type_high:
            high = fold.const(expr.dtype, bound.max_value)
        return IntervalSet(low, high)

    def depends(self, expr: PrimExpr) -> bool:
        """Whether a variable of the domains occurs in ``expr``."""
        return any(var in self.domains for var in collect(expr, Var))

    def operands(self, expr: BinaryExpr) -> tuple[IntervalSet, IntervalSet] | None:
        """The sets of both operands, or None where ``expr`` is a point already."""
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a.min_value is expr.a is a.max_value and b.min_value is expr.b is b.max_value:
            return None
        return a, b

    def visit_add(self, expr: Add) -> IntervalSet:
        operands = self.operands(expr)
        if operands is None:
            return IntervalSet(expr, expr)
        a, b = operands
        return self.make(
            _sum_of_ends(a.min_value, b.min_value),
            _sum_of_ends(a.max_value, b.max_value),
        )

    def visit_sub(self, expr: Sub) -> IntervalSet:
        operands = self.operands(expr)
        if operands is None:
            return IntervalSet(expr, expr)
        a, b = operands
        low = (
            _NEG_INF
            if _infinite(a.min_value, b.max_value) is not None
            else fold.sub(a.min_value, b.max_value)
        )
        high = (
            _POS_INF
            if _infinite(a.max_value, b.min_value) is not None
            else fold.sub(a.max_value, b.min_value)
        )
        return self.make(low, high)

    def make(self, low: PrimExpr, high: PrimExpr) -> IntervalSet:
        low = low if low is _NEG_INF or low is _POS_INF else self.analyzer.simplify(low)
        high = high if high is _NEG_INF or high is _POS_INF else self.analyzer.simplify(high)
        return IntervalSet(low, high)

    def monotone(self, expr: PrimExpr, a: IntervalSet, b: PrimExpr, build: Build) -> IntervalSet:
        """``build(a, b)`` for a ``b`` of known sign: its ends are those of ``a`` or swapped."""
        bound = self.analyzer.const_int_bound(b)
        if bound.min_value >= 0:
            low, high = a.min_value, a.max_value
        elif bound.max_value <= 0:
            low, high = a.max_value, a.min_value
        else:
            return self.opaque(expr)
        if bound.min_value >= 0:
            return self.make(
                low if low is _NEG_INF else build(low, b),
                high if high is _POS_INF else build(high, b),
            )
        return self.make(
            _NEG_INF if low is _POS_INF else build(low, b),
            _POS_INF if high is _NEG_INF else build(high, b),
        )

    def visit_mul(self, expr: Mul) -> IntervalSet:
        operands = self.operands(expr)
        if operands is None:
            return IntervalSet(expr, expr)
        a, b = operands
        if not b.is_single_point():
            a, b = b, a
        if not b.is_single_point() or not b.is_bounded:
            return self.opaque(expr)
        return self.monotone(expr, a, b.min_value, fold.mul)

    def visit_floordiv(self, expr: FloorDiv) -> IntervalSet:
        operands = self.operands(expr)
        if operands is None:
            return IntervalSet(expr, expr)
        a, b = operands
        if not b.is_single_point() or not b.is_bounded:
            return self.opaque(expr)
        return self.monotone(expr, a, b.min_value, fold.floordiv)

    def visit_truncdiv(self, expr: Div) -> IntervalSet:
        operands = self.operands(expr)
        if operands is None:
            return IntervalSet(expr, expr)
        a, b = operands
        if not b.is_single_point() or not self.analyzer.can_prove_greater_equal(b.min_value, 1):
            return self.opaque(expr)
        return self.monotone(expr, a, b.min_value, fold.truncdiv)

    def visit_truncmod(self, expr: Mod) -> IntervalSet:
        operands = self.operands(expr)
        if operands is None:
            return IntervalSet(expr, expr)
        a, b = operands
        by = b.min_value
        if not b.is_single_point() or not self.analyzer.can_prove_greater_equal(by, 1):
            return self.opaque(expr)
        if a.min_value is not _NEG_INF and self.analyzer.can_prove_greater_equal(a.min_value, 0):
            return self.visit_floormod(expr)
        last = self.analyzer.simplify(fold.sub(by, fold.const(by.dtype, 1)))
        return self.make(fold.sub(fold.const(by.dtype, 0), last), last)

    def visit_floormod(self, expr: FloorMod | Mod) -> IntervalSet:
        operands = self.operands(expr)
        if operands is None:
            return IntervalSet(expr, expr)
        a, b = operands
        by = b.min_value
        if not b.is_single_point() or not self.analyzer.can_prove_greater_equal(by, 1):
            return self.opaque(expr)
        if a.is_bounded:
            first = fold.floordiv(a.min_value, by)
            if self.analyzer.can_prove_equal(first, fold.floordiv(a.max_value, by)):
                offset = fold.mul(first, by)
                return self.make(fold.sub(a.min_value, offset), fold.sub(a.max_value, offset))
        last = fold.sub(by, fold.const(by.dtype, 1))
        return IntervalSet(fold.const(by.dtype, 0), self.analyzer.simplify(last))

    def visit_min(self, expr: Min) -> IntervalSet:
        return self.extreme(expr, fold.min_, _NEG_INF, _POS_INF)

    def visit_max(self, expr: Max) -> IntervalSet:
        return self.extreme(expr, fold.max_, _POS_INF, _NEG_INF)

    def extreme(self, expr: Min | Max, build: Build, wins: Var, loses: Var) -> IntervalSet:
        operands = self.operands(expr)
        if operands is None:
            return IntervalSet(expr, expr)
        a, b = operands
        ends: list[PrimExpr] = []
        for mine, its in ((a.min_value, b.min_value), (a.max_value, b.max_value)):
            if mine is wins or its is wins:
                ends.append(wins)
            elif mine is loses or its is loses:
                ends.append(its if mine is loses else mine)
            else:
                ends.append(build(mine, its))
        return self.make(*ends)

    def visit_choice(self, expr: Select | Call) -> IntervalSet:
        values = (
            (expr.true_value, expr.false_value)
            if isinstance(expr, Select)
            else tuple(expr.args[1:])
        )
        if not self.depends(expr):
            return IntervalSet(expr, expr)
        return union([self.visit(value) for value in values], self.analyzer)

    def visit_call(self, expr: Call) -> IntervalSet:
        name = getattr(expr.op, "name", "")
        if name == "tir.if_then_else":
            return self.visit_choice(expr)
        if name == "tir.likely":
            return self.visit(expr.args[0])
        return self.opaque(expr)

    def visit_cast(self, expr: Cast) -> IntervalSet:
        source, target = expr.value.dtype, expr.dtype
        if not (source.is_integral and target.is_integral and target.bits >= source.bits):
            return self.opaque(expr)
        if source.is_int != target.is_int and (target.is_uint or target.bits == source.bits):
            return self.opaque(expr)
        inner = self.visit(expr.value)
        if inner.min_value is expr.value is inner.max_value:
            return IntervalSet(expr, expr)
        low, high = inner.min_value, inner.max_value
        return self.make(
            low if low is _NEG_INF else Cast(target, low),
            high if high is _POS_INF else Cast(target, high),
        )

    def visit_ramp(self, expr: Ramp) -> IntervalSet:
        base, stride = self.visit(expr.base), self.visit(expr.stride)
        if not stride.is_single_point() or not isinstance(expr.lanes, IntImm):
            return IntSet.everything()
        step = stride.min_value
        dtype = step.dtype
        last = IntervalSet(fold.const(dtype, 0), fold.const(dtype, expr.lanes.value - 1))
        span = self.monotone(expr.base, last, step, fold.mul)
        if span.is_nothing() or not span.is_bounded:
            return IntSet.everything()
        return self.make(
            _sum_of_ends(base.min_value, span.min_value),
            _sum_of_ends(base.max_value, span.max_value),
        )

    def visit_broadcast(self, expr: Broadcast) -> IntervalSet:
        return self.visit(expr.value)

    def visit_let(self, expr: Let) -> IntervalSet:
        inner = SetEvaluator({**self.domains, expr.var: self.visit(expr.value)}, self.analyzer)
        return inner.visit(expr.body)

    def visit_load(self, expr: BufferLoad) -> IntervalSet:
        return IntSet.everything() if self.depends(expr) else IntervalSet(expr, expr)


def _sum_of_ends(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    end = _infinite(a, b)
    return fold.add(a, b) if end is None else end


def _infinite(a: PrimExpr, b: PrimExpr) -> Var | None:
    """The first of two ends that is infinite, or None."""
    for end in (a, b):
        if end is _POS_INF:
            return _POS_INF
        if end is _NEG_INF:
            return _NEG_INF
    return None


_HANDLERS: Final[dict[type[Node], Callable[[SetEvaluator, Any], IntervalSet]]] = {
    Add: SetEvaluator.visit_add,
    Sub: SetEvaluator.visit_sub,
    Mul: SetEvaluator.visit_mul,
    FloorDiv: SetEvaluator.visit_floordiv,
    FloorMod: SetEvaluator.visit_floormod,
    Div: SetEvaluator.visit_truncdiv,
    Mod: SetEvaluator.visit_truncmod,
    Min: SetEvaluator.visit_min,
    Max: SetEvaluator.visit_max,
    Select: SetEvaluator.visit_choice,
    Call: SetEvaluator.visit_call,
    Cast: SetEvaluator.visit_cast,
    Ramp: SetEvaluator.visit_ramp,
    Broadcast: SetEvaluator.visit_broadcast,
    Let: SetEvaluator.visit_let,
    BufferLoad: SetEvaluator.visit_load,
}


def evaluate(
    expr: PrimExpr | IntervalSet, domains: Mapping[Var, Domain], analyzer: Prover
) -> IntervalSet:
    """The values of an expression, or the union over a set's, as variables run over ``domains``."""
    sets = {var: as_int_set(value, analyzer) for var, value in domains.items()}
    evaluator = SetEvaluator(sets, analyzer)
    if isinstance(expr, IntervalSet):
        result = expr
    else:
        result = evaluator.visit(analyzer.simplify(as_prim_expr(expr)))
    for _ in range(_ROUNDS):
        low, high = result.min_value, result.max_value
        relax_low = low is not _NEG_INF and low is not _POS_INF and evaluator.depends(low)
        relax_high = high is not _NEG_INF and high is not _POS_INF and evaluator.depends(high)
        if not relax_low and not relax_high:
            return result
        result = IntervalSet(
            evaluator.visit(low).min_value if relax_low else low,
            evaluator.visit(high).max_value if relax_high else high,
        )
    return IntSet.everything()
