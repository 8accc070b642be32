"""Tests of views: a buffer over the memory of another one must lie within that memory.

A view that is proved to needs no test; one that is known not to is refused. Else its first and its
last byte are compared with those of the memory. A raw handle, whose size is not known, is only
tested to be the address of some memory.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.ir.expr import IntImm, PrimExpr
from weft.support.errors import IRIndexError
from weft.tir import expr as e
from weft.tir import op
from weft.tir.intrinsic import reinterpret
from weft.tir.lowering.building import all_of, constant_of, either, plus, times, wide
from weft.tir.lowering.exact_sizes import Sizes, Test
from weft.tir.lowering.layouts import Layout, constant_reach, is_same
from weft.tir.lowering.polynomials import Poly, add_scaled, multiply
from weft.tir.lowering.proofs import Bounds

_FIRST_ADDRESS: Final = 4096
"""The least address of memory: the first page of a process is never mapped."""
_ZERO: Final = IntImm("int64", 0)


class Reach(NamedTuple):
    """From which byte to which a layout reaches."""

    first: PrimExpr
    last: PrimExpr
    """The byte behind its last."""
    is_empty: PrimExpr | None
    """Whether it has no elements at all; None where it surely has some."""


def address_test(data: e.Var) -> Test:
    """The test that a raw handle is the address of some memory, and not None."""
    sizes = Sizes()
    address = sizes.names.of("address", reinterpret("uint64", data))
    sizes.need(e.GE(address, IntImm("uint64", _FIRST_ADDRESS)))
    text = f"expected the address of memory for {data.name}, got {{a}}"
    return sizes.test("index", text, address)


def refuse_certain(view: Layout, memory: Layout, what: str) -> None:
    """Raise if a view, of constants as its memory is, does not fit. No condition is around it."""
    ends, limits = constant_reach(view), constant_reach(memory)
    if ends is None or limits is None or (limits[0] <= ends[0] and ends[1] <= limits[1]):
        return
    raise IRIndexError(
        f"{what}: expected it to lie within the {limits[1]} bytes of its memory, its elements "
        f"reach from byte {ends[0]} to byte {ends[1]}; make it smaller, or move it"
    )


def is_proved(bounds: Bounds, view: Layout, memory: Layout) -> bool:
    """Whether a view is proved to lie within a memory."""
    return (
        is_same(view, memory)
        or _is_proved_by_ranges(bounds, view, memory)
        or _is_proved_by_extents(bounds, view, memory)
    )


def _is_proved_by_ranges(bounds: Bounds, view: Layout, memory: Layout) -> bool:
    """Whether a view of constant shape fits for all values of its offset.

    So do tiles of constant size at an offset that a loop gives.
    """
    ends = constant_reach(Layout(view.shape, view.strides, (), view.nbytes))
    limits = constant_reach(memory)
    if ends is None or limits is None:
        return False
    starts = [bounds.ranges.of(offset) for offset in view.offsets]
    first = ends[0] + sum([low for low, _ in starts]) * view.nbytes
    last = ends[1] + sum([high for _, high in starts]) * view.nbytes
    return limits[0] <= first and last <= limits[1]


def _is_proved_by_extents(bounds: Bounds, view: Layout, memory: Layout) -> bool:
    """Whether a compact view has no more elements than its compact memory, as polynomials."""
    if view.strides or memory.strides:
        return False
    if not all(bounds.not_negative(term) for term in (*view.shape, *view.offsets)):
        return False
    need, have = _elements(bounds, view), _elements(bounds, memory)
    if need is None or have is None:
        return False
    scaled = {key: value * view.nbytes for key, value in need.items()}
    return bounds.at_most_zero(add_scaled(scaled, have, -memory.nbytes))


def _elements(bounds: Bounds, layout: Layout) -> Poly | None:
    """How many elements a memory needs for a compact layout; None where that is too long."""
    total: Poly = {(): 1}
    for extent in layout.shape:
        total = multiply(total, bounds.poly(extent))
        if len(total) > 40:
            return None
    for offset in layout.offsets:
        total = add_scaled(total, bounds.poly(offset), 1)
    return total


def view_test(view: Layout, memory: Layout, what: str) -> Test | None:
    """The test that the bytes of a view are bytes of the memory; None if they surely are.

    It also tests that the arithmetic of the view does not wrap. Of a view without elements, which
    has no bytes, only the extents are tested. The memory exists, so that its size does not wrap.
    """
    sizes = Sizes()
    own = reach(sizes, view)
    first, last = whole_reach(Sizes(sizes.names), memory)
    inside = Sizes(sizes.names)
    inside.need_exact(own.first, own.last)
    inside.need(first <= own.first)
    inside.need(own.last <= last)
    if inside.conditions:
        is_inside = all_of(inside.conditions)
        sizes.need(is_inside if own.is_empty is None else either(is_inside, own.is_empty))
    if not sizes.conditions:
        return None
    text = f"{what}: reaches to byte {{a}} of a memory of {{b}} bytes, or before it"
    return sizes.test("index", text, own.last, last)


def reach(sizes: Sizes, layout: Layout) -> Reach:
    """From where to where a layout reaches; what must hold of its extents is added to ``sizes``."""
    extents = [sizes.number(extent) for extent in layout.shape]
    is_empty: PrimExpr | None = None
    for extent in extents:
        if (constant_of(extent) or 0) > 0:
            continue
        sizes.need_exact(extent)
        sizes.need(e.LE(_ZERO, extent))
        is_none = e.EQ(extent, _ZERO)
        is_empty = is_none if is_empty is None else either(is_empty, is_none)
    low: PrimExpr = _ZERO
    high: PrimExpr = IntImm("int64", 1)
    if not layout.strides:
        for extent in extents:
            high = times(high, op.max(extent, IntImm("int64", 1)))
    for extent, stride in zip(extents, layout.strides, strict=False):
        way = times(extent - IntImm("int64", 1), sizes.names.of("stride", wide(stride)))
        low, high = plus(low, op.min(way, _ZERO)), plus(high, op.max(way, _ZERO))
    for offset in layout.offsets:
        start = sizes.number(offset) if layout.is_exact else sizes.names.of("start", wide(offset))
        low, high = plus(low, start), plus(high, start)
    scale = IntImm("int64", layout.nbytes)
    return Reach(times(low, scale), times(high, scale), is_empty)


def whole_reach(sizes: Sizes, layout: Layout) -> tuple[PrimExpr, PrimExpr]:
    """The first byte and the one behind the last; both 0 where there is no element."""
    first, last, is_empty = reach(sizes, layout)
    if is_empty is None:
        return first, last
    is_start = constant_of(first) == 0
    return first if is_start else e.Select(is_empty, _ZERO, first), e.Select(is_empty, _ZERO, last)
