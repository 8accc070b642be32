"""Whether the digits of a map are independent: how ``detect_iter_map`` ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.integer import const_like, equal, is_value, mul
from weft.arith.iter_map.nodes import IterMapLevel, IterMark, IterSplitExpr, IterSumExpr
from weft.arith.iter_map.padding import NotAffine, Padder
from weft.tir import op


def digits_by_mark(sums: Iterable[IterSumExpr]) -> dict[int, tuple[IterMark, list[IterSplitExpr]]]:
    """id(mark) -> (mark, its digits in the sums and in the marks that these are made of)."""
    found: dict[int, tuple[IterMark, list[IterSplitExpr]]] = {}
    pending = [split for total in sums for split in total.args]
    while pending:
        split = pending.pop(0)
        mark = split.source
        entry = found.get(id(mark))
        if entry is None:
            entry = found[id(mark)] = (mark, [])
            source = mark.source
            if isinstance(source, IterSumExpr):
                pending.extend(source.args)
            elif isinstance(source, IterSplitExpr):
                pending.append(source)
        entry[1].append(split)
    return found


class Checker:
    """Checks that the digits of each mark do not overlap, and (bijective) cover it."""

    def __init__(self, analyzer: Analyzer, padder: Padder, level: IterMapLevel) -> None:
        self.analyzer = analyzer
        self.padder = padder
        self.level = level

    def check(self, sums: Sequence[IterSumExpr], inputs: Iterable[IterMark]) -> None:
        """Raises NotAffine where the indices are not independent (or not bijective)."""
        used = digits_by_mark(sums)
        for mark, digits in used.values():
            covered = self.covered(mark, digits)
            self.check_extent(mark, digits, covered)
        if self.level != IterMapLevel.Bijective:
            return
        for mark in inputs:
            if id(mark) not in used and not is_value(mark.extent, 1):
                raise NotAffine(f"not bijective: loop {mark.source} is not used")

    def covered(self, mark: IterMark, digits: list[IterSplitExpr]) -> Any:
        """Where the last digit ends; each begins where another ends (or above)."""
        rest = list(digits)
        expected: Any = const_like(mark.source, 1)
        while rest:
            digit = self.next_digit(mark, rest, expected)
            rest = [other for other in rest if other is not digit]
            expected = mul(digit.lower_factor, digit.extent)
        return expected

    def next_digit(self, mark: IterMark, rest: list[IterSplitExpr], expected: Any) -> Any:
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
                    f"{digit.lower_factor}, the ones below end at {expected}"
                )
            if self.padder.divides(digit.lower_factor, lowest.lower_factor):
                lowest = digit
        return lowest

    def check_extent(self, mark: IterMark, digits: list[IterSplitExpr], covered: Any) -> None:
        """What the digits cover must be the mark, or (not bijective) a divisor of it."""
        original = self.padder.original(mark)
        full = equal(self.analyzer, covered, mark.extent)
        if self.level == IterMapLevel.Bijective:
            if original is not None:
                raise NotAffine(f"not bijective: {self.text(mark)} is padded to {mark.extent}")
            if not full:
                raise NotAffine(
                    f"not bijective: digits of {self.text(mark)} cover {covered} of {mark.extent}"
                )
            return
        if not full and not self.padder.divides(covered, mark.extent):
            if original is None or self.level == IterMapLevel.Surjective:
                raise NotAffine(
                    f"not surjective: digits of {self.text(mark)} cover {covered}, which does "
                    f"not divide {mark.extent}"
                )
        if original is not None and self.level == IterMapLevel.Surjective:
            self.check_padded(mark, original, digits, covered, full)

    def check_padded(
        self,
        mark: IterMark,
        original: IterMark,
        digits: list[IterSplitExpr],
        covered: Any,
        full: bool,
    ) -> None:
        """Padding may not reach into what the digits cover."""
        if full and len(digits) != 1:
            raise NotAffine(
                f"not surjective: several digits use {self.text(mark)}, padded from "
                f"{original.extent} to {mark.extent}"
            )
        enough = self.analyzer.can_prove(op.greater_equal(original.extent, covered))
        whole = full and not equal(self.analyzer, digits[0].extent, covered)
        if not enough and not whole:
            raise NotAffine(
                f"not surjective: {self.text(mark)} has {original.extent} values before padding, "
                f"fewer than {covered}"
            )

    def text(self, mark: IterMark) -> str:
        """The mark in messages."""
        return str(self.padder.plain.convert(mark.source))
