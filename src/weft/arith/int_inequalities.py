"""Linear inequalities by elimination of one variable after another (Fourier and Motzkin).

Every inequality has the form ``total <= 0``. Those in which a variable has a positive coefficient
are upper bounds of it, those with a negative one are lower bounds. Each pair of an upper and a
lower bound gives an inequality without the variable. ``int_solver`` has the public function.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm
from typing import TypeGuard

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.facts import is_index
from weft.arith.int_constraints import (
    IntConstraints,
    IntConstraintsTransform,
    IntGroupBounds,
    unsolvable,
)
from weft.arith.linear import detect_linear_equation
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.ir.node import Node
from weft.tir.constant import is_const_int
from weft.tir.expr import EQ, GE, GT, LE, LT, And, Var

Bounds = list[tuple[int, PrimExpr]]
"""(coefficient, rest) of ``coefficient * v + rest <= 0``; all coefficients have the same sign."""


class Elimination:
    """The bounds of every variable, and the relations that contain no variable any more."""

    def __init__(self, system: IntConstraints) -> None:
        self.analyzer = analyzer_of(system.ranges)
        self.rest: list[PrimExpr] = []
        self.bounds: dict[Var, IntGroupBounds] = {}
        current: list[PrimExpr] = []
        for relation in system.relations:
            self._add_relation(relation, current)
        for var in system.variables:
            current = self._eliminate(var, system.ranges.get(var), current)
        self.relations = self._remaining(current) + self.rest

    def conditions(self) -> list[PrimExpr]:
        """All bounds and remaining relations, as conditions equivalent to the system."""
        conditions: list[PrimExpr] = []
        for var, bounds in self.bounds.items():
            conditions += bounds.conditions(var)
        return conditions + self.relations

    def _add_relation(self, relation: PrimExpr, current: list[PrimExpr]) -> None:
        simple = self.analyzer.simplify(relation)
        if isinstance(simple, And):
            self._add_relation(simple.a, current)
            self._add_relation(simple.b, current)
            return
        self._add(self._normal(simple), current)

    def _normal(self, relation: PrimExpr) -> PrimExpr:
        """``total <= 0`` or ``total == 0``; other relations as they are."""
        if not isinstance(relation, (LT, LE, GT, GE, EQ)) or not is_index(relation.a.dtype):
            return relation
        kind = type(relation)
        a, b = relation.a, relation.b
        if kind in (GT, GE):
            a, b = b, a
        zero = fold.const(a.dtype, 0)
        total = fold.sub(a, b)
        if kind in (LT, GT):
            total = fold.add(total, fold.const(a.dtype, 1))
        total = self.analyzer.simplify(total)
        return EQ(total, zero) if kind is EQ else LE(total, zero)

    def _add(self, relation: PrimExpr, current: list[PrimExpr]) -> None:
        """Add a relation unless it follows from another, and remove those that follow from it."""
        if self.analyzer.can_prove(relation):
            return
        kept: list[PrimExpr] = []
        for known in current:
            if expr_deep_equal(known, relation):
                return
            if _is_bound(known) and _is_bound(relation) and known.a.dtype is relation.a.dtype:
                difference = self.analyzer.simplify(fold.sub(relation.a, known.a))
                if self.analyzer.const_int_bound(difference).max_value <= 0:
                    return
                if self.analyzer.const_int_bound(difference).min_value >= 0:
                    continue
            kept.append(known)
        current[:] = [*kept, relation]

    def _eliminate(self, var: Var, rng: Range | None, current: list[PrimExpr]) -> list[PrimExpr]:
        """Record the bounds of a variable; returns the relations without it."""
        upper: Bounds = []
        lower: Bounds = []
        following: list[PrimExpr] = []
        if not is_index(var.dtype):  # no relation is linear in it: what is computed of it wraps
            unit = IntGroupBounds(fold.const(var.dtype, 1), [], [], [])
            self.bounds[var] = unit if rng is None else unit.joined(rng)
            return current
        if rng is not None:
            last = fold.sub(fold.add(rng.min, rng.extent), fold.const(rng.extent.dtype, 1))
            lower.append((-1, self.analyzer.simplify(rng.min)))
            upper.append((1, self.analyzer.simplify(_negative(last))))
        for relation in current:
            self._classify(var, relation, following, upper, lower)
        for high, rest_high in upper:
            for low, rest_low in lower:
                try:
                    total = fold.exact(fold.add, _times(rest_low, high), _times(rest_high, -low))
                except fold.ConstantOverflow:  # what both imply is said by both
                    continue
                self._add_relation(LE(total, fold.const(total.dtype, 0)), following)
        self.bounds[var] = self._group(var, upper, lower)
        return following

    def _classify(
        self, var: Var, relation: PrimExpr, following: list[PrimExpr], upper: Bounds, lower: Bounds
    ) -> None:
        linear: Sequence[PrimExpr] = ()
        if isinstance(relation, (LE, EQ)):
            linear = detect_linear_equation(relation.a, [var])
        coefficient = linear[0] if linear else None
        if not isinstance(coefficient, IntImm):
            self.rest.append(relation)
            return
        factor, rest = coefficient.value, linear[1]
        if factor == 0:
            self._add(relation, following)
            return
        if type(relation) is EQ:  # an equation is two inequalities
            positive = (factor, rest) if factor > 0 else (-factor, _negative(rest))
            upper.append(positive)
            lower.append((-positive[0], _negative(positive[1])))
        else:
            (upper if factor > 0 else lower).append((factor, rest))

    def _group(self, var: Var, upper: Bounds, lower: Bounds) -> IntGroupBounds:
        """The bounds over their common coefficient, without those that follow from others."""
        common = lcm(*[abs(factor) for factor, _ in (*upper, *lower)])
        uppers: list[PrimExpr] = []
        lowers: list[PrimExpr] = []
        for bounds, ends, sign in ((upper, uppers, 1), (lower, lowers, -1)):
            for factor, rest in bounds:
                try:
                    end = self.analyzer.simplify(_times(rest, -(common // factor)))
                except fold.ConstantOverflow:
                    total = fold.add(_times(var, factor), rest)
                    self.rest.append(LE(total, fold.const(total.dtype, 0)))
                    continue
                self._tighten(ends, end, sign)
        equal: list[PrimExpr] = []
        only_lower: list[PrimExpr] = []
        for end in lowers:
            match = _position(uppers, end)
            if match is None:
                only_lower.append(end)
            else:
                equal.append(end)
                del uppers[match]
        equal.sort(key=complexity)
        return IntGroupBounds(fold.const(var.dtype, common), only_lower, equal, uppers)

    def _tighten(self, ends: list[PrimExpr], end: PrimExpr, sign: int) -> None:
        """Add an upper (sign 1) or lower (-1) end, unless a known one is as tight."""
        kept: list[PrimExpr] = []
        for known in ends:
            bound = self.analyzer.const_int_bound(self.analyzer.simplify(fold.sub(known, end)))
            looser = (bound.min_value >= 0) if sign == 1 else (bound.max_value <= 0)
            tighter = (bound.max_value <= 0) if sign == 1 else (bound.min_value >= 0)
            if tighter:
                return
            if not looser:
                kept.append(known)
        ends[:] = [*kept, end]

    def _remaining(self, current: list[PrimExpr]) -> list[PrimExpr]:
        remaining: list[PrimExpr] = []
        for relation in current:
            simple = self.analyzer.simplify(relation)
            if not isinstance(simple, IntImm):
                remaining.append(simple)
            elif not simple.value:
                return [fold.FALSE]
        return remaining


def _is_bound(relation: PrimExpr) -> TypeGuard[LE]:
    """Whether a relation has the form ``total <= 0`` of an index type."""
    return type(relation) is LE and is_index(relation.a.dtype)


def complexity(expr: PrimExpr) -> int:
    """How many nodes the expression has."""
    return len(collect(expr, Node))


def _negative(expr: PrimExpr) -> PrimExpr:
    return fold.sub(fold.const(expr.dtype, 0), expr)


def _times(expr: PrimExpr, factor: int) -> PrimExpr:
    return fold.exact(fold.mul, expr, fold.const(expr.dtype, factor))


def _fixed_value(bounds: IntGroupBounds) -> PrimExpr | None:
    """The simplest expression that the variable equals, or None."""
    unit = is_const_int(bounds.coef, 1)
    return bounds.equal[0] if unit and bounds.equal else None


def _position(ends: list[PrimExpr], expr: PrimExpr) -> int | None:
    for position, end in enumerate(ends):
        if expr_deep_equal(end, expr):
            return position
    return None


def _is_empty(rng: Range, analyzer: Analyzer) -> bool:
    return analyzer.const_int_bound(analyzer.simplify(rng.extent)).max_value <= 0


def solved_ranges(system: IntConstraints) -> IntConstraints:
    """The same variables with the ranges that the relations imply."""
    solved = Elimination(system)
    known = dict(system.ranges)
    narrowed: dict[Var, Range] = {}
    for var in reversed(system.variables):
        value = _fixed_value(solved.bounds[var])
        if value is not None:
            best: Range | None = Range.from_min_extent(value, fold.const(value.dtype, 1))
        else:
            best = solved.bounds[var].find_best_range(known)
        if best is not None:
            if _is_empty(best, analyzer_of(known)):
                return unsolvable()
            narrowed[var] = known[var] = best
    analyzer = analyzer_of(known)
    relations = []
    for condition in solved.conditions():
        if not analyzer.can_prove(condition):
            relations.append(condition)
    return IntConstraints(system.variables, narrowed, relations)


def deskewed(system: IntConstraints) -> IntConstraintsTransform:
    """The transform to new variables that start at zero."""
    solved = Elimination(system)
    known = dict(system.ranges)
    analyzer = analyzer_of(known)
    to_new: dict[Var, PrimExpr] = {}
    to_old: dict[Var, PrimExpr] = {}
    narrowed: dict[Var, Range] = {}
    names: list[Var] = []
    for var in reversed(system.variables):
        bounds: IntGroupBounds = substitute(solved.bounds[var], to_new)
        value = _fixed_value(bounds)
        best = None if value is not None else bounds.find_best_range(known)
        if value is not None:
            to_new[var] = value
        elif best is None:
            to_new[var] = to_old[var] = var
            names.append(var)
        elif is_const_int(best.extent, 1):
            to_new[var] = best.min
        elif _is_empty(best, analyzer):
            return IntConstraintsTransform(system, unsolvable(), {}, {})
        else:
            fresh = var.copy_with_suffix(".shifted")
            to_new[var] = fold.add(fresh, best.min)
            old_min = substitute(best.min, to_old)
            to_old[fresh] = analyzer.simplify(fold.sub(var, old_min))
            narrowed[fresh] = known[fresh] = Range.from_min_extent(
                fold.const(fresh.dtype, 0), best.extent
            )
            names.append(fresh)
            analyzer.bind(fresh, narrowed[fresh])
    relations = []
    for condition in solved.conditions():
        simple = analyzer.simplify(substitute(condition, to_new))
        if not (isinstance(simple, IntImm) and simple.value):
            relations.append(simple)
    target = IntConstraints(names[::-1], narrowed, relations)
    return IntConstraintsTransform(system, target, to_new, to_old)
