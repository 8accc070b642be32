"""``subspace_divide``: indices as ``outer * extent(inner) + inner``, for chosen inner loops.

``z*12 + y*3 + x`` with the inner loop ``x`` (of 3) is ``(z*4 + y)*3 + x``. Blockize makes its
outer and inner blocks from the two parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.iter_map.check import digits_by_mark
from weft.arith.iter_map.constraint import read_predicate
from weft.arith.iter_map.detect import detect_iter_map
from weft.arith.iter_map.integer import const_like, end_of, equal, floordiv, mul
from weft.arith.iter_map.nodes import (
    IterMapLevel,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    as_sum,
    constant_sum,
    scaled,
    whole,
)
from weft.arith.iter_map.padding import NotAffine, Padder
from weft.ir.expr import PrimExpr, Range, as_prim_expr
from weft.ir.functor import collect, substitute
from weft.ir.node import Array
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.constant import is_const_int
from weft.tir.expr import Var


class _Side(Enum):
    """Which loops a part consists of."""

    OUTER = auto()
    INNER = auto()
    BOTH = auto()


@dataclass(frozen=True, slots=True)
class _Division:
    """``outer * inner_extent + inner``."""

    outer: PrimExpr
    outer_extent: PrimExpr
    inner: PrimExpr
    inner_extent: PrimExpr
    side: _Side

    @staticmethod
    def all_outer(expr: PrimExpr, extent: PrimExpr) -> _Division:
        nothing = constant_sum(const_like(expr, 0))
        return _Division(expr, extent, nothing, const_like(expr, 1), _Side.OUTER)

    @staticmethod
    def all_inner(expr: PrimExpr, extent: PrimExpr) -> _Division:
        nothing = constant_sum(const_like(expr, 0))
        return _Division(nothing, const_like(expr, 1), expr, extent, _Side.INNER)


@deep_recursion
def subspace_divide(
    bindings: Sequence[PrimExpr],
    input_iters: Mapping[Var, Range],
    sub_iters: Iterable[Var],
    predicate: PrimExpr | bool = True,
    check_level: IterMapLevel | str | int | None = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    *,
    analyzer: Analyzer | None = None,
) -> Array[Array[IterMark]]:
    """Pairs of IterMarks ``[outer, inner]``, one for each binding, then one for the predicates.

    ``binding = outer.source * inner.extent + inner.source``, where ``inner`` runs over
    ``sub_iters`` and ``outer`` over the other loops. The extents of the last pair are the
    conditions on the outer and on the inner loops. Empty where the bindings do not divide so.
    """
    analyzer = analyzer or Analyzer()
    iter_map = detect_iter_map(
        bindings,
        input_iters,
        predicate,
        check_level,
        simplify_trivial_iterators,
        analyzer=analyzer,
    )
    if not iter_map.indices:
        return Array()
    divider = _Divider(analyzer, iter_map.indices, input_iters, set(sub_iters))
    pairs = []
    try:
        domains, _ = read_predicate(as_prim_expr(predicate), input_iters)
        fixed = {var: dom.min for var, dom in domains.items() if is_const_int(dom.extent, 1)}
        for total in iter_map.indices:
            part = divider.index(IterSumExpr(total.args, substitute(total.base, fixed)))
            outer, inner = IterMark(part.outer, part.outer_extent), part.inner
            pairs.append(Array([outer, IterMark(inner, part.inner_extent)]))
        divider.require_domains(domains)
    except NotAffine:
        return Array()
    nothing = constant_sum(op.const(0, "int32"))
    conditions = [IterMark(nothing, condition) for condition in divider.conditions.values()]
    return Array([*pairs, Array(conditions)])


class _Divider:
    """Divides sums and splits, from the loops upwards."""

    def __init__(
        self,
        analyzer: Analyzer,
        sums: Sequence[IterSumExpr],
        loops: Mapping[Var, Range],
        inner_loops: set[Var],
    ) -> None:
        self.padder = Padder(analyzer)
        self.digits = digits_by_mark(sums)
        self.loops = loops
        self.inner_loops = inner_loops
        self.known: dict[int, _Division] = {}
        self.marks: dict[int, _Division] = {}
        self.conditions: dict[_Side, PrimExpr] = {_Side.OUTER: fold.TRUE, _Side.INNER: fold.TRUE}

    def equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Whether two extents are known to be the same."""
        return equal(self.padder.analyzer, a, b)

    def index(self, total: IterSumExpr) -> _Division:
        """An index: at most one split, and a base, which goes to the inner part."""
        if not total.args:
            unit, nothing = const_like(total, 1), constant_sum(const_like(total, 0))
            return _Division(nothing, unit, constant_sum(total.base), unit, _Side.BOTH)
        (split,) = total.args
        if not is_const_int(split.scale, 1):
            raise NotAffine("an index has a stride")
        part = self.split(split)
        if is_const_int(total.base, 0):
            return part
        inner = as_sum(part.inner)
        moved = IterSumExpr(inner.args, total.base)
        return _Division(part.outer, part.outer_extent, moved, part.inner_extent, part.side)

    def split(self, split: IterSplitExpr) -> _Division:
        """A digit of a mark."""
        if id(split) not in self.known:
            mark = split.source
            if isinstance(mark.source, IterSplitExpr):
                raise NotAffine("a digit of a digit")
            if isinstance(mark.source, IterSumExpr):
                for digit in self.digits[id(mark)][1]:
                    self.known[id(digit)] = self.digit_of_sum(digit, self.fused(mark))
            else:
                self.loop(mark)
        return self.known[id(split)]

    def loop(self, mark: IterMark) -> None:
        """All digits of a loop."""
        make = _Division.all_outer
        for var in collect(mark.source, Var):
            if var in self.inner_loops:
                make = _Division.all_inner
        for digit in self.digits[id(mark)][1]:
            self.known[id(digit)] = make(digit, digit.extent)

    def digit_of_sum(self, digit: IterSplitExpr, whole_sum: _Division) -> _Division:
        """The digit of a sum ``Y*E + X``.

        Of ``Y*3 + X`` in [0, 12), the digits ``// 6, // 3 % 2, % 3`` belong to Y, Y and X; the
        digits ``// 4, // 2 % 2, % 2`` do not divide.
        """
        lower, extent, scale = digit.lower_factor, digit.extent, digit.scale
        if is_const_int(lower, 1) and self.equal(extent, digit.source.extent):
            return whole_sum
        boundary = whole_sum.inner_extent
        divides = self.padder.divides
        if whole_sum.side is _Side.INNER or (
            whole_sum.side is _Side.BOTH and divides(mul(lower, extent), boundary)
        ):
            source = IterMark(as_sum(whole_sum.inner), boundary)
            return _Division.all_inner(IterSplitExpr(source, lower, extent, scale), extent)
        if divides(boundary, lower):
            source = IterMark(as_sum(whole_sum.outer), whole_sum.outer_extent)
            lower = floordiv(lower, boundary)
            return _Division.all_outer(IterSplitExpr(source, lower, extent, scale), extent)
        raise NotAffine("a digit reaches over the end of the inner loops")

    def fused(self, mark: IterMark) -> _Division:
        """The sum that a mark stands for."""
        if id(mark) not in self.marks:
            self.marks[id(mark)] = self.sum(as_sum(mark.source), mark.extent)
        return self.marks[id(mark)]

    def sum(self, total: IterSumExpr, extent: PrimExpr) -> _Division:
        """A sum of splits that runs over [0, extent)."""
        if (
            len(total.args) == 1
            and is_const_int(total.base, 0)
            and is_const_int(total.args[0].scale, 1)
        ):
            part = self.split(total.args[0])
            if self.equal(total.args[0].extent, extent):
                return part
        inner: list[IterSplitExpr] = []
        outer: list[IterSplitExpr] = []
        for split in total.args[::-1]:
            part = self.split(split)
            if part.side is _Side.BOTH or (part.side is _Side.INNER and outer):
                raise NotAffine("inner loops do not stand right of the outer ones")
            if part.side is _Side.INNER:
                inner.append(scaled(_as_split(part.inner, part.inner_extent), split.scale))
            else:
                outer.append(scaled(_as_split(part.outer, part.outer_extent), split.scale))
        if not inner or not outer:
            side = _Side.INNER if inner else _Side.OUTER
            return self.one_sided(side, inner or outer, total.base, extent)
        inner_extent, below = self.chained(inner, const_like(total, 1))
        outer_extent, above = self.chained(outer, inner_extent)
        if not is_const_int(total.base, 0) or not self.equal(
            mul(inner_extent, outer_extent), extent
        ):
            raise NotAffine("a predicate bounds outer and inner loops together")
        zero = const_like(total, 0)
        return _Division(
            IterSumExpr(above, zero),
            outer_extent,
            IterSumExpr(below, zero),
            inner_extent,
            _Side.BOTH,
        )

    def chained(
        self, digits: Sequence[IterSplitExpr], unit: PrimExpr
    ) -> tuple[PrimExpr, Array[IterSplitExpr]]:
        """The extent of digits, given from the innermost, and them as multiples of ``unit``."""
        extent = const_like(unit, 1)
        placed = []
        for digit in digits:
            if not self.equal(digit.scale, mul(unit, extent)):
                raise NotAffine("the values of outer and inner loops overlap")
            placed.append(scaled(digit, extent))
            extent = mul(extent, digit.extent)
        return extent, Array(placed[::-1])

    def one_sided(
        self, side: _Side, digits: Sequence[IterSplitExpr], base: PrimExpr, extent: PrimExpr
    ) -> _Division:
        """A sum of loops of one side; what a predicate excludes becomes a condition."""
        total = IterSumExpr(Array(digits[::-1]), base)
        value = self.padder.plain.convert(total)
        zero = const_like(value, 0)
        self.require(side, op.greater_equal(value, zero))
        self.require(side, op.less(value, extent))
        if not is_const_int(base, 0):  # only the base of an index may lie outside of [0, extent)
            total = as_sum(whole(IterMark(total, extent)))
        make = _Division.all_inner if side is _Side.INNER else _Division.all_outer
        return make(total, extent)

    def require(self, side: _Side, condition: PrimExpr) -> None:
        """Record a condition on the loops of one side, unless it always holds."""
        bounds = analyzer_of(self.loops)
        if not bounds.can_prove(condition):
            self.conditions[side] = op.logical_and(self.conditions[side], condition)

    def require_domains(self, narrowed: Mapping[Var, Range]) -> None:
        """Record the bounds that a predicate puts on single loops."""
        for var, dom in narrowed.items():
            if dom is not self.loops[var]:
                side = _Side.INNER if var in self.inner_loops else _Side.OUTER
                self.require(side, op.greater_equal(var, dom.min))
                end = end_of(dom)
                if end is not None:
                    self.require(side, op.less(var, end))


def _as_split(expr: PrimExpr, extent: PrimExpr) -> IterSplitExpr:
    return expr if isinstance(expr, IterSplitExpr) else whole(IterMark(expr, extent))
