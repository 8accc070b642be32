"""Sums of digits as one mark: ``i*4 + j`` with ``j`` in [0, 4) is one iterator of 4 times ``i``.

A sum fuses if each scale is the next smaller scale times the extent of that digit. Without a demand
for a bijection, scales may also be smaller: values then occur several times, but none is left out.
Predicates on sums are kept here too: a constrained sum is a group whose extent is what the
predicate allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.combine import DigitSearch, combine_digits
from weft.arith.iter_map.integer import (
    add,
    const_like,
    equal,
    floordiv,
    maximum,
    minimum,
    mul,
    ordered_product,
    sub,
)
from weft.arith.iter_map.nodes import (
    IterMapLevel,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    same_digit,
    same_sum,
    scaled,
    whole,
)
from weft.ir.expr import PrimExpr
from weft.ir.node import Array
from weft.tir.constant import is_const_int
from weft.tir.op import less_equal


@dataclass(slots=True)
class FusedSum:
    """A sum of loops' digits that was fused: its flat form, its mark, and the least value.

    The mark counts from 0, so the sum is ``mark + offset``.
    """

    flat: IterSumExpr
    mark: IterMark
    offset: PrimExpr


@dataclass(slots=True)
class _Chain:
    """A sum that is being fused: its digits so far, from the smallest scale upwards."""

    base_scale: PrimExpr
    expected: PrimExpr
    extra: PrimExpr
    tail: PrimExpr
    flat: list[IterSplitExpr] = field(default_factory=list)
    grouped: list[IterSplitExpr] = field(default_factory=list)


class Fuser:
    """Fuses sums; equal sums get one mark."""

    def __init__(self, analyzer: Analyzer, level: IterMapLevel) -> None:
        self.analyzer = analyzer
        self.level = level
        self.sums: list[FusedSum] = []
        self.constrained: list[FusedSum] = []

    def fuse(self, total: IterSumExpr, keep_single: bool = True) -> IterSumExpr | None:
        """The sum as one split of one mark; None where its scales do not chain.

        With ``keep_single``, a sum whose digits join to a single digit is returned as that digit.
        """
        splits: Sequence[IterSplitExpr] = total.args
        joined = combine_digits(splits, self.analyzer)
        if joined is not None:
            if len(joined) <= 1 and keep_single:
                return IterSumExpr(Array(joined), total.base)
            splits = joined
        if not splits:
            return None
        chain = self.chained(splits)
        if chain is None:
            return None
        zero = const_like(total, 0)
        flat = IterSumExpr(Array(chain.flat[::-1]), zero)
        known = self.find(flat)
        if known is None:
            grouped = IterSumExpr(Array(chain.grouped[::-1]), zero)
            extent = add(self.quotient(chain.expected, chain.base_scale), chain.tail)
            offset = self.quotient(chain.extra, chain.base_scale)
            known = FusedSum(flat, IterMark(grouped, extent), offset)
            self.sums.append(known)
        elif not equal(self.analyzer, chain.extra, mul(known.offset, chain.base_scale)):
            return None
        fused = whole(known.mark, chain.base_scale)
        return IterSumExpr(Array([fused]), add(total.base, chain.extra))

    def find(self, flat: IterSumExpr) -> FusedSum | None:
        """The fused sum of that flat form."""
        for known in self.sums:
            if same_sum(known.flat, flat):
                return known
        return None

    def quotient(self, value: PrimExpr, by: PrimExpr) -> PrimExpr:
        """``value // by``, simplified if there is something to divide."""
        return value if is_const_int(by, 1) else self.analyzer.simplify(floordiv(value, by))

    def chained(self, splits: Sequence[IterSplitExpr]) -> _Chain | None:
        """The digits in the order of their scales, each the one below times its extent."""
        search = DigitSearch(splits, self.analyzer)
        position, exact = search.smallest(), True
        base_scale = splits[position].scale
        zero = const_like(base_scale, 0)
        chain = _Chain(base_scale, base_scale, zero, zero)
        overlap = self.level != IterMapLevel.Bijective and is_const_int(base_scale, 1)
        while position >= 0:
            scale = chain.expected if exact else splits[position].scale
            if not exact:
                chain.tail = add(chain.tail, sub(chain.expected, scale))
            if not self.append(chain, search, position, scale):
                return None
            position, exact = search.of_scale(chain.expected), True
            if position < 0 and overlap:
                position, exact = search.below_scale(chain.expected), False
        return None if search.left() else chain

    def append(self, chain: _Chain, search: DigitSearch, position: int, scale: PrimExpr) -> bool:
        """Add a digit, or the constrained sum that it starts, to the chain."""
        group = self.constraint_from(search.splits[position])
        if group is None:
            split = search.take(position)
            split = scaled(split, self.quotient(split.scale, chain.base_scale))
            chain.flat.append(split)
            chain.grouped.append(split)
            chain.expected = ordered_product(split.extent, scale)
            return True
        for wanted in group.flat.args[::-1]:
            position = self.matching(search, wanted, mul(wanted.scale, scale))
            if position < 0:
                return False
            split = search.take(position)
            chain.flat.append(scaled(split, self.quotient(split.scale, chain.base_scale)))
        chain.grouped.append(whole(group.mark, self.quotient(scale, chain.base_scale)))
        chain.extra = add(chain.extra, mul(group.offset, scale))
        chain.expected = ordered_product(group.mark.extent, scale)
        return True

    def constraint_from(self, split: IterSplitExpr) -> FusedSum | None:
        """The longest constrained sum that starts with this digit."""
        longest = None
        for group in self.constrained:
            if same_digit(split, group.flat.args[-1]) and (
                longest is None or len(longest.flat.args) < len(group.flat.args)
            ):
                longest = group
        return longest

    def matching(self, search: DigitSearch, wanted: IterSplitExpr, scale: PrimExpr) -> int:
        """The position of a digit with that scale, or -1."""
        for position in search.left():
            split = search.splits[position]
            if same_digit(split, wanted) and equal(self.analyzer, split.scale, scale):
                return position
        return -1

    def constrain(self, total: IterSumExpr, low: PrimExpr | None, high: PrimExpr | None) -> bool:
        """Record ``low <= total < high`` (either may be None); False if the sum does not fuse."""
        base, zero = total.base, const_like(total, 0)
        fused = self.fuse(IterSumExpr(total.args, zero), keep_single=False)
        if fused is None or not is_const_int(fused.args[0].scale, 1):
            return False
        mark = fused.args[0].source
        known = next(entry for entry in self.sums if entry.mark is mark)
        start = known.offset
        end = add(start, mark.extent)
        prove = self.analyzer.can_prove
        if low is not None:
            low = maximum(sub(low, base), start)
        if high is not None:
            high = sub(high, base)
            if prove(less_equal(end, high)):
                high = None
            elif not prove(less_equal(high, end)):
                high = self.analyzer.simplify(minimum(high, end))
        if low is None and high is None:
            return True
        source: PrimExpr = mark.source
        if low is not None:
            assert isinstance(source, IterSumExpr)  # the mark of a fused sum
            source = IterSumExpr(source.args, sub(source.base, sub(low, start)))
        start = start if low is None else low
        end = end if high is None else high
        known.mark, known.offset = IterMark(source, sub(end, start)), start
        if not any(known is entry for entry in self.constrained):
            self.constrained.append(known)
        return True

    def constraints_nest(self) -> bool:
        """Whether any two constrained sums share no digit, or one contains the other."""
        for position, inner in enumerate(self.constrained):
            for outer in self.constrained[position + 1 :]:
                shared = 0
                for digit in inner.flat.args:
                    for other in outer.flat.args:
                        if same_digit(digit, other):
                            shared += 1
                            break
                if shared not in (0, len(inner.flat.args)):
                    return False
        return True
