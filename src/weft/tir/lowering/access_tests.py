"""The conditions to test so that an access lies within its buffer: those that are not proved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import IntImm, PrimExpr, integer_range
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir import op
from weft.tir.lanes import as_ramp
from weft.tir.lowering.accesses import is_on_axis, span
from weft.tir.lowering.building import like
from weft.tir.lowering.proofs import Bounds

_I64: Final = DataType("int64")


@dataclass(frozen=True, eq=False)
class AxisTest:
    """The condition that an access lies within its buffer on one axis.

    It is about the indices from ``low`` to ``high``; both are the vector of all indices where they
    are at no constant stride.
    """

    axis: int
    condition: PrimExpr
    low: PrimExpr
    high: PrimExpr
    extent: PrimExpr


def index_lanes(indices: Sequence[PrimExpr]) -> int:
    """How many lanes the widest index has."""
    return max([index.dtype.lanes for index in indices], default=1)


def axis_tests(
    bounds: Bounds,
    indices: Sequence[PrimExpr],
    shape: Sequence[PrimExpr],
    mask: PrimExpr | None = None,
) -> Iterator[AxisTest]:
    """A test for each axis on which an index is not proved to be inside.

    ``mask`` tells which lanes are accessed; None: all of them. A vector at a constant stride is
    tested at its two ends, any other one in each lane.
    """
    vectors = [index for index in indices if index.dtype.lanes > 1]
    if not vectors:
        yield from _tests_of_ends(bounds, indices, shape, 0)
        return
    lanes = index_lanes(vectors)
    ramp = as_ramp(indices[-1]) if mask is None and len(vectors) == 1 else None
    if ramp is not None:
        first, stride = ramp
        yield from _tests_of_ends(bounds, [*indices[:-1], first], shape, stride * (lanes - 1))
        return
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        if is_on_axis(bounds, index, extent):
            continue
        vector = index if index.dtype.lanes > 1 else e.Broadcast(index, lanes)
        condition = _inside(vector, vector, extent)
        if mask is not None:
            condition = _together("tir.bitwise_or", condition, e.Not(mask))
        yield AxisTest(axis, condition, vector, vector, extent)


def _tests_of_ends(
    bounds: Bounds, indices: Sequence[PrimExpr], shape: Sequence[PrimExpr], distance: int
) -> Iterator[AxisTest]:
    """Tests of scalar indices; on the last axis, from that index to ``distance`` beyond it."""
    last = len(indices) - 1
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        step = distance if axis == last else 0
        least, largest = bounds.ranges.of(index)
        if least + min(step, 0) >= 0 and largest + max(step, 0) < bounds.ranges.of(extent)[0]:
            continue  # nor does the sum wrap then
        low, high = span(index, step)
        is_low_proved, is_high_proved = bounds.not_negative(low), bounds.below(high, extent)
        if is_low_proved and is_high_proved:
            continue
        if bounds.is_exact(low) and bounds.is_exact(high):
            condition = _inside(
                None if is_low_proved else low, None if is_high_proved else high, extent
            )
        elif step:
            condition = _both_ends_inside(index, step, extent)
        else:
            # One end is proved of a number that does not wrap, the other would be tested of one
            # that may: so both are tested.
            condition = _inside(low, high, extent)
        yield AxisTest(axis, condition, low, high, extent)


def _both_ends_inside(base: PrimExpr, distance: int, extent: PrimExpr) -> PrimExpr:
    """The condition that ``base`` and ``base + distance`` are inside, where the sum may wrap.

    So ``base`` is compared with what is left of the extent: of 2 lanes ``base < extent - 1``, which
    2**63 - 1 is not, while that number plus 1 is negative.
    """
    wide = base if base.dtype is _I64 else e.Cast(_I64, base)
    room = extent if extent.dtype is _I64 else op.cast(_I64, extent)
    first = max(0, -distance)
    end = room - IntImm(_I64, distance) if distance > 0 else room
    return _together("tir.bitwise_and", e.LE(IntImm(_I64, first), wide), e.LT(wide, end))


def _inside(low: PrimExpr | None, high: PrimExpr | None, extent: PrimExpr) -> PrimExpr:
    """The condition ``0 <= low`` and ``high < extent``; an end that is None needs no test."""
    conditions: list[PrimExpr] = []
    is_one_index = low is high
    if high is not None:
        high, extent = _of_one_type(high, extent)
    if is_one_index:
        low = high
    if low is not None:
        conditions.append(e.LE(op.const(0, low.dtype), low))
    if high is not None:
        conditions.append(e.LT(high, extent))
    return conditions[0] if len(conditions) == 1 else _together("tir.bitwise_and", *conditions)


def _together(name: str, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """``a`` and ``b``, or ``a`` or ``b``, by the bitwise operation ``name``.

    Both are computed in any case, so that what stands in both is computed once.
    """
    return e.Call(a.dtype, name, [a, b])


def _of_one_type(index: PrimExpr, extent: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """An index and an extent, which is not negative, in one type in which both can be compared."""
    kind = index.dtype.element
    if isinstance(extent, IntImm) and extent.value <= integer_range(kind)[1]:
        return index, op.const(extent.value, index.dtype)
    if extent.dtype is not kind:
        common = kind if kind == "uint64" else _I64
        index = index if kind is common else e.Cast(like(common, index.dtype), index)
        extent = extent if extent.dtype is common else e.Cast(common, extent)
    lanes = index.dtype.lanes
    return index, extent if lanes == 1 else e.Broadcast(extent, lanes)
