"""Bounds of ``a - b``: what decides comparisons, minima and maxima.

Known linear facts (``i - n <= -1`` of a loop ``0 <= i < n``, conditions that hold) are kept as
sums without their constant; a difference is bounded by itself, by a fact with the same terms, or
by a fact plus a remainder with constant bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from weft.arith.canonical_simplify import CanonicalSimplifier, as_sum
from weft.arith.const_int_bound import NEG_INF, POS_INF, BoundAnalyzer, clamp
from weft.arith.linear_form import Split, Sum
from weft.ir.expr import PrimExpr
from weft.tir.expr import Var

Bound = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LinearFact:
    """low <= total <= high; ``total`` has no constant."""

    total: Sum
    low: int
    high: int
    variables: frozenset[int]
    """Identities of the variables that are terms: two sums that cancel have the same."""


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
        """Whether the remainders of the two show that they differ."""
        coeff_a, base_a = self.bounds.modular.modular(a)
        coeff_b, base_b = self.bounds.modular.modular(b)
        step = gcd(coeff_a, coeff_b)
        return step > 1 and (base_a - base_b) % step != 0

    def sum_range(self, total: Sum) -> Bound:
        """Bounds of a sum: of its terms, tightened by the known facts."""
        bare = Sum(total.dtype, total.splits)
        low, high = self.bare_range(bare)
        for fact in self.facts:
            if not _related(fact.total, bare):
                continue
            for sign in (1, -1):
                fact_low, fact_high = (
                    (fact.low, fact.high) if sign == 1 else (-fact.high, -fact.low)
                )
                rest = bare.plus(fact.total, -sign)
                if len(rest.splits) < len(bare.splits) or not rest.splits:
                    rest_low, rest_high = self.bare_range(rest)
                elif len(rest.splits) == len(bare.splits):  # i < j, j < k: a second fact is all
                    rest_low, rest_high = self.chain_range(rest, fact)
                else:
                    continue
                rest_low, rest_high = clamp(rest_low + fact_low, rest_high + fact_high)
                low, high = max(low, rest_low), min(high, rest_high)
        return clamp(low + total.base, high + total.base)

    def chain_range(self, total: Sum, used: LinearFact) -> Bound:
        """Bounds of a sum that another fact states as it is."""
        low, high = NEG_INF, POS_INF
        wanted = _variables(total)
        for fact in self.facts:
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

    def learn(self, a: PrimExpr, b: PrimExpr, high: int, low: int = NEG_INF) -> None:
        """low <= a - b <= high holds."""
        total = self.total(a, b)
        if len(total.splits) < 1:
            return
        bare = Sum(total.dtype, total.splits)
        base = total.base
        limits = clamp(low - base if low > NEG_INF else NEG_INF,
                        high - base if high < POS_INF else POS_INF)  # fmt: skip
        self.facts.append(LinearFact(bare, *limits, _variables(bare)))


def _variables(total: Sum) -> frozenset[int]:
    return frozenset([id(split.index) for split in total.splits if isinstance(split.index, Var)])


def _related(fact: Sum, total: Sum) -> bool:
    for mine in fact.splits:
        for its in total.splits:
            if _same_term(mine, its):
                return True
    return False


def _same_term(mine: Split, its: Split) -> bool:
    return mine.lower == its.lower and mine.upper == its.upper and mine.same_index(its)
