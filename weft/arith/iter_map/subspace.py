"""``subspace_divide``: indices as ``outer * extent(inner) + inner``, for chosen inner loops.

``z*12 + y*3 + x`` with the inner loop ``x`` (of 3) is ``(z*4 + y)*3 + x``. Blockize makes its
outer and inner blocks from the two parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.check import digits_by_mark
from weft.arith.iter_map.detect import detect_iter_map
from weft.arith.iter_map.integer import add, const_like, equal, floordiv, is_value, mul
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
from weft.arith.iter_map.padding import NotAffine
from weft.arith.iter_map.to_expr import ToExpr
from weft.ir.expr import Range
from weft.ir.functor import collect
from weft.ir.node import Array
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.expr import Var


class _Side(Enum):
    """Which loops a part is made of."""

    OUTER = auto()
    INNER = auto()
    BOTH = auto()


@dataclass(frozen=True, slots=True)
class _Division:
    """``outer * inner_extent + inner``."""

    outer: Any
    outer_extent: Any
    inner: Any
    inner_extent: Any
    side: _Side

    @staticmethod
    def all_outer(expr: Any, extent: Any) -> _Division:
        nothing = constant_sum(const_like(expr, 0))
        return _Division(expr, extent, nothing, const_like(expr, 1), _Side.OUTER)

    @staticmethod
    def all_inner(expr: Any, extent: Any) -> _Division:
        nothing = constant_sum(const_like(expr, 0))
        return _Division(nothing, const_like(expr, 1), expr, extent, _Side.INNER)


@deep_recursion
def subspace_divide(
    bindings: Sequence[Any],
    input_iters: Mapping[Var, Range],
    sub_iters: Iterable[Var],
    predicate: Any = True,
    check_level: IterMapLevel | str | int | None = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
    *,
    analyzer: Analyzer | None = None,
) -> Array:
    """Pairs of IterMarks ``[outer, inner]``, one for each binding, then one for the predicates.

    ``binding = outer.source * inner.extent + inner.source``, where ``inner`` runs over
    ``sub_iters`` and ``outer`` over the other loops. The extents of the last pair are the
    conditions on the outer and on the inner loops. Empty where the bindings do not divide so.
    """
    analyzer = analyzer or Analyzer()
    found = detect_iter_map(
        bindings, input_iters, predicate, check_level, simplify_trivial_iterators,
        analyzer=analyzer,
    )  # fmt: skip
    if not found.indices:
        return Array()
    divider = _Divider(analyzer, found.indices, set(sub_iters))
    pairs = []
    try:
        for total in found.indices:
            part = divider.sum(total, None)
            pairs.append(
                Array(
                    [
                        IterMark(part.outer, part.outer_extent),
                        IterMark(part.inner, part.inner_extent),
                    ]
                )
            )
    except NotAffine:
        return Array()
    nothing = constant_sum(op.const(0, "int32"))
    conditions = [IterMark(nothing, condition) for condition in divider.conditions.values()]
    return Array([*pairs, Array(conditions)])


class _Divider:
    """Divides sums and splits, from the loops upwards."""

    def __init__(
        self, analyzer: Analyzer, sums: Sequence[IterSumExpr], inner_loops: set[Var]
    ) -> None:
        self.analyzer = analyzer
        self.digits = digits_by_mark(sums)
        self.inner_loops = inner_loops
        self.known: dict[int, _Division] = {}
        self.conditions: dict[_Side, Any] = {_Side.OUTER: fold.TRUE, _Side.INNER: fold.TRUE}

    def sum(self, total: IterSumExpr, extent: Any) -> _Division:
        """A sum of splits; ``extent`` is that of its mark (None: an index, which has none)."""
        if not total.args:
            one, nothing = const_like(total, 1), constant_sum(const_like(total, 0))
            return _Division(nothing, one, constant_sum(total.base), one, _Side.BOTH)
        if len(total.args) == 1:
            if not is_value(total.args[0].scale, 1):
                raise NotAffine("an index has a stride")
            return _with_base(self.split(total.args[0]), total.base)
        parts: dict[_Side, list[IterSplitExpr]] = {_Side.INNER: [], _Side.OUTER: []}
        covered = const_like(total, 1)
        for split in total.args[::-1]:
            part = self.split(split)
            if part.side is _Side.BOTH or (part.side is _Side.INNER and parts[_Side.OUTER]):
                raise NotAffine("inner loops do not stand right of the outer ones")
            expr, size = (
                (part.inner, part.inner_extent)
                if part.side is _Side.INNER
                else (part.outer, part.outer_extent)
            )
            digit = expr if isinstance(expr, IterSplitExpr) else whole(IterMark(expr, size))
            parts[part.side].append(digit)
            covered = mul(covered, digit.extent)
        if not any(is_value(split.scale, 1) for split in total.args):
            raise NotAffine("an index has a stride")
        outer = _mark_of(parts[_Side.OUTER], const_like(total, 0))
        inner = _mark_of(parts[_Side.INNER], total.base)
        if extent is None or equal(self.analyzer, covered, extent):
            return _Division(outer.source, outer.extent, inner.source, inner.extent, _Side.BOTH)
        return self.constrained(parts, outer, inner, extent)

    def constrained(
        self, parts: Mapping[_Side, Any], outer: IterMark, inner: IterMark, extent: Any
    ) -> _Division:
        """A sum that a predicate cuts short: all its loops must be on one side."""
        plain = ToExpr(self.analyzer)
        if not parts[_Side.INNER]:
            self.require(_Side.OUTER, op.less(plain.convert(outer.source), extent))
            return _Division.all_outer(outer.source, extent)
        if not parts[_Side.OUTER]:
            self.require(_Side.INNER, op.less(plain.convert(inner.source), extent))
            return _Division.all_inner(inner.source, extent)
        raise NotAffine("a predicate bounds outer and inner loops together")

    def require(self, side: _Side, condition: Any) -> None:
        """Note what a predicate says of the loops of one side."""
        self.conditions[side] = op.logical_and(self.conditions[side], condition)

    def split(self, split: IterSplitExpr) -> _Division:
        """A digit of a mark."""
        if id(split) not in self.known:
            mark = split.source
            if isinstance(mark.source, IterSumExpr):
                whole_division = self.fused(mark)
                if whole_division is not None:
                    return whole_division
            elif isinstance(mark.source, IterSplitExpr):
                raise NotAffine("a digit of a digit")
            else:
                self.loop(mark)
        return self.known[id(split)]

    def loop(self, mark: IterMark) -> None:
        """All digits of a loop."""
        inner = False
        for var in collect(mark.source, Var):
            inner = inner or var in self.inner_loops
        make = _Division.all_inner if inner else _Division.all_outer
        for digit in self.digits[id(mark)][1]:
            self.known[id(digit)] = make(digit, digit.extent)

    def fused(self, mark: IterMark) -> _Division | None:
        """The digits of a fused mark; its division, where the mark has only one digit.

        Of ``Y*3 + X`` in [0, 12), the digits ``// 6, // 3 % 2, % 3`` belong to Y, Y and X; the
        digits ``// 4, // 2 % 2, % 2`` do not divide.
        """
        total: Any = mark.source
        division = self.sum(total, mark.extent)
        digits = self.digits[id(mark)][1]
        if len(digits) == 1:
            return division
        if division.side is _Side.OUTER:
            boundary = True
        else:
            boundary = equal(self.analyzer, division.inner_extent, const_like(mark.source, 1))
        parts: dict[bool, list[IterSplitExpr]] = {False: [], True: []}
        expected: Any = const_like(mark.source, 1)
        rest = list(digits)
        while rest:
            digit = self.starting_at(expected, rest)
            rest = [other for other in rest if other is not digit]
            parts[boundary].append(digit)
            expected = mul(expected, digit.extent)
            boundary = boundary or equal(self.analyzer, expected, division.inner_extent)
        if not boundary:
            raise NotAffine("no digit ends where the inner loops end")
        inner_mark = IterMark(as_sum(division.inner), division.inner_extent)
        outer_mark = IterMark(as_sum(division.outer), division.outer_extent)
        for digit in parts[False]:
            made = IterSplitExpr(inner_mark, digit.lower_factor, digit.extent, digit.scale)
            self.known[id(digit)] = _Division.all_inner(made, digit.extent)
        for digit in parts[True]:
            lower = floordiv(digit.lower_factor, parts[True][0].lower_factor)
            made = IterSplitExpr(outer_mark, lower, digit.extent, digit.scale)
            self.known[id(digit)] = _Division.all_outer(made, digit.extent)
        return None

    def starting_at(self, lower: Any, digits: Sequence[IterSplitExpr]) -> IterSplitExpr:
        """The digit with that lower factor."""
        for digit in digits:
            if equal(self.analyzer, digit.lower_factor, lower):
                return digit
        raise NotAffine("the digits of a fused loop leave a gap")


def _with_base(part: _Division, base: Any) -> _Division:
    """The division of ``expr + base``: the base goes to the inner part."""
    if is_value(base, 0):
        return part
    inner = as_sum(part.inner)
    moved = IterSumExpr(inner.args, add(inner.base, base))
    return _Division(part.outer, part.outer_extent, moved, part.inner_extent, part.side)


def _mark_of(digits: Sequence[IterSplitExpr], base: Any) -> IterMark:
    """The mark of digits, given from the innermost, one directly above the other."""
    extent = const_like(base, 1)
    placed = []
    for digit in digits:
        placed.append(scaled(digit, extent))
        extent = mul(extent, digit.extent)
    return IterMark(IterSumExpr(Array(placed[::-1]), base), extent)
