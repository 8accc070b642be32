"""Pads marks to a multiple of a divisor that does not divide them.

``[i // 4, i % 4]`` with ``i`` in [0, 18) is the map of an iterator of 20, whose last two values
are padding. All uses of a mark must agree on one padding, so indices are rewritten twice. The first
round collects what the divisions of each mark need: the padding on the left modulo a step.
(``(i + 10) % 3`` needs a padding of 1 modulo 3.) The second round pads each mark by a number that
fulfils all these needs; if there is none, the map is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.integer import (
    add,
    ceildiv,
    common_multiple,
    const_like,
    equal,
    floordiv,
    floormod,
    mul,
    product_divides,
)
from weft.arith.iter_map.nodes import (
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    same_digit,
    same_expr,
    whole,
)
from weft.arith.iter_map.to_expr import ToExpr
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.node import Array
from weft.tir import op
from weft.tir.constant import is_const_int


class NotAffine(ArithmeticError):
    """The indices are no iteration map; the message says why."""


@dataclass(slots=True)
class Padding:
    """A mark's padding: ``left`` modulo ``step``, and the padded mark of the second round."""

    mark: IterMark
    left: PrimExpr
    step: PrimExpr
    padded: IterMark | None = None


class Padder:
    """The padding of all marks of a map."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.plain = ToExpr(analyzer)
        self.paddings: list[Padding] = []
        self.collecting = False
        self.needed = False
        self.predicate: PrimExpr = fold.FALSE
        self._trials: dict[int, tuple[IterMark, Padding, PrimExpr]] = {}
        self._parts: list[tuple[IterSplitExpr, IterMark]] = []

    def divides(self, divisor: PrimExpr, value: PrimExpr) -> bool:
        """Whether ``value`` is known to be a multiple of ``divisor``."""
        if type(divisor) is IntImm:
            number: int = divisor.value
            if number == 0:
                return False
            if type(value) is IntImm:
                return bool(value.value % number == 0)
            if number == 1:
                return True
        value, divisor = self.plain.convert(value), self.plain.convert(divisor)
        if product_divides(divisor, value) or self.analyzer.can_prove_equal(value, divisor):
            return True
        return equal(self.analyzer, floormod(value, divisor), const_like(value, 0))

    def padding_to(self, mark: IterMark) -> Padding | None:
        """The padding that ``mark`` is the result of, or None."""
        for padding in self.paddings:
            if padding.padded is mark:
                return padding
        return None

    def is_top(self, split: IterSplitExpr) -> bool:
        """Whether nothing of the mark lies above the digit."""
        mark, covered = split.source, mul(split.lower_factor, split.extent)
        if type(covered) is IntImm and type(mark.extent) is IntImm:
            return bool(covered.value >= mark.extent.value)
        return self.analyzer.can_prove(op.greater_equal(covered, mark.extent))

    def as_mark(self, split: IterSplitExpr) -> IterSplitExpr:
        """The digit (of scale 1) as a mark of its own: equal ones get one mark."""
        for known, mark in self._parts:
            if same_digit(known, split):
                return whole(mark)
        mark = IterMark(split, split.extent)
        self._parts.append((split, mark))
        return whole(mark)

    def pad(
        self, split: IterSplitExpr, base: PrimExpr, divisor: PrimExpr
    ) -> tuple[IterSplitExpr, PrimExpr]:
        """Prepare ``split + base`` for division: the padded split, and its padding on the left.

        ``base`` minus that padding is a multiple of ``divisor``.
        """
        residue = self.analyzer.simplify(floormod(base, divisor))
        if self.collecting:
            return self.collect(split, residue, divisor)
        padding = self.of_mark(split.source)
        left = const_like(residue, 0)
        if padding is not None and not (
            is_const_int(padding.left, 0) and self.divides(padding.step, padding.mark.extent)
        ):
            if padding.padded is None:
                padding.padded = self.padded_mark(padding)
            split, left = whole(padding.padded), padding.left
        if not (
            (is_const_int(residue, 0) and is_const_int(left, 0))
            or equal(self.analyzer, residue, floormod(left, divisor))
        ):
            raise NotAffine(
                f"the offset {base} of {self.plain.convert(split)} is no multiple of {divisor}, "
                "and other indices forbid to shift the iterator"
            )
        return split, left

    def of_mark(self, mark: IterMark) -> Padding | None:
        """The padding that was collected for a mark."""
        for padding in self.paddings:
            if padding.mark is mark:
                return padding
        return None

    def collect(
        self, split: IterSplitExpr, residue: PrimExpr, divisor: PrimExpr
    ) -> tuple[IterSplitExpr, PrimExpr]:
        """First round: record what this division needs, and use a trial mark as the padded one."""
        trial_of = self._trials.get(id(split.source))
        padding = self.of_mark(split.source) if trial_of is None else trial_of[1]
        if trial_of is not None:
            shifted = trial_of[2]
        else:
            shifted = const_like(residue, 0)
        step = mul(divisor, split.lower_factor)
        left = add(shifted, mul(residue, split.lower_factor))
        if padding is None:
            padding = Padding(split.source, left, step)
            self.paddings.append(padding)
        else:
            self.agree(padding, left, step)
        edge = add(residue, split.extent)
        if is_const_int(residue, 0) and self.divides(divisor, edge):
            return split, residue
        self.needed = True
        extent = self.analyzer.simplify(mul(ceildiv(edge, divisor), divisor))
        if not self.is_top(split):
            return IterSplitExpr(split.source, split.lower_factor, extent, split.scale), residue
        trial = self.trial(padding, left, mul(extent, split.lower_factor))
        return IterSplitExpr(trial, split.lower_factor, extent, split.scale), residue

    def trial(self, padding: Padding, left: PrimExpr, extent: PrimExpr) -> IterMark:
        """The mark of the first round for a mark shifted by ``left``."""
        for mark, its_padding, its_left in self._trials.values():
            if its_padding is padding and same_expr(its_left, left):
                return mark
        mark = IterMark(IterSumExpr(Array([whole(padding.mark)]), left), extent)
        self._trials[id(mark)] = mark, padding, left
        return mark

    def agree(self, padding: Padding, left: PrimExpr, step: PrimExpr) -> None:
        """Make ``padding`` also ``left`` modulo ``step``."""
        numbers = (padding.left, padding.step, left, step)
        constants = [number.value for number in numbers if isinstance(number, IntImm)]
        if len(constants) == len(numbers):
            both = common_residue(*constants)
            if both is not None:
                padding.left, padding.step = const_like(left, both[0]), const_like(step, both[1])
                return
        else:
            joint = common_multiple(padding.step, step, self.analyzer)
            same = self.analyzer.can_prove_equal
            for choice in (padding.left, left):
                if same(floormod(choice, padding.step), floormod(padding.left, padding.step)) and (
                    same(floormod(choice, step), floormod(left, step))
                ):
                    padding.left, padding.step = choice, joint
                    return
        raise NotAffine(
            f"{self.plain.convert(padding.mark.source)} would be padded on the left by "
            f"{padding.left} (modulo {padding.step}) and by {left} (modulo {step})"
        )

    def padded_mark(self, padding: Padding) -> IterMark:
        """The padded mark; the condition for its padding is added to the predicate."""
        mark, left, step = padding.mark, padding.left, padding.step
        edge = add(mark.extent, left)
        zero = const_like(edge, 0)
        exact = self.divides(step, edge)
        extent = edge if exact else self.analyzer.simplify(mul(ceildiv(edge, step), step))
        source = IterSumExpr(Array([whole(mark)]), left)
        quotient, rest = floordiv(source, step), floormod(source, step)
        last = zero if exact else floormod(edge, step)
        before = op.all(op.not_equal(left, zero), op.equal(quotient, zero), op.less(rest, left))
        after = op.all(
            op.not_equal(last, zero),
            op.equal(quotient, floordiv(edge, step)),
            op.greater_equal(rest, last),
        )
        self.predicate = op.any(self.predicate, op.any(before, after))
        return IterMark(source, extent)


def common_residue(a: int, m: int, b: int, n: int) -> tuple[int, int] | None:
    """(x, lcm(m, n)) with x = a modulo m and x = b modulo n, 0 <= x; None if there is none."""
    joint = lcm(m, n)
    for x in range(a % m, joint, m):
        if x % n == b % n:
            return x, joint
    return None
