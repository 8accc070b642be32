"""Masks: which lanes of what is computed are wanted, so that the others' loads touch nothing.

A condition over lanes masks the loads of its two arms (``Emitter.masks``, innermost last). Where a
shuffle picks lanes, those that it picks for a wanted one are wanted of what it picks from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.codegen.llvm.emitted import scope
from weft.codegen.llvm.types import with_lanes
from weft.ir.expr import PrimExpr

if TYPE_CHECKING:
    from weft.codegen.llvm.emitter import Emitter


def value_where(em: Emitter, flag: str, lanes: int, arm: PrimExpr) -> str:
    """The value of one arm of a choice, wanted in the lanes where the flag is set."""
    before = mask_of(em, lanes)
    if before is not None:
        flag = em.b.op(f"and {with_lanes('i1', lanes)} {flag}, {before}")
    is_other = before is None and bool(em.masks)  # of lanes that say nothing of these
    em.masks.append((flag, lanes))
    with scope(em, is_apart=is_other):
        value = em.value(arm)
    em.masks.pop()
    return value


def mask_of(em: Emitter, lanes: int) -> str | None:
    """The mask of a vector of so many lanes; None where all are wanted."""
    flag, known = em.masks[-1] if em.masks else ("", 0)
    return flag if known == lanes else None


def values_of_picked(em: Emitter, vectors: Sequence[PrimExpr], order: Sequence[int]) -> list[str]:
    """The values of vectors, put one after the other, of which ``order`` picks lanes."""
    outer = mask_of(em, len(order))
    if outer is None:
        return [em.value(vector) for vector in vectors]
    values, first = [], 0
    for vector in vectors:
        lanes = vector.dtype.lanes
        em.masks.append((_mask_of_picked(em, outer, order, range(first, first + lanes)), lanes))
        with scope(em, is_apart=True):  # lanes may be wanted here that are not around
            values.append(em.value(vector))
        em.masks.pop()
        first += lanes
    return values


def _mask_of_picked(em: Emitter, mask: str, order: Sequence[int], places: Sequence[int]) -> str:
    """Of the lanes at ``places``, those that are picked for a wanted one."""
    outer, inner = with_lanes("i1", len(order)), with_lanes("i1", len(places))
    result = "zeroinitializer" if len(places) > 1 else "false"
    for at, place in enumerate(places):
        wanted = ""
        for lane in [lane for lane, source in enumerate(order) if source == place]:
            one = em.b.op(f"extractelement {outer} {mask}, i64 {lane}")
            wanted = em.b.op(f"or i1 {wanted}, {one}") if wanted else one
        if len(places) == 1:
            return wanted or result
        if wanted:
            result = em.b.op(f"insertelement {inner} {result}, i1 {wanted}, i64 {at}")
    return result
