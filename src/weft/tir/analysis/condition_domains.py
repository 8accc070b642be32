"""Narrows the domains of variables by a condition: ``i + j < 10`` bounds ``i`` by ``10 - j``.

Access regions and buffer compaction compute the values of an index over the domains of its
variables; inside a branch, only values for which the condition can hold count. Comparisons that are
linear in a variable narrow its domain. Other conditions change nothing, which is always sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.facts import is_index
from weft.arith.int_set import IntervalSet, eval_set, intersect, neg_inf, pos_inf
from weft.arith.linear import detect_linear_equation
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, contains, mentions
from weft.tir.buffer import BufferLoad
from weft.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    OPPOSITE,
    And,
    Call,
    CompareExpr,
    Not,
    Or,
    Var,
    is_call,
)


def narrowed_domains(
    domains: Mapping[Var, IntervalSet],
    condition: PrimExpr,
    analyzer: Analyzer,
    *,
    negated: bool = False,
) -> Mapping[Var, IntervalSet]:
    """The domains narrowed by the condition or its negation; the same object if none changes."""
    narrowed = domains
    for expr in _not_negative(condition, negated):
        if contains(expr, (BufferLoad, Call)):  # memory may have changed before the access
            continue
        variables = [var for var in dict.fromkeys(collect(expr, Var)) if var in narrowed]
        for var in variables:
            limit = _limit(expr, var, narrowed, analyzer)
            if limit is not None:
                narrowed = {**narrowed, var: intersect([narrowed[var], limit], analyzer)}
    return narrowed


def _not_negative(condition: PrimExpr, negated: bool) -> Iterator[PrimExpr]:
    """Expressions that are >= 0 wherever the condition holds (or, negated, does not)."""
    if isinstance(condition, Or if negated else And):
        yield from _not_negative(condition.a, negated)
        yield from _not_negative(condition.b, negated)
        return
    if isinstance(condition, Not):
        yield from _not_negative(condition.a, not negated)
        return
    if is_call(condition, "likely"):
        yield from _not_negative(condition.args[0], negated)
        return
    kind = type(condition)
    if not isinstance(condition, CompareExpr) or kind not in OPPOSITE:
        return
    if not is_index(condition.a.dtype):  # a condition on sums that wrap says nothing of their terms
        return
    kind = OPPOSITE[kind] if negated else kind
    a, b = condition.a, condition.b
    if kind in (GE, EQ):
        yield fold.sub(a, b)
    if kind in (LE, EQ):
        yield fold.sub(b, a)
    if kind in (GT, LT):
        difference = fold.sub(a, b) if kind is GT else fold.sub(b, a)
        yield fold.sub(difference, fold.const(a.dtype, 1))


def _limit(
    expr: PrimExpr, var: Var, domains: Mapping[Var, IntervalSet], analyzer: Analyzer
) -> IntervalSet | None:
    """The values of ``var`` for which ``expr >= 0`` for some values of the other variables."""
    linear = detect_linear_equation(expr, [var])
    if not linear or not isinstance(linear[0], IntImm) or linear[0].value == 0:
        return None
    others = {other: domain for other, domain in domains.items() if other is not var}
    high = eval_set(linear[1], others, analyzer).max_value
    if high is pos_inf() or high is neg_inf() or mentions(high, var):
        return None
    factor, dtype = linear[0].value, high.dtype
    end = fold.floordiv(high, fold.const(dtype, abs(factor)))
    if factor < 0:  # var <= end
        return IntervalSet(neg_inf(), analyzer.simplify(end))
    return IntervalSet(analyzer.simplify(fold.sub(fold.const(dtype, 0), end)), pos_inf())
