"""Integer sets: the values of expressions whose variables run over domains.

``eval_set(i*4 + 3, {i: [0, n-1]})`` is ``[3, (n-1)*4 + 3]``. Region estimation, buffer compaction
and bounds checks use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weft.arith import interval
from weft.arith.analyzer import Analyzer
from weft.arith.interval import Domain, IntervalSet, IntSet, as_int_set, neg_inf, pos_inf
from weft.arith.interval_evaluator import evaluate
from weft.ir.expr import PrimExpr, Range
from weft.ir.node import Array
from weft.support.recursion import deep_recursion
from weft.tir.expr import Var

__all__ = [
    "IntSet", "IntervalSet", "as_int_set", "eval_region", "eval_set", "intersect", "neg_inf",
    "pos_inf", "union", "union_lower_bound",
]  # fmt: skip


@deep_recursion
def eval_set(
    expr: PrimExpr | IntervalSet, domains: Mapping[Var, Domain], analyzer: Analyzer | None = None
) -> IntervalSet:
    """The values of an expression (or the union over a set's) as variables run over ``domains``.

    ``domains`` gives sets or Ranges; their ends may mention other variables of ``domains``, which
    are relaxed in turn.
    """
    return evaluate(expr, domains, analyzer or Analyzer())


def eval_region(
    region: Iterable[Range], domains: Mapping[Var, Domain], analyzer: Analyzer | None = None
) -> Array[IntervalSet]:
    """The set of each dimension of a region as variables run over ``domains``."""
    analyzer = analyzer or Analyzer()
    sets = [eval_set(as_int_set(rng, analyzer), domains, analyzer) for rng in region]
    return Array(sets)


def union(sets: Iterable[IntervalSet], analyzer: Analyzer | None = None) -> IntervalSet:
    """The smallest interval that holds all the sets."""
    return interval.union(sets, analyzer or Analyzer())


def union_lower_bound(sets: Iterable[IntervalSet]) -> IntervalSet:
    """An interval that lies inside the union of the sets.

    Sets that leave a gap to the ones before are dropped.
    """
    analyzer = Analyzer()
    result = IntSet.nothing()
    for item in sets:
        if item.is_nothing():
            continue
        if result.is_nothing():
            result = item
        elif _reaches(result, item, analyzer) and _reaches(item, result, analyzer):
            result = interval.union([result, item], analyzer)
    return result


def _reaches(first: IntervalSet, second: IntervalSet, analyzer: Analyzer) -> bool:
    """Whether ``second`` begins right after the end of ``first``, or before."""
    if second.min_value is neg_inf() or first.max_value is pos_inf():
        return True
    if second.min_value is pos_inf() or first.max_value is neg_inf():
        return False
    return analyzer.can_prove(second.min_value <= first.max_value + 1)


def intersect(sets: Iterable[IntervalSet], analyzer: Analyzer | None = None) -> IntervalSet:
    """The interval of the values that lie in all the sets."""
    return interval.intersect(sets, analyzer or Analyzer())
