"""Integer sets: what values expressions take as their variables run over domains.

``eval_set(i*4 + 3, {i: [0, n-1]})`` is ``[3, (n-1)*4 + 3]``. Region estimation, buffer compaction
and bounds checks build on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.arith import interval
from weft.arith.analyzer import Analyzer
from weft.arith.interval import IntervalSet, IntSet, as_int_set, neg_inf, pos_inf
from weft.ir.expr import Range
from weft.ir.node import Array
from weft.support.recursion import deep_recursion
from weft.tir.expr import Var

__all__ = [
    "IntSet", "IntervalSet", "as_int_set", "eval_region", "eval_set", "intersect", "neg_inf",
    "pos_inf", "union",
]  # fmt: skip


@deep_recursion
def eval_set(
    expr: Any, domains: Mapping[Var, Any], analyzer: Analyzer | None = None
) -> IntervalSet:
    """The values of an expression (or the union over a set's) as variables run over ``domains``.

    ``domains`` gives sets or Ranges; their ends may mention other variables of ``domains``, which
    are relaxed in turn.
    """
    return interval.evaluate(expr, domains, analyzer or Analyzer())


def eval_region(
    region: Iterable[Range], domains: Mapping[Var, Any], analyzer: Analyzer | None = None
) -> Array:
    """The set of each dimension of a region as variables run over ``domains``."""
    analyzer = analyzer or Analyzer()
    sets = [eval_set(as_int_set(rng, analyzer), domains, analyzer) for rng in region]
    return Array(sets)


def union(sets: Iterable[IntervalSet], analyzer: Analyzer | None = None) -> IntervalSet:
    """The smallest interval that holds all the sets."""
    return interval.union(sets, analyzer or Analyzer())


def intersect(sets: Iterable[IntervalSet], analyzer: Analyzer | None = None) -> IntervalSet:
    """The interval of what lies in all the sets."""
    return interval.intersect(sets, analyzer or Analyzer())
