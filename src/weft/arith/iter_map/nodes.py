"""The nodes of iteration maps: marks, splits and sums, and the levels of checking.

A loop variable (or a fused sum) that runs over ``[0, extent)`` is an ``IterMark``; a digit of it an
``IterSplitExpr``; an index is an ``IterSumExpr`` of digits. Names and fields are TVM's.
"""

from __future__ import annotations

from enum import IntEnum

from weft.arith import fold
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import PrimExpr
from weft.ir.node import Array, Node, field, node, with_slots
from weft.support.errors import IRValueError


class IterMapLevel(IntEnum):
    """How strict ``detect_iter_map`` is; the numbers are TVM's."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3

    @staticmethod
    def from_str(name: str | None) -> IterMapLevel:
        """The level of that name, in any case; None is ``NoCheck``."""
        names = {level.name.lower(): level for level in IterMapLevel}
        level_of_name = names.get((name or "nocheck").lower())
        if level_of_name is None:
            raise IRValueError(
                f"check_level: expected one of {', '.join(sorted(names))}, got {name!r}"
            )
        return level_of_name


def as_level(level: IterMapLevel | str | int | None) -> IterMapLevel:
    """The level from a name, a number or None."""
    if level is None or isinstance(level, str):
        return IterMapLevel.from_str(level)
    return IterMapLevel(level)


@node
class IterMark(Node):
    """A source (a loop variable, or a fused ``IterSumExpr``) that runs over [0, extent)."""

    source: PrimExpr
    extent: PrimExpr

    def __repr__(self) -> str:
        return f"IterMark({self.source}, extent={self.extent})"

    __str__ = __repr__


@with_slots
class IterMapExpr(PrimExpr):
    """The base of expressions over marks."""


@node
class IterSplitExpr(IterMapExpr):
    """``source // lower_factor % extent * scale``."""

    source: IterMark
    lower_factor: PrimExpr
    extent: PrimExpr
    scale: PrimExpr

    def _check_(self) -> None:
        self.dtype = self.source.source.dtype

    def __repr__(self) -> str:
        return (
            f"IterSplit({self.source}, lower_factor={self.lower_factor}, extent={self.extent}, "
            f"scale={self.scale})"
        )

    __str__ = __repr__


@node
class IterSumExpr(IterMapExpr):
    """The sum of splits and a base."""

    args: Array[IterSplitExpr]
    base: PrimExpr

    def _check_(self) -> None:
        self.dtype = self.base.dtype

    def __repr__(self) -> str:
        return f"IterSum({self.args}, {self.base})"

    __str__ = __repr__


@node
class IterMapResult(Node):
    """``indices`` (empty where the map is not one), and why not in ``errors``.

    ``padding_predicate`` holds where an index lies in padding that the map added.
    """

    indices: Array[IterSumExpr]
    errors: Array[str] = field(default=())
    padding_predicate: PrimExpr = field(default=fold.FALSE)


def whole(mark: IterMark, scale: PrimExpr | None = None) -> IterSplitExpr:
    """The split that is all of a mark."""
    unit = fold.const(mark.source.dtype, 1)
    return IterSplitExpr(mark, unit, mark.extent, unit if scale is None else scale)


def scaled(split: IterSplitExpr, scale: PrimExpr) -> IterSplitExpr:
    """The split with another scale."""
    return IterSplitExpr(split.source, split.lower_factor, split.extent, scale)


def constant_sum(base: PrimExpr) -> IterSumExpr:
    """The sum without splits."""
    return IterSumExpr(Array(), base)


def as_sum(expr: PrimExpr) -> IterSumExpr:
    """A sum from a sum, a split, or an expression that becomes its base."""
    if type(expr) is IterSumExpr:
        return expr
    if type(expr) is IterSplitExpr:
        return IterSumExpr(Array([expr]), fold.const(expr.dtype, 0))
    return constant_sum(expr)


def same_expr(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two factors or extents are the same expression."""
    return a is b or expr_deep_equal(a, b)


def same_digit(a: IterSplitExpr, b: IterSplitExpr) -> bool:
    """Whether two splits are the same digit of the same mark, whatever their scales."""
    return (
        a.source is b.source
        and same_expr(a.lower_factor, b.lower_factor)
        and same_expr(a.extent, b.extent)
    )


def same_sum(a: IterSumExpr, b: IterSumExpr) -> bool:
    """Whether two sums have the same digits with the same scales in the same order."""
    if len(a.args) != len(b.args) or not same_expr(a.base, b.base):
        return False
    for mine, its in zip(a.args, b.args, strict=True):
        if not same_digit(mine, its) or not same_expr(mine.scale, its.scale):
            return False
    return True
