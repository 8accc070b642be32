"""Sums of scaled splits: the normal form that the canonical simplifier computes with.

A ``Split`` is ``(index % upper) // lower * scale``; a ``Sum`` is splits plus a constant. Both are
immutable; the functions here do the algebra. The printed order is TVM's: descending scale, the
positive terms first, then the constant, then what is subtracted.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from weft.arith import fold
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr, integer_range
from weft.support.dtype import DataType
from weft.tir.expr import Add, FloorDiv, FloorMod, Mul, Sub

_PARTS: Final = 8
"""So many constants of full size may stand in a sum; more can belong to no index."""


@final
@dataclass(frozen=True, slots=True)
class Split:
    """``(index % upper) // lower * scale``; no ``upper`` means no remainder is taken.

    ``floor`` says how ``%`` and ``//`` round; ``lower`` divides ``upper``.
    """

    index: PrimExpr
    lower: int = 1
    upper: int | None = None
    scale: int = 1
    floor: bool = True

    def same_index(self, other: Split) -> bool:
        """Whether both are splits of the same expression."""
        return self.index is other.index or expr_deep_equal(self.index, other.index)

    def same_mode(self, other: Split) -> bool:
        """Whether both round in the same way; a plain split does not round at all."""
        return self.floor is other.floor or self.is_plain or other.is_plain

    @property
    def is_plain(self) -> bool:
        """Whether the split is the scaled index itself."""
        return self.lower == 1 and self.upper is None

    def scaled(self, scale: int) -> Split:
        """The same split, its scale replaced."""
        return Split(self.index, self.lower, self.upper, scale, self.floor)

    def build(self, sign: int = 1) -> PrimExpr:
        """The expression, times ``sign``."""
        result: PrimExpr = self.index
        dtype = result.dtype
        if self.upper is not None:
            modulo = fold.floormod if self.floor else fold.truncmod
            result = modulo(result, fold.const(dtype, self.upper))
        if self.lower != 1:
            divide = fold.floordiv if self.floor else fold.truncdiv
            result = divide(result, fold.const(dtype, self.lower))
        terms = [fold.mul(result, factor) for factor in _in_range(dtype, self.scale * sign)]
        return functools.reduce(fold.add, terms)

    def unit(self) -> PrimExpr:
        """The expression without its scale."""
        return self.scaled(1).build()


@final
@dataclass(frozen=True, slots=True)
class Sum:
    """``splits`` (none with scale 0) plus ``base``."""

    dtype: DataType
    splits: tuple[Split, ...] = ()
    base: int = 0

    def plus(self, other: Sum, sign: int = 1) -> Sum:
        """self + sign * other."""
        if not other.splits:
            return Sum(self.dtype, self.splits, self.base + sign * other.base)
        splits = list(self.splits)
        for split in other.splits:
            _insert(splits, split if sign == 1 else split.scaled(split.scale * sign))
        kept = tuple(split for split in splits if split.scale != 0)
        return Sum(self.dtype, kept, self.base + sign * other.base)

    def times(self, factor: int) -> Sum:
        """Every term times a constant."""
        if factor == 0:
            return Sum(self.dtype)
        splits = tuple(split.scaled(split.scale * factor) for split in self.splits)
        return Sum(self.dtype, splits, self.base * factor)

    def divided(self, by: int) -> Sum:
        """Every term divided by a constant that divides them all."""
        splits = tuple(split.scaled(split.scale // by) for split in self.splits)
        return Sum(self.dtype, splits, self.base // by)

    def separate(self, factor: int) -> tuple[Sum, Sum]:
        """(the terms that ``factor`` divides, the others)."""
        inside = tuple(split for split in self.splits if split.scale % factor == 0)
        outside = tuple(split for split in self.splits if split.scale % factor != 0)
        if self.base % factor == 0:
            return Sum(self.dtype, inside, self.base), Sum(self.dtype, outside)
        return Sum(self.dtype, inside), Sum(self.dtype, outside, self.base)

    def merged(self) -> Sequence[Split]:
        """The terms, joined where two are parts of one."""
        if len(self.splits) > 1:
            for split in self.splits:
                if split.upper is not None:
                    return _merge(self.splits)
        return self.splits

    def build(self) -> PrimExpr:
        """The expression."""
        splits, base = self.merged(), self.base
        if splits is not self.splits:
            flat = _flattened(self, splits)
            splits, base = flat.merged(), flat.base
        if len(splits) > 1:
            splits = sorted(splits, key=_order)
        result: PrimExpr | None = None
        for split in splits:
            if split.scale > 0:
                term = split.build()
                result = term if result is None else fold.add(result, term)
        if not splits:
            return fold.wrapped(self.dtype, base)
        first, *rest = _in_range(self.dtype, base)
        if result is None:
            result = first
        elif getattr(first, "value", 0) > 0:
            result = fold.add(result, first)
        else:
            rest = [first, *rest]
        for split in splits:
            if split.scale < 0:
                result = _less(result, split)
        return functools.reduce(fold.add, rest, result)


def _less(result: PrimExpr, split: Split) -> PrimExpr:
    """``result`` plus a term whose scale is negative."""
    dtype = split.index.dtype
    if dtype.is_int and -split.scale > integer_range(dtype)[1]:
        return fold.add(result, split.build())
    return fold.sub(result, split.build(-1))


def _in_range(dtype: DataType, value: int) -> list[PrimExpr]:
    """The constant, or several whose sum it is where it does not fit a signed type.

    ``n - 2147483646 - 7`` does not overflow an int32 where n is 6. With one constant, which would
    be ``n + 2147483643``, it would, and bounds assume that indices do not.
    """
    if not dtype.is_int or dtype.is_bool:
        return [fold.wrapped(dtype, value)]
    low, high = integer_range(dtype)
    parts: list[PrimExpr] = []
    while not low <= value <= high and len(parts) < _PARTS:
        end = low if value < low else high
        parts.append(fold.const(dtype, end))
        value -= end
    return [*parts, fold.wrapped(dtype, value)]


Form = PrimExpr | Split | Sum
"""What the canonical simplifier computes with: a Sum, a single Split, or any other expression."""


def _flattened(total: Sum, joined: Sequence[Split]) -> Sum:
    """The sum of ``joined`` terms; a term that is a sum itself is replaced by its terms."""
    flat = Sum(total.dtype, (), total.base)
    for split in joined:
        plain = split.is_plain and type(split.index) in (Add, Sub, Mul)
        flat = flat.plus(
            _terms(split.index).times(split.scale) if plain else Sum(total.dtype, (split,))
        )
    return flat


def _terms(expr: PrimExpr) -> Sum:
    """The sum from which ``build`` made this expression."""
    if type(expr) is IntImm:
        return Sum(expr.dtype, (), expr.value)
    if type(expr) is Add:
        return _terms(expr.a).plus(_terms(expr.b))
    if type(expr) is Sub:
        return _terms(expr.a).plus(_terms(expr.b), -1)
    if type(expr) is Mul and type(expr.b) is IntImm:
        return _terms(expr.a).times(expr.b.value)
    return Sum(expr.dtype, (_digit(expr),))


def _digit(expr: PrimExpr) -> Split:
    """``index % upper // lower`` as a split."""
    index: PrimExpr = expr
    lower: int = 1
    upper: int | None = None
    if type(index) is FloorDiv and type(index.b) is IntImm and index.b.value > 0:
        lower = index.b.value
        index = index.a
    if type(index) is FloorMod and type(index.b) is IntImm and index.b.value % lower == 0:
        upper = index.b.value
        index = index.a
    if upper is not None and upper <= 0:
        return Split(expr)
    return Split(index, lower, upper)


