"""Bounds of buffer regions as loops run: exact ones through iteration maps, else by intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.int_set import eval_set
from weft.arith.interval import IntervalSet, as_int_set
from weft.arith.iter_map import IterMapLevel, IterSumExpr, detect_iter_map
from weft.ir.expr import Range, as_prim_expr
from weft.ir.node import Array
from weft.support.recursion import deep_recursion
from weft.tir.expr import GE, Var


def _analyzer_of(var_dom: Mapping[Var, Range], given: Analyzer | None) -> Analyzer:
    """``given``, or a new analyzer, that knows the domains."""
    analyzer = Analyzer() if given is None else given
    for var, dom in var_dom.items():
        analyzer.bind(var, dom, allow_override=True)
    return analyzer


@deep_recursion
def estimate_region_strict_bound(
    region: Sequence[Range],
    var_dom: Mapping[Var, Range],
    predicate: Any = True,
    analyzer: Analyzer | None = None,
) -> Array | None:
    """The exact set of each dimension, or None where the region is no independent product."""
    found = detect_iter_map(
        [rng.min for rng in region], var_dom, predicate, IterMapLevel.Surjective
    )
    if len(found.indices) != len(region):
        return None
    analyzer = _analyzer_of(var_dom, analyzer)
    sets = []
    for rng, total in zip(region, found.indices, strict=True):
        exact = _exact(rng, total, analyzer)
        if exact is None:
            return None
        sets.append(exact)
    return Array(sets)


def _exact(rng: Range, total: IterSumExpr, analyzer: Analyzer) -> IntervalSet | None:
    """[base, ...] of one dimension; None where the steps leave holes."""
    one = fold.const(rng.extent.dtype, 1)
    if not total.args:
        return as_int_set(Range.from_min_extent(total.base, rng.extent), analyzer)
    (split,) = total.args
    if not analyzer.can_prove(GE(rng.extent, split.scale)):
        return None
    reach = fold.mul(fold.sub(split.extent, one), split.scale)
    last = fold.sub(fold.add(fold.add(total.base, reach), rng.extent), one)
    return IntervalSet(analyzer.simplify(total.base), analyzer.simplify(last))


def estimate_region_lower_bound(
    region: Sequence[Range],
    var_dom: Mapping[Var, Range],
    predicate: Any = True,
    analyzer: Analyzer | None = None,
) -> Array | None:
    """Sets that lie inside of what is touched, or None where none is known."""
    return estimate_region_strict_bound(region, var_dom, predicate, analyzer)


@deep_recursion
def estimate_region_upper_bound(
    region: Sequence[Range],
    var_dom: Mapping[Var, Range],
    predicate: Any = True,
    analyzer: Analyzer | None = None,
) -> Array:
    """Sets that hold everything touched: exact where possible, else interval by interval."""
    exact = estimate_region_strict_bound(region, var_dom, predicate, analyzer)
    if exact is not None:
        return exact
    analyzer = _analyzer_of(var_dom, analyzer)
    sets = []
    with analyzer.constraint_scope(as_prim_expr(predicate)):
        for rng in region:
            sets.append(eval_set(as_int_set(rng, analyzer), var_dom, analyzer))
    return Array(sets)
