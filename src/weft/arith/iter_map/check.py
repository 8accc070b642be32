"""Whether the digits of a map are independent: the last step of ``detect_iter_map``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.integer import add, const_like, equal, mul, sub
from weft.arith.iter_map.nodes import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr, as_sum
from weft.arith.iter_map.padding import NotAffine, Padder, Padding
from weft.ir.expr import PrimExpr
from weft.tir import op
from weft.tir.constant import is_const_int


def digits_by_mark(sums: Iterable[IterSumExpr]) -> dict[int, tuple[IterMark, list[IterSplitExpr]]]:
    """id(mark) -> (mark, its digits in the sums and in the marks that these are made of)."""
    digits: dict[int, tuple[IterMark, list[IterSplitExpr]]] = {}
    add_digits(digits, sums)
    return digits


def add_digits(
    digits: dict[int, tuple[IterMark, list[IterSplitExpr]]], sums: Iterable[IterSumExpr]
) -> None:
    """Add the digits of further sums, by mark; a mark that has digits is not entered again."""
    pending = [split for total in sums for split in total.args]
    while pending:
        split = pending.pop(0)
        mark = split.source
        entry = digits.get(id(mark))
        if entry is None:
            entry = digits[id(mark)] = (mark, [])
            source = mark.source
            if isinstance(source, IterSumExpr):
                pending.extend(source.args)
            elif isinstance(source, IterSplitExpr):
                pending.append(source)
        entry[1].append(split)


class Checker:
    """Checks that the digits of each mark do not overlap, and (bijective) cover it."""

    def __init__(self, analyzer: Analyzer, padder: Padder, level: IterMapLevel) -> None:
        self.analyzer = analyzer
        self.padder = padder
        self.level = level
        self.remark = ""

    def check(
        self,
        sums: Sequence[IterSumExpr],
        inputs: Iterable[IterMark],
        constrained: Iterable[IterMark],
    ) -> None:
        """Raises NotAffine where the indices are not independent (or not bijective).

        ``constrained`` are the marks of sums that predicates bound. The loops of such a sum do not
        take all combinations of values, so an index must use the whole sum or none of its loops.
        """
        used = digits_by_mark(sums)
        if self.level == IterMapLevel.Bijective:
            for mark in inputs:
                if id(mark) not in used and not is_const_int(mark.extent, 1):
                    raise NotAffine(f"not bijective: loop {mark.source} is not used")
        if self.level != IterMapLevel.NoCheck:
            unused = [as_sum(mark.source) for mark in constrained if id(mark) not in used]
            if unused and self.level == IterMapLevel.Bijective:
                raise NotAffine("not bijective: a predicate bounds loops that no index uses whole")
            add_digits(used, unused)
            self.remark = "; a predicate bounds loops that no index uses whole" if unused else ""
        for mark, digits in used.values():
            covered = self.covered(mark, digits)
            self.check_extent(mark, digits, covered)

    def covered(self, mark: IterMark, digits: list[IterSplitExpr]) -> PrimExpr:
        """Where the last digit ends; each begins where another ends (or above)."""
        rest = list(digits)
        expected: PrimExpr = const_like(mark.source, 1)
        while rest:
            digit = self.next_digit(mark, rest, expected)
            rest = [other for other in rest if other is not digit]
            expected = mul(digit.lower_factor, digit.extent)
        return expected

    def next_digit(
        self, mark: IterMark, rest: list[IterSplitExpr], expected: PrimExpr
    ) -> IterSplitExpr:
        """The digit that starts at ``expected``, or (not bijective) the next one above."""
        for digit in rest:
            if equal(self.analyzer, digit.lower_factor, expected):
                return digit
        if self.level == IterMapLevel.Bijective:
            raise NotAffine(
                f"not bijective: digits of {self.text(mark)} overlap or leave a gap at {expected}"
            )
        lowest = rest[0]
        for digit in rest:
            if not self.padder.divides(expected, digit.lower_factor):
                raise NotAffine(
                    f"not independent: digits of {self.text(mark)} overlap, one starts at "
                    f"{digit.lower_factor}, the ones below end at {expected}{self.remark}"
                )
            if self.padder.divides(digit.lower_factor, lowest.lower_factor):
                lowest = digit
        return lowest

    def check_extent(self, mark: IterMark, digits: list[IterSplitExpr], covered: PrimExpr) -> None:
        """Raise unless the digits cover the mark or, if not bijective, a divisor of its extent."""
        padding = self.padder.padding_to(mark)
        full = equal(self.analyzer, covered, mark.extent)
        if self.level == IterMapLevel.Bijective:
            if not full:
                raise NotAffine(
                    f"not bijective: digits of {self.text(mark)} cover {covered} of {mark.extent}"
                )
            return
        if not full and not self.padder.divides(covered, mark.extent):
            if padding is None or self.level == IterMapLevel.Surjective:
                raise NotAffine(
                    f"not surjective: digits of {self.text(mark)} cover {covered}, which does "
                    f"not divide {mark.extent}"
                )
        if padding is not None and self.level == IterMapLevel.Surjective:
            self.check_padded(mark, padding, digits, covered)

    def check_padded(
        self, mark: IterMark, padding: Padding, digits: list[IterSplitExpr], covered: PrimExpr
    ) -> None:
        """The values that are no padding must reach all that the digits cover.

        They do if there are as many, or if the only digit is the uppermost and the padding on
        each side is less than one step of it.
        """
        extent = padding.mark.extent
        if self.analyzer.can_prove(op.greater_equal(extent, covered)):
            return
        (digit, *others) = digits
        if not others and self.padder.is_top(digit):
            lower = digit.lower_factor
            if equal(self.analyzer, lower, padding.step):
                return
            right = sub(mark.extent, add(padding.left, extent))
            if self.analyzer.can_prove(op.all(op.less(padding.left, lower), op.less(right, lower))):
                return
        raise NotAffine(
            f"not surjective: digits of {self.text(mark)} cover {covered}, but it has "
            f"{extent} values before padding"
        )

    def text(self, mark: IterMark) -> str:
        """The mark in messages."""
        return str(self.padder.plain.convert(mark.source))