def _order(split: Split) -> tuple[int, int, float, bool]:
    upper = float("inf") if split.upper is None else split.upper
    return -split.scale, -split.lower, -upper, not split.floor


def _insert(splits: list[Split], new: Split) -> None:
    """Add a term: its scale to that of an equal split, if there is one; else at the end."""
    for position, split in enumerate(splits):
        if (
            split.lower == new.lower
            and split.upper == new.upper
            and split.same_index(new)
            and split.same_mode(new)
        ):
            splits[position] = split.scaled(split.scale + new.scale)
            return
    splits.append(new)


def _merge(splits: tuple[Split, ...]) -> list[Split]:
    """Join terms such as ``x // c * c + x % c`` to ``x``, as far as possible."""
    merged = list(splits)
    for position in range(len(merged)):
        while merged[position].upper is not None and merged[position].scale:
            low = merged[position]
            partner = _next_digits(merged, low)
            if partner is None:
                break
            upper = merged[partner].upper
            merged[position] = Split(low.index, low.lower, upper, low.scale, low.floor)
            merged[partner] = merged[partner].scaled(0)
    return [split for split in merged if split.scale != 0]


def _next_digits(splits: list[Split], low: Split) -> int | None:
    """The position of the split that continues ``low``: its ``lower`` is the ``upper`` of that."""
    assert low.upper is not None
    for position, high in enumerate(splits):
        if (
            high.lower == low.upper
            and high.scale * low.lower == low.scale * low.upper
            and high.scale
            and low.same_mode(high)
            and low.same_index(high)
        ):
            return position
    return None
