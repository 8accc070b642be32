"""Finds digits in a sum, and joins digits of one mark: ``x // 4 * 4 + x % 4`` becomes ``x``.

The digits of a sum are searched from the right, where the smallest scales usually are.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.integer import equal, factors, ordered_product, sub
from weft.arith.iter_map.nodes import IterMark, IterSplitExpr
from weft.ir.expr import IntImm, PrimExpr
from weft.tir.constant import is_const_int


class DigitSearch:
    """A search among the digits of a sum; each digit can be taken once."""

    def __init__(self, splits: Sequence[IterSplitExpr], analyzer: Analyzer) -> None:
        self.splits = splits
        self.analyzer = analyzer
        self.unused = [True] * len(splits)
        self.has_unit = False
        for split in splits:
            self.has_unit = self.has_unit or is_const_int(split.extent, 1)

    def left(self, mark: IterMark | None = None) -> list[int]:
        """Positions not used yet (of the digits of one mark), from the right."""
        left = []
        for position in range(len(self.splits) - 1, -1, -1):
            if self.unused[position] and (mark is None or self.splits[position].source is mark):
                left.append(position)
        return left

    def take(self, position: int) -> IterSplitExpr:
        """The digit at a position, which is used from now on."""
        self.unused[position] = False
        return self.splits[position]

    def smallest(self, mark: IterMark | None = None) -> int:
        """The position of the digit with the smallest constant scale; -1 if no digit is left.

        If no scale is constant, it is the one with the fewest factors. Of equal scales, a digit
        with a single value comes first, since it does not change the next scale.
        """
        best, best_scale = -1, 0
        for position in self.left(mark):
            split = self.splits[position]
            if type(split.scale) is not IntImm:
                continue
            scale: int = split.scale.value
            unit = is_const_int(split.extent, 1)
            if best < 0 or scale < best_scale:
                best, best_scale = position, scale
            elif scale == best_scale and unit and not is_const_int(self.splits[best].extent, 1):
                best = position
        if best >= 0:
            return best
        fewest = 0
        for position in self.left(mark):
            constant, symbols = factors(self.splits[position].scale)
            count = len(symbols) + (constant != 1)
            if best < 0 or count < fewest:
                best, fewest = position, count
        return best

    def of_scale(self, scale: PrimExpr, mark: IterMark | None = None) -> int:
        """The position of a digit with exactly that scale, or -1; single values come first."""
        match = -1
        for position in self.left(mark):
            if not equal(self.analyzer, self.splits[position].scale, scale):
                continue
            if is_const_int(self.splits[position].extent, 1):
                return position
            if match < 0:
                match = position
            if not self.has_unit:
                break
        return match

    def below_scale(self, scale: PrimExpr) -> int:
        """The position of the digit with the largest scale from 0 to ``scale``, or -1."""
        highest = -1
        for position in self.left():
            current = self.splits[position].scale
            if not (
                self.analyzer.can_prove_greater_equal(sub(scale, current), 0)
                and self.analyzer.can_prove_greater_equal(current, 0)
            ):
                continue
            best = None if highest < 0 else self.splits[highest].scale
            if best is None or self.analyzer.can_prove_less(sub(best, current), 0):
                highest = position
        return highest


def combine_digits(
    splits: Sequence[IterSplitExpr], analyzer: Analyzer
) -> list[IterSplitExpr] | None:
    """Join neighbouring digits of the same mark; None if every mark has one digit.

    ``x // (c*s) % m * (s*t) + x // c % s * t`` is ``x // c % (m*s) * t``.
    """
    counts: dict[int, int] = {}
    for split in splits:
        counts[id(split.source)] = counts.get(id(split.source), 0) + 1
    if len(counts) == len(splits):
        return None
    search = DigitSearch(splits, analyzer)
    joined: list[IterSplitExpr] = []
    for position in range(len(splits) - 1, -1, -1):
        mark = splits[position].source
        while search.unused[position]:
            if counts[id(mark)] == 1:
                joined.append(search.take(position))
            else:
                low = search.take(search.smallest(mark))
                joined.append(_with_upper_digits(low, search))
    return joined[::-1]


def _with_upper_digits(low: IterSplitExpr, search: DigitSearch) -> IterSplitExpr:
    """The digit joined with those that continue it."""
    while True:
        following = search.of_scale(ordered_product(low.extent, low.scale), low.source)
        if following < 0:
            return low
        upper = search.splits[following]
        if not equal(
            search.analyzer, upper.lower_factor, ordered_product(low.lower_factor, low.extent)
        ):
            return low
        search.take(following)
        extent = ordered_product(upper.extent, low.extent)
        low = IterSplitExpr(low.source, low.lower_factor, extent, low.scale)
