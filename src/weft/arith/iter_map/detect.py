"""``detect_iter_map``: when indices are a one-to-one (quasi-affine) function of loops.

``detect_iter_map([i*4 + j], {i: [0, 8), j: [0, 4)})`` shows that the index runs once through
[0, 32). Every index becomes an ``IterSumExpr`` of ``IterSplitExpr``s, each a digit
``source // lower_factor % extent * scale`` of an ``IterMark``. Schedules ask it whether a block's
bindings are affine, and regions use it for exact bounds. Names and results follow TVM's
IterAffineMap; where that takes a map whose offsets no padding can serve, this one refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.check import Checker
from weft.arith.iter_map.combine import combine_digits
from weft.arith.iter_map.constraint import read_predicate, uses
from weft.arith.iter_map.integer import factors, ordered_product
from weft.arith.iter_map.nodes import (
    IterMapLevel,
    IterMapResult,
    IterSplitExpr,
    IterSumExpr,
    as_level,
    as_sum,
    scaled,
)
from weft.arith.iter_map.padding import NotAffine
from weft.arith.iter_map.rewriter import Rewriter
from weft.arith.iter_map.to_expr import ToExpr
from weft.ir.expr import PrimExpr, Range, as_prim_expr
from weft.ir.node import Array
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.constant import is_const_int
from weft.tir.expr import Var


@deep_recursion
def detect_iter_map(
    indices: Sequence[PrimExpr],
    input_iters: Mapping[Var, Range],
    predicate: PrimExpr | bool = True,
    check_level: IterMapLevel | str | int | None = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    *,
    analyzer: Analyzer | None = None,
) -> IterMapResult:
    """The indices as sums of digits of the loops, if together they are independent.

    ``predicate`` may bound loops and sums of them, from both sides. ``Bijective`` also demands
    that every loop is used up; below that, marks may be padded where a divisor does not divide
    (``padding_predicate``). With ``simplify_trivial_iterators`` a loop of one value is its value.
    """
    try:
        return _detected(
            [as_prim_expr(index) for index in indices],
            input_iters,
            as_prim_expr(predicate),
            as_level(check_level),
            simplify_trivial_iterators,
            analyzer or Analyzer(),
        )
    except NotAffine as reason:
        return IterMapResult(Array(), Array([str(reason)]))


def _detected(
    indices: Sequence[PrimExpr],
    iters: Mapping[Var, Range],
    predicate: PrimExpr,
    level: IterMapLevel,
    simplify_trivial: bool,
    analyzer: Analyzer,
) -> IterMapResult:
    check_domains(iters)
    domains, constraints = read_predicate(predicate, iters)
    rewriter = Rewriter(domains, analyzer, level, simplify_trivial)
    for constraint in constraints:
        total = as_sum(rewriter.rewrite(constraint.sum))
        if not rewriter.fuser.constrain(total, constraint.low, constraint.high):
            raise NotAffine(f"the bounded sum {constraint.sum} is no iterator")
    if not rewriter.fuser.constraints_nest():
        raise NotAffine("two predicates bound sums that share some loops, not all")
    sums: list[IterSumExpr] = []
    padder = rewriter.padder
    if level != IterMapLevel.Bijective:
        padder.collecting = True
        sums = [rewriter.index(index) for index in indices]
        padder.collecting = False
    if level == IterMapLevel.Bijective or padder.needed:
        sums = [rewriter.index(index) for index in indices]
    constrained = [entry.mark for entry in rewriter.fuser.constrained]
    Checker(analyzer, padder, level).check(sums, rewriter.input_marks, constrained)
    return IterMapResult(Array(sums), Array(), padder.predicate)


def check_domains(iters: Mapping[Var, Range]) -> None:
    """Raises NotAffine where the domain of a loop depends on another of the loops."""
    for var, dom in iters.items():
        if uses(dom.min, iters) or uses(dom.extent, iters):
            raise NotAffine(f"the domain of {var.name} depends on other loops")


@deep_recursion
def iter_map_simplify(
    indices: Sequence[PrimExpr],
    input_iters: Mapping[Var, Range],
    predicate: PrimExpr | bool = True,
    check_level: IterMapLevel | str | int | None = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    *,
    analyzer: Analyzer | None = None,
) -> Array[PrimExpr]:
    """The indices, simplified through their iteration map where there is one."""
    analyzer = analyzer or Analyzer()
    level = as_level(check_level)
    exprs = [as_prim_expr(index) for index in indices]
    condition = as_prim_expr(predicate)
    iter_map = detect_iter_map(
        exprs, input_iters, condition, level, simplify_trivial_iterators, analyzer=analyzer
    )
    if not iter_map.indices and level != IterMapLevel.Bijective and not is_const_int(condition, 1):
        # A map without the predicate is a map with it, too.
        iter_map = detect_iter_map(
            exprs, input_iters, True, level, simplify_trivial_iterators, analyzer=analyzer
        )
    if not iter_map.indices:
        return Array(exprs)
    return indices_of(iter_map, analyzer)


def indices_of(iter_map: IterMapResult, analyzer: Analyzer) -> Array[PrimExpr]:
    """The indices of a map as expressions: simpler than those it was detected from."""
    plain = ToExpr(analyzer)
    return Array([plain.convert(index) for index in iter_map.indices])


@deep_recursion
def normalize_to_iter_sum(index: PrimExpr, input_iters: Mapping[Var, Range]) -> IterSumExpr:
    """An index as a sum of digits, by descending constant scale, then by number of symbols.

    Every scale is symbols times a constant. What is no sum of digits becomes part of the base.
    """
    try:
        check_domains(input_iters)
    except NotAffine as reason:
        raise IRValueError(f"normalize_to_iter_sum: {reason}") from None
    analyzer = Analyzer()
    rewriter = Rewriter(input_iters, analyzer, IterMapLevel.NoCheck, True, lenient=True)
    total = as_sum(rewriter.rewrite(as_prim_expr(index)))
    if not total.args:
        return total
    splits: Sequence[IterSplitExpr] = combine_digits(total.args, analyzer) or total.args
    ordered = [scaled(split, ordered_product(split.scale)) for split in splits]
    ordered.sort(key=_order_of_scale)
    return IterSumExpr(Array(ordered), rewriter.plain(total.base))


def _order_of_scale(split: IterSplitExpr) -> tuple[int, int]:
    constant, symbols = factors(split.scale)
    return -constant, -len(symbols)
