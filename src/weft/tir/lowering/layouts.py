"""Layouts: where the elements of a buffer lie in its memory."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.tir.buffer import Buffer
from weft.tir.lowering.building import constant_of


@dataclass(frozen=True, eq=False)
class Layout:
    """Elements of ``nbytes`` bytes each, counted from the start of the memory.

    ``strides`` is empty for compact row-major order. The sum of ``offsets`` is where they begin.
    """

    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...]
    offsets: tuple[PrimExpr, ...]
    nbytes: int
    is_exact: bool = False
    """Whether a sum or product in ``offsets`` that wraps is an error; else its value counts."""


def bytes_of(dtype: DataType) -> int:
    """How many bytes an element takes in memory, with all its lanes."""
    return max(1, dtype.bits // 8) * dtype.lanes


def layout_of(buffer: Buffer) -> Layout:
    """The layout of a buffer's elements."""
    offset = buffer.elem_offset
    offsets = () if offset is None or constant_of(offset) == 0 else (offset,)
    return Layout(tuple(buffer.shape), tuple(buffer.strides), offsets, bytes_of(buffer.dtype))


def is_same(view: Layout, memory: Layout) -> bool:
    """Whether both layouts consist of the very same expressions."""
    mine = (*view.shape, None, *view.strides, None, *view.offsets)
    its = (*memory.shape, None, *memory.strides, None, *memory.offsets)
    same = len(mine) == len(its) and all(a is b for a, b in zip(mine, its, strict=True))
    return same and view.nbytes == memory.nbytes


def constant_reach(layout: Layout) -> tuple[int, int] | None:
    """The first byte of a layout of constants and the one behind its last; (0, 0) without elements.

    None where something is not constant, or an extent is negative.
    """
    shape = [constant_of(extent) for extent in layout.shape]
    if any(extent is not None and extent < 0 for extent in shape):
        return None
    strides = [constant_of(stride) for stride in layout.strides]
    offsets = [constant_of(offset) for offset in layout.offsets]
    start, low, high = 0, 0, 1
    for offset in offsets:
        if offset is None:
            return None
        start += offset
    if not strides:
        for extent in shape:
            if extent is None:
                return None
            high *= extent
    for extent, stride in zip(shape, strides, strict=False):
        if extent is None or stride is None:
            return None
        low += min((extent - 1) * stride, 0)
        high += max((extent - 1) * stride, 0)
    if 0 in shape:
        return 0, 0
    return (start + low) * layout.nbytes, (start + high) * layout.nbytes
