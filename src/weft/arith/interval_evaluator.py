"""The values of an expression as an interval, when its variables run over intervals.

``n + i`` with ``i`` in [0, 3] has the values [n, n + 3]. Ends may be symbolic; an end that is not
known is infinite. The public functions are in ``int_set``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.arith import fold
from weft.arith.const_int_bound import type_bound
from weft.arith.facts import is_index
from weft.arith.interval import (
    NEG_INF,
    POS_INF,
    Domain,
    IntervalSet,
    IntSet,
    Prover,
    as_int_set,
    union,
    wrapping_lanes,
)
from weft.ir.expr import IntImm, PrimExpr, as_prim_expr, integer_range
from weft.ir.functor import collect
from weft.ir.node import Node
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

_ROUNDS: Final = 8

Build = Callable[[PrimExpr, PrimExpr], PrimExpr]

_GUARD_BITS: Final = 6


class _NoValue(Exception):
    """An operand has no value: a variable of it runs over the empty set."""


class SetEvaluator:
    """Interval arithmetic over the variables of ``domains``; other variables stay symbols."""

    def __init__(self, domains: Mapping[Var, IntervalSet], analyzer: Prover) -> None:
        self.domains = domains
        self.analyzer = analyzer
        self.known: dict[int, tuple[PrimExpr, IntervalSet]] = {}
        """Expressions by ``id``, each with its set: one in many places is evaluated once."""

    def visit(self, expr: PrimExpr) -> IntervalSet:
        if isinstance(expr, Var):
            return self.domains.get(expr) or IntervalSet(expr, expr)
        known = self.known.get(id(expr))
        if known is None:
            known = self.known[id(expr)] = expr, self.evaluated(expr)
        return known[1]

    def evaluated(self, expr: PrimExpr) -> IntervalSet:
        """The set of an expression that is met for the first time."""
        kind = type(expr)
        try:
            if kind in _BINARY:
                interval = self.of_operands(expr)
            elif kind in _HANDLERS:
                interval = _HANDLERS[kind](self, expr)
            else:
                return self.opaque(expr)
        except _NoValue:
            return IntSet.nothing()
        may_wrap = expr.dtype.is_integral and not is_index(expr.dtype.element)
        if may_wrap and isinstance(expr, (Add, Sub, Mul)):
            return self.narrow(interval, expr)
        return interval

    def narrow(self, interval: IntervalSet, expr: BinaryExpr) -> IntervalSet:
        """``interval`` of a sum, difference or product, if no value leaves the type and wraps.

        A type narrower than an index wraps, that of loop variables too: of ``i: int8`` in [0, 99],
        ``i + i`` has all values of int8.
        """
        if interval.min_value is expr is interval.max_value:
            return interval
        ends = [
            end.value
            for operand in (self.visit(expr.a), self.visit(expr.b))
            for end in (operand.min_value, operand.max_value)
            if isinstance(end, IntImm)
        ]
        if len(ends) < 4:
            return IntSet.everything()
        low, high = integer_range(expr.dtype.element)
        results = [_EXACT[type(expr)](a, b) for a in ends[:2] for b in ends[2:]]
        return interval if low <= min(results) and max(results) <= high else IntSet.everything()

    def opaque(self, expr: PrimExpr) -> IntervalSet:
        """The set of an expression without a rule: its own value, if no domain concerns it; else
        the constant bounds that the Analyzer knows.
        """
        if isinstance(expr, IntImm) or not self.depends(expr):
            return IntervalSet(expr, expr)
        bound = self.analyzer.const_int_bound(expr)
        if not expr.dtype.is_integral:
            return IntSet.everything()
        low: PrimExpr = NEG_INF
        high: PrimExpr = POS_INF
        type_low, type_high = type_bound(expr.dtype)
        if expr.dtype.bits >= 32:
            # Ends near the limits of the type only say that a symbol has that type; arithmetic on
            # them would wrap, so they count as infinite.
            type_low, type_high = type_low >> _GUARD_BITS, type_high >> _GUARD_BITS
        if bound.min_value > type_low:
            low = fold.const(expr.dtype, bound.min_value)
        if bound.max_value < type_high:
            high = fold.const(expr.dtype, bound.max_value)
        return IntervalSet(low, high)

    def depends(self, expr: PrimExpr) -> bool:
        """Whether a variable of the domains occurs in ``expr``."""
        return any(var in self.domains for var in collect(expr, Var))

    def of_operands(self, expr: Any) -> IntervalSet:
        """The set of an expression of two operands; raises _NoValue."""
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a.is_nothing() or b.is_nothing():
            raise _NoValue
        if a.min_value is expr.a is a.max_value and b.min_value is expr.b is b.max_value:
            return IntervalSet(expr, expr)
        return _BINARY[type(expr)](self, expr, a, b)

    def add(self, _expr: Add, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        return self.make(
            _end(fold.add, a.min_value, b.min_value, NEG_INF),
            _end(fold.add, a.max_value, b.max_value, POS_INF),
        )

    def sub(self, _expr: Sub, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        return self.make(
            _end(fold.sub, a.min_value, b.max_value, NEG_INF),
            _end(fold.sub, a.max_value, b.min_value, POS_INF),
        )

    def make(self, low: PrimExpr, high: PrimExpr) -> IntervalSet:
        low = low if low is NEG_INF or low is POS_INF else self.analyzer.simplify(low)
        high = high if high is NEG_INF or high is POS_INF else self.analyzer.simplify(high)
        return IntervalSet(low, high)

    def monotone(self, expr: PrimExpr, a: IntervalSet, b: PrimExpr, build: Build) -> IntervalSet:
        """``build(a, b)`` for a ``b`` of known sign; a negative one swaps the ends."""
        bound = self.analyzer.const_int_bound(b)
        if bound.min_value >= 0:
            low, high = a.min_value, a.max_value
        elif bound.max_value <= 0:
            low, high = a.max_value, a.min_value
        else:
            return self.opaque(expr)
        return self.make(_end(build, low, b, NEG_INF), _end(build, high, b, POS_INF))

    def mul(self, expr: Mul, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        if not b.is_single_point():
            a, b = b, a
        if not b.is_single_point() or not b.is_bounded:
            return self.opaque(expr)
        return self.monotone(expr, a, b.min_value, fold.mul)

    def division(self, expr: FloorDiv | Div, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        divisor = b.min_value
        if not b.is_single_point() or not b.is_bounded:
            return self.opaque(expr)
        if isinstance(divisor, IntImm) and divisor.value == 0:
            return self.opaque(expr)  # an end that divides by 0 would stop whoever computes it
        is_narrow = not is_index(expr.dtype.element)
        if is_narrow and not self.analyzer.can_prove_greater_equal(divisor, 0):
            return self.opaque(expr)  # -128 // -1 is no int8: it wraps
        build = fold.floordiv if isinstance(expr, FloorDiv) else fold.truncdiv
        return self.monotone(expr, a, divisor, build)

    def truncmod(self, expr: Mod, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        by = b.min_value
        if not b.is_single_point() or not self.analyzer.can_prove_greater_equal(by, 1):
            return self.opaque(expr)
        low = a.min_value
        is_low_known = low is not NEG_INF
        if expr.dtype.is_uint or (is_low_known and self.analyzer.can_prove_greater_equal(low, 0)):
            return self.floormod(expr, a, b)
        last = self.analyzer.simplify(fold.sub(by, fold.const(by.dtype, 1)))
        return self.make(fold.sub(fold.const(by.dtype, 0), last), last)

    def floormod(self, expr: FloorMod | Mod, a: IntervalSet, b: IntervalSet) -> IntervalSet:
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

    def extreme(self, expr: Min | Max, a: IntervalSet, b: IntervalSet) -> IntervalSet:
        is_min = isinstance(expr, Min)
        build, wins, loses = (
            (fold.min_, NEG_INF, POS_INF) if is_min else (fold.max_, POS_INF, NEG_INF)
        )
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
        if inner.is_nothing():
            return inner
        if inner.min_value is expr.value is inner.max_value:
            return IntervalSet(expr, expr)
        low, high = inner.min_value, inner.max_value
        return self.make(
            low if low is NEG_INF else Cast(target, low),
            high if high is POS_INF else Cast(target, high),
        )

    def visit_ramp(self, expr: Ramp) -> IntervalSet:
        base, stride = self.visit(expr.base), self.visit(expr.stride)
        if not stride.is_single_point() or not isinstance(expr.lanes, IntImm):
            return IntSet.everything()
        step = stride.min_value
        if not is_index(step.dtype):
            return wrapping_lanes(base, step, expr.lanes.value)
        dtype = step.dtype
        last = IntervalSet(fold.const(dtype, 0), fold.const(dtype, expr.lanes.value - 1))
        span = self.monotone(expr.base, last, step, fold.mul)
        if span.is_nothing() or not span.is_bounded:
            return IntSet.everything()
        return self.make(
            _end(fold.add, base.min_value, span.min_value, NEG_INF),
            _end(fold.add, base.max_value, span.max_value, POS_INF),
        )

    def visit_broadcast(self, expr: Broadcast) -> IntervalSet:
        return self.visit(expr.value)

    def visit_let(self, expr: Let) -> IntervalSet:
        inner = SetEvaluator({**self.domains, expr.var: self.visit(expr.value)}, self.analyzer)
        return inner.visit(expr.body)

    def visit_load(self, expr: BufferLoad) -> IntervalSet:
        return IntSet.everything() if self.depends(expr) else IntervalSet(expr, expr)


def _end(build: Build, a: PrimExpr, b: PrimExpr, infinite: Var) -> PrimExpr:
    """An end ``build(a, b)`` of a set: infinite if an operand is, or where constants would wrap."""
    for end in (a, b):
        if end is POS_INF or end is NEG_INF:
            return infinite
    try:
        return fold.exact(build, a, b)
    except fold.ConstantOverflow:
        return infinite


Rule = Callable[[SetEvaluator, Any, IntervalSet, IntervalSet], IntervalSet]
_BINARY: Final[dict[type[Node], Rule]] = {
    Add: SetEvaluator.add,
    Sub: SetEvaluator.sub,
    Mul: SetEvaluator.mul,
    FloorDiv: SetEvaluator.division,
    FloorMod: SetEvaluator.floormod,
    Div: SetEvaluator.division,
    Mod: SetEvaluator.truncmod,
    Min: SetEvaluator.extreme,
    Max: SetEvaluator.extreme,
}
"""Class -> the rule: (expression, sets of its operands) -> its set."""
_HANDLERS: Final[dict[type[Node], Callable[[SetEvaluator, Any], IntervalSet]]] = {
    Select: SetEvaluator.visit_choice,
    Call: SetEvaluator.visit_call,
    Cast: SetEvaluator.visit_cast,
    Ramp: SetEvaluator.visit_ramp,
    Broadcast: SetEvaluator.visit_broadcast,
    Let: SetEvaluator.visit_let,
    BufferLoad: SetEvaluator.visit_load,
}

_EXACT: Final[dict[type[Node], Callable[[int, int], int]]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
}


def evaluate(
    expr: PrimExpr | IntervalSet, domains: Mapping[Var, Domain], analyzer: Prover
) -> IntervalSet:
    """The values of an expression, or of a set's ends, when variables run over ``domains``."""
    sets = {var: as_int_set(value, analyzer) for var, value in domains.items()}
    evaluator = SetEvaluator(sets, analyzer)
    if isinstance(expr, IntervalSet):
        result = expr
    else:
        result = evaluator.visit(analyzer.simplify(as_prim_expr(expr)))
    for _ in range(_ROUNDS):
        low, high = result.min_value, result.max_value
        relax_low = low is not NEG_INF and low is not POS_INF and evaluator.depends(low)
        relax_high = high is not NEG_INF and high is not POS_INF and evaluator.depends(high)
        if not relax_low and not relax_high:
            return result
        result = IntervalSet(
            evaluator.visit(low).min_value if relax_low else low,
            evaluator.visit(high).max_value if relax_high else high,
        )
    return IntSet.everything()
