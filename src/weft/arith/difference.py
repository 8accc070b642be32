"""Bounds of differences ``a - b``, by which comparisons, minima and maxima are decided.

Linear facts are kept as sums without their constant: ``i - n <= -1`` for a loop ``0 <= i < n``, and
conditions that hold. A difference is bounded by the bounds of its terms, by a fact with the same
terms, or by a fact plus a rest with constant bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from weft.arith.canonical_simplify import CanonicalSimplifier, as_sum
from weft.arith.const_int_bound import NEG_INF, POS_INF, BoundAnalyzer, clamp
from weft.arith.linear_form import Split, Sum
from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.tir.expr import Var

Bound = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LinearFact:
    """low <= total <= high; ``total`` has no constant."""

    total: Sum
    low: int
    high: int
    variables: frozenset[int]
    """The ids of the variables in the terms: two sums that cancel have the same ones."""
    ends: tuple[Var, Var] | None
    """(x, y) if the fact is about ``x - y``."""
    owner: Var | None
    """The variable whose range the fact comes from, or None.

    If a loop runs no iteration, its range says nothing about its extent. So the fact is used only
    for expressions that contain the variable, or another one whose range mentions it.
    """


class DifferenceAnalyzer:
    """Bounds differences under the facts of an Analyzer."""

    def __init__(self, bounds: BoundAnalyzer, canonical: CanonicalSimplifier) -> None:
        self.bounds = bounds
        self.canonical = canonical
        self.facts: list[LinearFact] = []
        self.busy = 0

    def total(self, a: PrimExpr, b: PrimExpr) -> Sum:
        """``a - b`` as a sum."""
        return as_sum(self.canonical.mutate(a)).plus(as_sum(self.canonical.mutate(b)), -1)

    def range(self, a: PrimExpr, b: PrimExpr) -> Bound:
        """Inclusive bounds of ``a - b``."""
        low_a, high_a = self.bounds.bound(a)
        low_b, high_b = self.bounds.bound(b)
        if high_a < low_b or low_a > high_b or self.busy > 2:
            return clamp(low_a - high_b, high_a - low_b)
        self.busy += 1
        low, high = self.sum_range(self.total(a, b))
        self.busy -= 1
        return max(low, clamp(low_a - high_b, 0)[0]), min(high, clamp(0, high_a - low_b)[1])

    def never_zero(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether the remainders of both expressions show that they differ."""
        coeff_a, base_a = self.bounds.modular.modular(a)
        coeff_b, base_b = self.bounds.modular.modular(b)
        step = gcd(coeff_a, coeff_b)
        return step > 1 and (base_a - base_b) % step != 0

    def sum_range(self, total: Sum) -> Bound:
        """Bounds of a sum: of its terms, tightened by the known facts."""
        bare = Sum(total.dtype, total.splits)
        low, high = self.bare_range(bare)
        facts = self.facts_about(bare)
        for fact in facts:
            if not _related(fact.total, bare):
                continue
            for sign in (1, -1):
                fact_low, fact_high = (
                    (fact.low, fact.high) if sign == 1 else (-fact.high, -fact.low)
                )
                rest = bare.plus(fact.total, -sign)
                if len(rest.splits) < len(bare.splits) or not rest.splits:
                    rest_low, rest_high = self.bare_range(rest)
                elif len(rest.splits) == len(bare.splits):  # i < j, j < k: the rest is a fact too
                    rest_low, rest_high = self.chain_range(rest, fact, facts)
                else:
                    continue
                rest_low, rest_high = clamp(rest_low + fact_low, rest_high + fact_high)
                low, high = max(low, rest_low), min(high, rest_high)
        ends = _ends(bare) if len(facts) > 2 else None
        if ends is not None:
            low = max(low, -self.path_bound(ends[1], ends[0], facts))
            high = min(high, self.path_bound(*ends, facts))
        return clamp(low + total.base, high + total.base)

    def facts_about(self, total: Sum) -> list[LinearFact]:
        """The facts that may be used for a sum (see ``LinearFact.owner``)."""
        if not self.facts or all(fact.owner is None for fact in self.facts):
            return self.facts
        live: set[Var] = set()
        waiting: list[PrimExpr] = [split.index for split in total.splits]
        while waiting:
            for var in collect(waiting.pop(), Var):
                if var not in live:
                    live.add(var)
                    dom = self.bounds.facts.ranges.get(var)
                    waiting += [] if dom is None else [dom.min, dom.extent]
        return [fact for fact in self.facts if fact.owner is None or fact.owner in live]

    def path_bound(self, start: Var, goal: Var, facts: Sequence[LinearFact]) -> int:
        """The least upper bound of ``start - goal`` that any chain of facts gives."""
        edges: list[tuple[Var, Var, int]] = []
        for fact in facts:
            if fact.ends is not None:
                u, v = fact.ends
                edges += [(u, v, fact.high)] if fact.high < POS_INF else []
                edges += [(v, u, -fact.low)] if fact.low > NEG_INF else []
        best = {start: 0}
        for _ in range(len(edges)):
            changed = False
            for u, v, width in edges:
                reached = best.get(u, POS_INF)
                if reached < POS_INF and reached + width < best.get(v, POS_INF):
                    best[v], changed = reached + width, True
            if not changed:
                break
        return best.get(goal, POS_INF)

    def chain_range(self, total: Sum, used: LinearFact, facts: Sequence[LinearFact]) -> Bound:
        """Bounds of a sum whose terms are exactly those of another fact than ``used``."""
        low, high = NEG_INF, POS_INF
        wanted = _variables(total)
        for fact in facts:
            if fact is used or fact.variables != wanted:
                continue
            if not total.plus(fact.total, -1).splits:
                low, high = max(low, fact.low + total.base), min(high, fact.high + total.base)
            elif not total.plus(fact.total, 1).splits:
                low, high = max(low, total.base - fact.high), min(high, total.base - fact.low)
        return clamp(low, high)

    def bare_range(self, total: Sum) -> Bound:
        """Bounds from the bounds of every term."""
        if not total.splits:
            return total.base, total.base
        return self.canonical.sum_bound(total)

    def forget(self, owner: Var) -> None:
        """Drop the facts from the range of ``owner``, which is about to change."""
        self.facts = [fact for fact in self.facts if fact.owner is not owner]

    def learn(
        self, a: PrimExpr, b: PrimExpr, high: int, low: int = NEG_INF, owner: Var | None = None
    ) -> None:
        """Record ``low <= a - b <= high``; ``owner`` is the variable whose range says so.

        There is one fact about each sum: what is learned of it again narrows that fact.
        """
        total = self.total(a, b)
        if not total.splits:
            return
        bare, base = Sum(total.dtype, total.splits), total.base
        limits = clamp(
            low - base if low > NEG_INF else NEG_INF, high - base if high < POS_INF else POS_INF
        )
        fact = LinearFact(bare, *limits, _variables(bare), _ends(bare), owner)
        for position, known in enumerate(self.facts):
            if known.owner is owner and known.variables == fact.variables:
                if not bare.plus(known.total, -1).splits:
                    limits = max(known.low, fact.low), min(known.high, fact.high)
                    self.facts[position] = replace(known, low=limits[0], high=limits[1])
                    return
        self.facts.append(fact)


def _variables(total: Sum) -> frozenset[int]:
    return frozenset([id(split.index) for split in total.splits if isinstance(split.index, Var)])


def _ends(total: Sum) -> tuple[Var, Var] | None:
    """(x, y) if the sum is ``x - y``; else None."""
    if len(total.splits) != 2:
        return None
    plus, minus = total.splits
    if plus.scale < 0:
        plus, minus = minus, plus
    if plus.scale != 1 or minus.scale != -1 or not (plus.is_plain and minus.is_plain):
        return None
    x, y = plus.index, minus.index
    return (x, y) if isinstance(x, Var) and isinstance(y, Var) else None


def _related(fact: Sum, total: Sum) -> bool:
    for mine in fact.splits:
        for its in total.splits:
            if _same_term(mine, its):
                return True
    return False


def _same_term(mine: Split, its: Split) -> bool:
    return mine.lower == its.lower and mine.upper == its.upper and mine.same_index(its)
