"""Simplifications that are done only on request (``Analyzer.enabled_extensions``), as in TVM.

They are: conjunctive normal form of conditions, simplifying a branch of ``and`` or ``or`` under the
other branch, and comparing ``(a + b) * c`` with ``a * b * d``. TVM's
``TransitivelyProveInequalities`` is accepted too, but here it is always on.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from weft.arith import fold
from weft.arith.const_int_bound import NEG_INF, POS_INF, Bound
from weft.arith.deep_equal import contains_deep_equal, expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr
from weft.tir.expr import EQ, GE, GT, LE, LT, NE, Add, And, Mul, Not, Or

_CLAUSES: Final = 64
"""A condition whose normal form has more clauses than this is left as it is."""
Clause = list[PrimExpr]


class Extension(enum.Flag):
    """Extensions of the rewrite simplifier; the values are TVM's."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1 << 0
    ConvertBooleanToAndOfOrs = 1 << 1
    ApplyConstraintsToBooleanBranches = 1 << 2
    ComparisonOfProductAndSum = 1 << 3


def to_and_of_ors(expr: PrimExpr, simplify: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
    """A conjunction of simplified disjunctions, none of which implies another.

    ``expr`` itself if the form would have too many clauses.
    """
    clauses = _clauses(expr, negated=False)
    if clauses is None:
        return expr
    kept: list[Clause] = []
    for clause in clauses:
        simple = simplify(_joined(clause, fold.or_))
        if type(simple) is IntImm:
            if not simple.value:
                return fold.FALSE
            continue
        _add_clause(kept, _literals(simple), simplify)
    result: PrimExpr = fold.TRUE
    for clause in kept:
        result = fold.and_(result, _joined(clause, fold.or_))
    return result


def _joined(parts: list[PrimExpr], join: Callable[[PrimExpr, PrimExpr], PrimExpr]) -> PrimExpr:
    result = parts[0]
    for part in parts[1:]:
        result = join(result, part)
    return result


def _literals(expr: PrimExpr) -> Clause:
    return [*_literals(expr.a), *_literals(expr.b)] if type(expr) is Or else [expr]


_NEGATED: Final[dict[type, Callable[[PrimExpr, PrimExpr], PrimExpr]]] = {
    LT: lambda a, b: LE(b, a), LE: lambda a, b: LT(b, a), GT: LE, GE: LT, EQ: NE, NE: EQ,
}  # fmt: skip


def _clauses(expr: Any, *, negated: bool) -> list[Clause] | None:
    """The clauses of the (negated) condition, or None if there are too many."""
    kind = type(expr)
    if kind is Not:
        return _clauses(expr.a, negated=not negated)
    if kind is And or kind is Or:
        a, b = _clauses(expr.a, negated=negated), _clauses(expr.b, negated=negated)
        if a is None or b is None:
            return None
        if (kind is And) is not negated:
            return a + b if len(a) + len(b) <= _CLAUSES else None
        if len(a) * len(b) > _CLAUSES:
            return None
        return [[*left, *right] for left in a for right in b]
    if not negated:
        return [[expr]]
    if kind in _NEGATED and expr.a.dtype.is_integral:
        return [[_NEGATED[kind](expr.a, expr.b)]]
    return [[fold.not_(expr)]]


def _without(clause: Clause, other: Clause) -> Clause:
    return [literal for literal in clause if not contains_deep_equal(other, literal)]


def _add_clause(
    kept: list[Clause], clause: Clause, simplify: Callable[[PrimExpr], PrimExpr]
) -> None:
    """Add a clause unless another implies it; clauses that differ in one literal may join."""
    for position, known in enumerate(kept):
        mine, its = _without(clause, known), _without(known, clause)
        if not its:
            return
        if not mine:
            del kept[position]
            _add_clause(kept, clause, simplify)
            return
        if len(mine) == len(its) == 1:
            both = simplify(fold.and_(its[0], mine[0]))
            if type(both) is And:
                continue
            common = [literal for literal in known if literal is not its[0]]
            del kept[position]
            rest = [] if type(both) is IntImm and not both.value else [both]
            _add_clause(kept, [*common, *rest] or [fold.FALSE], simplify)
            return
    kept.append(clause)


def product_and_sum_range(a: PrimExpr, b: PrimExpr, bound: Callable[[PrimExpr], Bound]) -> Bound:
    """The possible signs of ``a - b`` for ``(x + y) * z`` and ``x * y * w`` with positive parts.

    ``(x + y) * z < x * y * w`` is ``(1/x + 1/y) * z < w``, which bounds of the parts may decide.
    """
    for left, right, sign in ((a, b, 1), (b, a, -1)):
        parts = _product_and_sum(left, right)
        if parts is None:
            continue
        ends = [bound(part) for part in parts]
        if any(low <= 0 for low, _ in ends):
            continue
        (x, y, z, w) = ends
        high = (Fraction(1, x[0]) + Fraction(1, y[0])) * z[1] if z[1] < POS_INF else None
        low = Fraction(0)
        for end in (x[1], y[1]):
            low += Fraction(z[0], end) if end < POS_INF else 0
        if high is not None and high < w[0]:
            return (NEG_INF, -1) if sign == 1 else (1, POS_INF)
        if w[1] < POS_INF and low > w[1]:
            return (1, POS_INF) if sign == 1 else (NEG_INF, -1)
    return NEG_INF, POS_INF


def _product_and_sum(
    total: PrimExpr, product: PrimExpr
) -> tuple[PrimExpr, PrimExpr, PrimExpr, PrimExpr] | None:
    """(x, y, z, w) of ``(x + y) * z`` and ``x * y * w``; z and w may be 1."""
    factors = _factors(product)
    for position, candidate in enumerate(_factors(total)):
        if type(candidate) is not Add:
            continue
        others = _factors(total)
        del others[position]
        rest = _removed(_removed(factors, candidate.a), candidate.b)
        if rest is not None:
            unit = fold.const(candidate.dtype, 1)
            z = _joined(others, fold.mul) if others else unit
            w = _joined(rest, fold.mul) if rest else unit
            return candidate.a, candidate.b, z, w
    return None


def _factors(expr: PrimExpr) -> list[PrimExpr]:
    return [*_factors(expr.a), *_factors(expr.b)] if type(expr) is Mul else [expr]


def _removed(factors: list[PrimExpr] | None, removed: PrimExpr) -> list[PrimExpr] | None:
    for position, factor in enumerate(factors or ()):
        if expr_deep_equal(factor, removed):
            return [*(factors or ())[:position], *(factors or ())[position + 1 :]]
    return None
