"""Analyzer: the one object that passes ask about index arithmetic (TVM's ``arith.Analyzer``).

It holds what is known of variables (``bind``, ``update``, ``constraint_scope``) and answers with
bounds, remainders, simplified expressions and proofs.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from typing import Final

from weft.arith import fold
from weft.arith.canonical_simplify import CanonicalSimplifier
from weft.arith.conjunction import claims
from weft.arith.const_int_bound import NEG_INF, POS_INF, BoundAnalyzer, ConstIntBound
from weft.arith.data import has_data, may_change
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.difference import DifferenceAnalyzer
from weft.arith.extensions import Extension, to_and_of_ors
from weft.arith.facts import Facts, is_index
from weft.arith.interval import Domain, IntervalSet, neg_inf
from weft.arith.interval_evaluator import evaluate
from weft.arith.linear_form import Form
from weft.arith.modular_set import ModularSet, ModularSetAnalyzer, meet
from weft.arith.polynomial import same_polynomial
from weft.arith.rewrite_simplify import RewriteSimplifier, RewriteSimplifierStats
from weft.ir.expr import IntImm, PrimExpr, Range, as_prim_expr
from weft.ir.functor import contains
from weft.support.errors import wrong_type
from weft.support.recursion import deep_recursion
from weft.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    And,
    Call,
    CompareExpr,
    FloorMod,
    Mod,
    Not,
    Or,
    Select,
    Var,
)

_ROUNDS: Final = 4
_CONDITIONS: Final = (EQ, NE, LT, LE, GT, GE, And, Or, Not)


class ProofStrength(IntEnum):
    """How hard ``can_prove`` tries; the numbers are TVM's."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class Analyzer:
    """Bounds, remainders, simplification and proofs under known facts.

    >>> from weft.tir.expr import Var
    >>> i, analyzer = Var("i", "int32"), Analyzer()
    >>> analyzer.bind(i, Range(0, 8))
    >>> analyzer.can_prove(i < 8)
    True
    """

    def __init__(self) -> None:
        self._facts = facts = Facts()
        self._modular = ModularSetAnalyzer(facts)
        self._bounds = BoundAnalyzer(facts, self._modular)
        bounds = weakref.proxy(self._bounds)  # no cycles: passes make thousands of analyzers
        self._modular.nonnegative = lambda expr: bounds.bound(expr)[0] >= 0
        self._rewriter = RewriteSimplifier(facts, self._bounds)
        self._canonical = CanonicalSimplifier(facts, self._bounds, self._rewriter)
        self._differences = DifferenceAnalyzer(self._bounds, self._canonical)
        self._rewriter.differences = weakref.proxy(self._differences)
        owner = weakref.proxy(self)
        self._rewriter.enter = lambda constraint: owner._expression_scope(constraint)
        self._assuming = False

    def bind(self, var: Var, expr: PrimExpr | Range | int, allow_override: bool = False) -> None:
        """State that ``var`` has the value ``expr``, or lies in the Range ``expr``."""
        if not isinstance(var, Var):
            raise wrong_type("Analyzer.bind: expected a Var", var)
        facts = self._facts
        facts.learn(var)
        if isinstance(expr, Range):
            extent = expr.extent
            if type(extent) is not IntImm:
                extent = self.simplify(extent)
            if type(extent) is not IntImm or extent.value != 1:
                self._bind_range(var, expr)
                return
            expr = expr.min
        value = self.simplify(as_prim_expr(expr))
        facts.bounds[var] = self._bounds.bound(value)
        facts.modular[var] = self._modular.modular(value)
        facts.values.pop(var, None)
        if not has_data(value):  # data may be overwritten while the variable keeps its value
            facts.values[var] = value

    def _bind_range(self, var: Var, dom: Range) -> None:
        facts = self._facts
        self._differences.forget(var)
        start, extent = dom.min, dom.extent
        if type(start) is IntImm and type(extent) is IntImm:
            facts.bounds[var] = start.value, start.value + extent.value - 1
            facts.values.pop(var, None)
            facts.modular.pop(var, None)
            facts.ranges[var] = dom
            return
        low, high = self._bounds.bound(start), self._bounds.bound(extent)
        top = POS_INF if POS_INF in (low[1], high[1]) else low[1] + high[1] - 1
        facts.bounds[var] = low[0], top
        facts.values.pop(var, None)
        facts.modular.pop(var, None)
        facts.ranges[var] = dom
        if is_index(var.dtype) and not (type(dom.min) is type(dom.extent) is IntImm):
            same = dom.min.dtype is var.dtype and dom.extent.dtype is var.dtype
            if same:
                self._differences.learn(var, fold.add(dom.min, dom.extent), -1, owner=var)
                if type(dom.min) is not IntImm:
                    self._differences.learn(dom.min, var, 0, owner=var)

    def update(self, var: Var, info: ConstIntBound | ModularSet, override: bool = False) -> None:
        """Set the constant bound (or the modular set) of a variable."""
        facts = self._facts
        facts.learn(var)
        if isinstance(info, ConstIntBound):
            bound = info.min_value, info.max_value
            known = facts.bounds.get(var)
            if known is not None and not override:
                bound = max(bound[0], known[0]), min(bound[1], known[1])
            facts.bounds[var] = bound
        elif isinstance(info, ModularSet):
            facts.modular[var] = info.coeff, info.base
        else:
            raise wrong_type("Analyzer.update: expected a ConstIntBound or ModularSet", info)

    @deep_recursion
    def const_int_bound(self, expr: PrimExpr) -> ConstIntBound:
        """The smallest and the largest value."""
        return ConstIntBound(*self._bounds.bound(as_prim_expr(expr)))

    def const_int_bound_is_bound(self, var: Var) -> bool:
        """Whether a bound of the variable is known."""
        return var in self._facts.bounds

    @deep_recursion
    def modular_set(self, expr: PrimExpr) -> ModularSet:
        """(coeff, base) with expr = coeff * k + base."""
        return ModularSet(*self._modular.modular(as_prim_expr(expr)))

    @deep_recursion
    def rewrite_simplify(self, expr: PrimExpr) -> PrimExpr:
        """Simplify by the rewrite rules alone."""
        expr = as_prim_expr(expr)
        return _kept(expr, self._extended(self._rewriter.visit(expr)))

    def _extended(self, result: PrimExpr) -> PrimExpr:
        """The result in the form that the enabled extensions ask for."""
        if type(result) not in (And, Or, Not) or not result.dtype.is_bool:
            return result
        if self._rewriter.extensions & Extension.ConvertBooleanToAndOfOrs:
            return to_and_of_ors(result, self._rewriter.visit)
        return result

    @property
    def enabled_extensions(self) -> Extension:
        """What the simplifiers do beyond the rules for everyone."""
        return self._rewriter.extensions

    @enabled_extensions.setter
    def enabled_extensions(self, flags: Extension | int) -> None:
        self._rewriter.enable(Extension(flags))
        self._facts.forget()

    @property
    def rewrite_simplify_stats(self) -> RewriteSimplifierStats:
        """Counts of what the rewrite rules have done since the last reset."""
        return replace(self._rewriter.stats)

    def reset_rewrite_simplify_stats(self) -> None:
        """Set these counts to zero."""
        self._rewriter.stats = RewriteSimplifierStats()

    @deep_recursion
    def canonical_simplify(self, expr: PrimExpr) -> PrimExpr:
        """Simplify by the canonical form of sums."""
        return self._canonical.simplify(as_prim_expr(expr))

    @deep_recursion
    def canonical_form(self, expr: PrimExpr) -> Form:
        """The form of ``linear_form`` (expression, Split or Sum) of an index expression."""
        return self._canonical.mutate(expr)

    def has_constant_range(self, var: Var) -> bool:
        """Whether the variable was bound to a Range with constant ends (and takes them all)."""
        dom = self._facts.ranges.get(var)
        return dom is not None and isinstance(dom.min, IntImm) and isinstance(dom.extent, IntImm)

    def bind_nonnegative(self, extent: PrimExpr) -> None:
        """State that an extent, a variable or what is computed of some, is at least 0."""
        if isinstance(extent, Var):
            self.update(extent, ConstIntBound(0, POS_INF))
            return
        facts = self._facts
        for form in (extent, self.simplify(extent)):
            facts.expr_bounds.append((form, 0, POS_INF))
        facts.forget()

    @deep_recursion
    def simplify(self, expr: PrimExpr, steps: int = 2) -> PrimExpr:
        """Canonical and rewrite simplification in turn, until nothing changes.

        ``steps`` below 2 is the number of simplifications to do (as in TVM). Returns the same
        object if nothing changes.
        """
        expr = as_prim_expr(expr)
        if type(expr) is IntImm:
            return expr
        if steps < 2:
            result = self._canonical.simplify(expr)
            return self.rewrite_simplify(result) if steps == 1 else result
        memo = self._facts.simplify_memo
        memoised = memo.get(id(expr))
        if memoised is not None:
            return memoised[1]
        result = self._fixed_point(expr)
        memo[id(expr)] = expr, result
        memo[id(result)] = result, result
        return result

    def _fixed_point(self, expr: PrimExpr) -> PrimExpr:
        facts = self._facts
        outer, facts.scopes = facts.scopes, {}
        try:
            result = self._rounds(expr)
            if type(result) is IntImm or result is expr or not contains(result, _CONDITIONS):
                return result
            return self._again(result)
        finally:
            facts.scopes = outer

    def _again(self, result: PrimExpr) -> PrimExpr:
        """An expression with conditions, simplified until nothing changes, by empty tables.

        The tables hold the forms of a condition's sides from the pass before. Without them another
        pass may find more to simplify.
        """
        facts = self._facts
        saved = facts.state()
        try:
            for _ in range(_ROUNDS):
                facts.forget_forms()
                again = self._rounds(result)
                if again is result or expr_deep_equal(again, result):
                    break
                result = again
        finally:
            facts.restore(saved)
        return result

    def _rounds(self, expr: PrimExpr) -> PrimExpr:
        result = self._canonical.simplify(expr)
        for _ in range(_ROUNDS):
            if type(result) is IntImm:
                return result
            rewritten = self._rewriter.visit(result)
            if rewritten is result or expr_deep_equal(rewritten, result):
                break
            again = self._canonical.simplify(rewritten)
            if expr_deep_equal(again, result):
                break
            result = again
        return _kept(expr, self._extended(result))

    def can_prove(self, expr: PrimExpr, strength: ProofStrength = ProofStrength.DEFAULT) -> bool:
        """Whether the condition always holds under the known facts."""
        if isinstance(expr, bool):
            return expr
        result = self.simplify(expr)
        if isinstance(result, IntImm):
            return result.value != 0
        return strength >= ProofStrength.SYMBOLIC_BOUND and self._symbolically(expr)

    def _symbolically(self, expr: PrimExpr) -> bool:
        """Whether a comparison holds at the symbolic ends of the ranges of its variables."""
        if not isinstance(expr, (LT, LE, GT, GE)) or not is_index(expr.a.dtype):
            return False
        kind = type(expr)
        larger, smaller = (expr.b, expr.a) if kind in (LT, LE) else (expr.a, expr.b)
        least = self.int_set(fold.sub(larger, smaller)).min_value
        return least is not neg_inf() and self.can_prove_greater_equal(
            least, 1 if kind in (LT, GT) else 0
        )

    def can_prove_equal(self, lhs: PrimExpr, rhs: PrimExpr) -> bool:
        """Whether both always have the same value."""
        a, b = as_prim_expr(lhs), as_prim_expr(rhs)
        if a is b:
            return True
        if isinstance(a, IntImm) and isinstance(b, IntImm):
            return a.value == b.value
        if a.dtype is not b.dtype:
            pair = fold.same_type(a, b)
            if pair is None:
                return False
            a, b = pair
        if not a.dtype.is_integral:
            return expr_deep_equal(self.simplify(a), self.simplify(b))
        return self.can_prove(EQ(a, b)) or same_polynomial(a, b)

    def can_prove_greater_equal(self, expr: PrimExpr, lower_bound: int) -> bool:
        """Whether expr >= lower_bound always holds."""
        expr = as_prim_expr(expr)
        if self._bounds.bound(expr)[0] >= lower_bound:
            return True
        return bool(self._bounds.bound(self.simplify(expr))[0] >= lower_bound)

    def can_prove_less_equal(self, expr: PrimExpr, upper_bound: int) -> bool:
        """Whether expr <= upper_bound always holds."""
        return self.can_prove_less(expr, upper_bound + 1)

    def can_prove_greater(self, expr: PrimExpr, lower_bound: int) -> bool:
        """Whether expr > lower_bound always holds."""
        return self.can_prove_greater_equal(expr, lower_bound + 1)

    def can_prove_less(self, expr: PrimExpr, upper_bound: int) -> bool:
        """Whether expr < upper_bound always holds."""
        expr = as_prim_expr(expr)
        if self._bounds.bound(expr)[1] < upper_bound:
            return True
        return bool(self._bounds.bound(self.simplify(expr))[1] < upper_bound)

    @contextmanager
    def constraint_scope(self, constraint: PrimExpr) -> Iterator[None]:
        """A scope in which ``constraint`` holds.

        Parts that read data (buffer elements, calls) are left out: a store inside the scope may
        end their truth.
        """
        parts = [p for p in claims(as_prim_expr(constraint)) if not may_change(p)]
        with self._scope(parts):
            yield

    @contextmanager
    def _expression_scope(self, constraint: PrimExpr) -> Iterator[None]:
        """As ``constraint_scope`` inside one expression, where data cannot change.

        Each pass over an expression enters the scopes of its choices anew. The state in which the
        pass before left a scope is entered again, with the forms that it has found.
        """
        facts, differences = self._facts, self._differences
        known = None if self._assuming else facts.scopes.get(id(constraint))
        if known is None:
            with self._scope(claims(constraint)):
                yield
                left = facts.state(), differences.facts
            if not self._assuming:
                facts.scopes[id(constraint)] = constraint, left
            return
        outer = facts.state(), differences.facts
        state, differences.facts = known[1]
        facts.restore(state)
        try:
            yield
        finally:
            facts.restore(outer[0])
            differences.facts = outer[1]

    @contextmanager
    def _scope(self, parts: list[PrimExpr]) -> Iterator[None]:
        facts = self._facts
        # By what is known outside: there the condition has been simplified, and is remembered.
        simplified = [self._as_known(part) for part in parts]
        saved, known = facts.snapshot(), self._differences.facts
        self._differences.facts = list(known)
        facts.forget()
        self._rewriter.stats.constraints_entered += 1
        try:
            for part, simple in zip(parts, simplified, strict=True):
                self._assume(part, simple)
            facts.forget()
            yield
        finally:
            facts.restore(saved)
            self._differences.facts = known

    def _as_known(self, part: PrimExpr) -> PrimExpr | None:
        """A condition, simplified by what is known before the scope in which it holds.

        A condition may contain selects, whose own conditions become scopes while it is simplified.
        If such an inner condition contains selects in turn, the answer is None, and it is recorded
        as it is: analysing it too would double the time with every level of nesting.
        """
        if self._assuming and contains(part, (Select, Call)):  # if_then_else is a call
            return None
        outer, self._assuming = self._assuming, True
        try:
            return self._rewriter.visit(part)
        finally:
            self._assuming = outer

    def _assume(self, part: PrimExpr, simple: PrimExpr | None) -> None:
        """The condition holds from here on, and what follows from it.

        ``simple`` is what ``_as_known`` says of it.
        """
        literals = self._facts.literals
        if simple is None:
            literals.append(part)
            return
        outer, self._assuming = self._assuming, True
        try:
            if type(simple) is not IntImm:
                literals.append(simple)
                self._assume_flag(simple)
                if not expr_deep_equal(simple, part):
                    for inner in claims(simple):
                        self._assume_comparison(inner)
            self._assume_comparison(part)
        finally:
            self._assuming = outer

    def _assume_flag(self, part: PrimExpr) -> None:
        """A variable that is a condition, or its negation, has a value from here on."""
        flag = part.a if type(part) is Not else part
        if isinstance(flag, Var):
            self._facts.values[flag] = fold.FALSE if type(part) is Not else fold.TRUE

    def _assume_comparison(self, part: PrimExpr) -> None:
        if not isinstance(part, (LT, LE, GT, GE, EQ)) or not is_index(part.a.dtype):
            return
        kind: type[CompareExpr] = type(part)
        a, b = part.a, part.b
        if self._bounds.may_wrap(a) or self._bounds.may_wrap(b):
            return
        if kind in (GT, GE):
            a, b, kind = b, a, LT if kind is GT else LE
        low = 0 if kind is EQ else NEG_INF
        self._differences.learn(a, b, -1 if kind is LT else 0, low)
        slack = 1 if kind is LT else 0
        self._limit(a, low if kind is EQ else NEG_INF, self._bounds.bound(b), slack, upper=True)
        self._limit(b, low if kind is EQ else NEG_INF, self._bounds.bound(a), slack, upper=False)
        if kind is EQ and type(b) is IntImm and isinstance(a, (FloorMod, Mod)):
            self._assume_remainder(a, b.value)

    def _limit(
        self, expr: PrimExpr, equal: int, other: tuple[int, int], slack: int, *, upper: bool
    ) -> None:
        """Bound one side of a comparison by the constant bounds of the other."""
        if type(expr) is IntImm:
            return
        low, high = NEG_INF, POS_INF
        if upper or equal == 0:
            high = other[1] - slack if other[1] < POS_INF else POS_INF
        if not upper or equal == 0:
            low = other[0] + slack if other[0] > NEG_INF else NEG_INF
        if isinstance(expr, Var):
            known = self._bounds.bound(expr)
            self._facts.bounds[expr] = max(low, known[0]), min(high, known[1])
        elif (low, high) != (NEG_INF, POS_INF):
            self._facts.expr_bounds.append((expr, low, high))
        self._facts.bound_memo = {}

    def _assume_remainder(self, mod: FloorMod | Mod, value: int) -> None:
        if type(mod.b) is not IntImm or mod.b.value <= 0:
            return
        value %= mod.b.value
        if isinstance(mod.a, Var):
            known = self._modular.modular(mod.a)
            self._facts.modular[mod.a] = meet((mod.b.value, value), known)
            self._facts.modular_memo = {}
        else:
            self._facts.expr_modular.append((mod.a, mod.b.value, value))

    def int_set(self, expr: PrimExpr, dom_map: Mapping[Var, Domain] | None = None) -> IntervalSet:
        """The set of values of ``expr`` as its variables run over ``dom_map``.

        Without ``dom_map`` the variables that were bound to ranges run over these.
        """
        return evaluate(expr, self._facts.ranges if dom_map is None else dom_map, self)


def _kept(expr: PrimExpr, result: PrimExpr) -> PrimExpr:
    """``expr`` where the result is the same expression."""
    return expr if result is not expr and expr_deep_equal(result, expr) else result
