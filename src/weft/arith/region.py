"""Bounds of buffer regions over all iterations of loops: by iteration maps, else by intervals.

A bound is exact if the starts in all dimensions are independent of each other (together they take
every combination), and if the steps leave no gaps in any dimension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.conjunction import conjuncts
from weft.arith.int_set import eval_set
from weft.arith.interval import IntervalSet, as_int_set
from weft.arith.iter_map import IterMapLevel, IterSumExpr, detect_iter_map
from weft.arith.iter_map.constraint import uses
from weft.arith.iter_map.integer import add, const_like, mul, sub
from weft.ir.expr import IntImm, PrimExpr, Range, as_prim_expr, integer_range
from weft.ir.functor import collect, substitute
from weft.ir.node import Array
from weft.support.recursion import deep_recursion
from weft.tir.constant import is_const_int
from weft.tir.expr import GE, LT, FloorDiv, FloorMod, Mul, Var
from weft.tir.op import match_types


@deep_recursion
def estimate_region_strict_bound(
    region: Sequence[Range],
    var_dom: Mapping[Var, Range],
    predicate: PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> Array[IntervalSet] | None:
    """The exact set of each dimension; None if the dimensions are not independent.

    Conditions of ``predicate`` on loops that no start uses decide whether anything is accessed at
    all. The result is None if they may never hold, as ``f < n`` for a loop ``f`` and unknown ``n``.
    """
    analyzer = analyzer or Analyzer()
    if not _hold_once(as_prim_expr(predicate), [rng.min for rng in region], var_dom, analyzer):
        return None
    return _touched_if_any(region, var_dom, predicate, analyzer)


def _touched_if_any(
    region: Sequence[Range],
    var_dom: Mapping[Var, Range],
    predicate: PrimExpr | bool,
    analyzer: Analyzer,
) -> Array[IntervalSet] | None:
    """The exact set of each dimension, if conditions on loops that no start uses hold sometimes."""
    if any(uses(rng.extent, var_dom) for rng in region):
        return None
    starts = [rng.min for rng in region]
    iter_map = detect_iter_map(
        starts, var_dom, predicate, IterMapLevel.Surjective, analyzer=analyzer
    )
    if len(iter_map.indices) != len(region):
        return None
    sets = []
    for rng, total in zip(region, iter_map.indices, strict=True):
        exact = _exact(total, rng.extent, analyzer)
        if exact is None:
            return None
        sets.append(exact)
    return Array(sets)


def _hold_once(
    predicate: PrimExpr,
    starts: Sequence[PrimExpr],
    var_dom: Mapping[Var, Range],
    analyzer: Analyzer,
) -> bool:
    """Whether conditions on loops that no start uses hold in the first or the last iteration.

    The loops are taken to run: if one of them has no iteration, nothing is accessed anyway.
    """
    conditions = [part for part in conjuncts(predicate) if uses(part, var_dom)]
    if not conditions:
        return True
    named = {var: var for start in starts for var in collect(start, Var) if var in var_dom}
    parts = [part for part in conditions if not uses(part, named)]
    if not parts:
        return True
    first = {var: dom.min for var, dom in var_dom.items()}
    last = {
        var: sub(add(dom.min, dom.extent), const_like(dom.extent, 1))
        for var, dom in var_dom.items()
    }
    with ExitStack() as runs:
        for dom in var_dom.values():
            runs.enter_context(analyzer.constraint_scope(dom.extent >= const_like(dom.extent, 1)))
        return any(
            all(analyzer.can_prove(substitute(part, corner)) for part in parts)
            for corner in (first, last)
        )


def _exact(total: IterSumExpr, extent: PrimExpr, analyzer: Analyzer) -> IntervalSet | None:
    """The union of ``extent`` values from each start on; None if the steps leave gaps."""
    if is_const_int(extent, 0):
        return IntervalSet.nothing()
    low, reach = total.base, extent
    if total.args:
        (split,) = total.args
        if is_const_int(split.extent, 0):
            return IntervalSet.nothing()
        scale = split.scale
        last = mul(sub(split.extent, const_like(split.extent, 1)), scale)
        zero = const_like(scale, 0)
        if analyzer.can_prove(LT(scale, zero)):
            low, last, scale = add(low, last), sub(zero, last), sub(zero, scale)
        if not analyzer.can_prove(GE(*match_types(extent, scale))):
            return None
        reach = add(extent, last)
    if isinstance(low, IntImm) and isinstance(reach, IntImm):
        if low.value + reach.value - 1 > integer_range(low.dtype)[1]:
            return None  # the last element is no number of the index's type
    high = sub(add(low, reach), const_like(reach, 1))
    return IntervalSet(analyzer.simplify(low), analyzer.simplify(high))


def estimate_region_lower_bound(
    region: Sequence[Range],
    var_dom: Mapping[Var, Range],
    predicate: PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> Array[IntervalSet] | None:
    """Sets that lie inside of what is accessed; None if none are known."""
    return estimate_region_strict_bound(region, var_dom, predicate, analyzer)


@deep_recursion
def estimate_region_upper_bound(
    region: Sequence[Range],
    var_dom: Mapping[Var, Range],
    predicate: PrimExpr | bool = True,
    analyzer: Analyzer | None = None,
) -> Array[IntervalSet]:
    """Sets that contain everything that is accessed; exact in each dimension where possible."""
    exact = _touched_if_any(region, var_dom, predicate, analyzer or Analyzer())
    if exact is not None:
        return exact
    if analyzer is None:
        analyzer = analyzer_of(var_dom)
    sets = []
    with analyzer.constraint_scope(as_prim_expr(predicate)):
        for rng in region:
            alone = _touched_if_any([rng], var_dom, predicate, analyzer)
            if alone is not None:
                sets.append(alone[0])
            else:
                sets.append(_by_intervals(rng, var_dom, analyzer))
    return Array(sets)


def _by_intervals(rng: Range, var_dom: Mapping[Var, Range], analyzer: Analyzer) -> IntervalSet:
    """What a range takes, by arithmetic of intervals.

    Intervals know little of products and quotients of symbols. So these are simplified first:
    ``((i + j // 4) * n + k) % n`` with j below 4 and k below n is k.
    """
    if any(not isinstance(part.b, IntImm) for part in collect(rng.min, (Mul, FloorDiv, FloorMod))):
        with ExitStack() as domains:
            for var, dom in var_dom.items():
                for inside in (var >= dom.min, var < add(dom.min, dom.extent)):
                    domains.enter_context(analyzer.constraint_scope(inside))
            rng = Range.from_min_extent(analyzer.simplify(rng.min), rng.extent)
    return eval_set(as_int_set(rng, analyzer), var_dom, analyzer)
