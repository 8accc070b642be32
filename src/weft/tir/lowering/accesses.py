"""Whether an access is proved to lie inside its buffer, axis by axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.lanes import as_ramp
from weft.tir.lowering.proofs import Bounds

_I64: Final = DataType("int64")


def is_within(bounds: Bounds, indices: Sequence[PrimExpr], shape: Sequence[PrimExpr]) -> bool:
    """Whether every index is proved to be inside its axis, in every lane."""
    for index, extent in zip(indices, shape, strict=True):
        if not is_on_axis(bounds, index, extent):
            return False
    return True


def is_on_axis(bounds: Bounds, index: PrimExpr, extent: PrimExpr) -> bool:
    """Whether ``0 <= index < extent`` is proved, in every lane."""
    low, high = _ends(index)
    if low is None or high is None:
        interval = bounds.ranges.of(index)
        return interval[0] >= 0 and interval[1] < bounds.ranges.of(extent)[0]
    return bounds.not_negative(low) and bounds.below(high, extent)


def _ends(index: PrimExpr) -> tuple[PrimExpr | None, PrimExpr | None]:
    """The least and the largest index of a vector at a constant stride; a scalar is both.

    ``T.Ramp(i, 2, 4)`` → (``i``, ``i + 6``). (None, None) for other vectors.
    """
    if index.dtype.lanes == 1:
        return index, index
    ramp = as_ramp(index)
    if ramp is None:
        return None, None
    base, stride = ramp
    return span(base, stride * (index.dtype.lanes - 1))


def span(base: PrimExpr, distance: int) -> tuple[PrimExpr, PrimExpr]:
    """``base`` and ``base + distance``, the smaller one first.

    >>> from weft.tir import Var
    >>> span(Var("i", "int64"), -3)
    (i + T.int64(-3), i)
    """
    if distance == 0:
        return base, base
    wide = base if base.dtype is _I64 else e.Cast(_I64, base)
    other = e.Add(wide, IntImm(_I64, distance))
    return (base, other) if distance > 0 else (other, base)
