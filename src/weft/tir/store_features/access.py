"""How a store accesses each of its buffers: bytes, cache lines, strides, reuse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.functor import mentions
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Var
from weft.tir.stmt import BufferStore, For
from weft.tir.store_features.loop_nest import LoopNest
from weft.tir.store_features.numbers import (
    MOST,
    Bounds,
    bounds_of,
    coefficient_of,
    extent_of,
    operands_of,
    shape_of,
    slog,
)

COUNT: Final = 18
"""Features of one access."""


class AccessType(IntEnum):
    """Whether a buffer is read, written or both."""

    READ = 0
    WRITE = 1
    READ_WRITE = 2


class ReuseType(IntEnum):
    """Why data is used again: a loop does not move in the buffer, several stores touch it, no."""

    LOOP = 0
    SERIAL = 1
    NONE = 2


@dataclass
class Touched:
    """What the stores so far touched: for each loop and buffer, elements of each store."""

    elements: dict[For, dict[Buffer, list[int]]] = field(default_factory=dict)

    def add(self, loop: For, buffer: Buffer, count: int) -> None:
        """Note how many elements of a buffer one run of a loop touches in one store."""
        self.elements.setdefault(loop, {}).setdefault(buffer, []).append(count)

    def bytes_under(self, loop: For) -> int:
        """Bytes of all buffers that one run of a loop touches."""
        touched = self.elements[loop]
        return sum([sum(counts) * _bytes(buffer) for buffer, counts in touched.items()])


@dataclass
class Access:
    """One buffer of a store, and all indices under which it is accessed."""

    buffer: Buffer
    type: AccessType
    indices: list[Sequence[PrimExpr]]
    elements: list[int] = field(default_factory=list)
    """Elements that one run of each loop touches, outermost first."""
    shape: list[int] = field(default_factory=list)
    """Extents of the region that all loops touch."""
    min_stride: int = 0
    innermost_stride: int = 0
    still_runs: int = 1
    """Runs of the innermost loops that do not move in the buffer."""
    continuous_bytes: int = 1
    reuse: ReuseType = ReuseType.NONE
    reuse_iterations: float = 0.0
    reuse_bytes: float = 0.0
    reuse_count: int = 0
    lines: float = 1.0
    bytes: float = 0.0

    def features(self, nest: LoopNest, line_bytes: int) -> list[float]:
        """The row of this access; ``lines`` and ``bytes`` are set for the order of accesses."""
        width, runs = _bytes(self.buffer), nest.product
        self.bytes, unique_bytes, unique_lines = width * runs, 1.0, 1.0
        if nest.loops:
            unique_bytes = float(self.elements[0] * width)
            steps = min(1.0, self.min_stride * width / line_bytes)
            self.lines = max(1.0, runs / (self.still_runs or 1) * steps)
            unique_lines = max(1.0, unique_bytes / min(line_bytes, self.continuous_bytes))
        sizes = [self.bytes, unique_bytes, self.lines, unique_lines]
        count = self.reuse_count if self.reuse_count > 0 else 0.5
        return [
            *[float(self.type == kind) for kind in AccessType],
            *[slog(size) for size in sizes],
            *[float(self.reuse == kind) for kind in ReuseType],
            slog(self.reuse_iterations),
            slog(self.reuse_bytes),
            slog(self.reuse_count),
            *[slog(size / count) for size in sizes],
            slog(self.innermost_stride),
        ]


def _bytes(buffer: Buffer) -> int:
    return (buffer.dtype.bits * buffer.dtype.lanes + 7) // 8


def accesses_of(store: BufferStore) -> list[Access]:
    """The buffers of a store, each once."""
    by_buffer = {store.buffer: Access(store.buffer, AccessType.WRITE, [store.indices])}
    for load in _loads(store.value):
        access = by_buffer.get(load.buffer)
        if access is None:
            by_buffer[load.buffer] = Access(load.buffer, AccessType.READ, [load.indices])
        elif access.type == AccessType.READ:
            access.indices.append(load.indices)
        else:
            access.type = AccessType.READ_WRITE
    return list(by_buffer.values())


def _loads(expr: PrimExpr) -> list[BufferLoad]:
    loads = [load for operand in operands_of(expr) for load in _loads(operand)]
    return [*loads, expr] if isinstance(expr, BufferLoad) else loads


def access_features(
    accesses: list[Access], nest: LoopNest, touched: Touched, line_bytes: int, count: int
) -> tuple[list[float], list[int]]:
    """The rows of the ``count`` accesses with most cache lines, and the bytes that loops touch.

    The latter are for each loop, outermost first. ``touched`` learns of this store.
    """
    bounds: dict[Var, Bounds] = {}
    for loop in nest.loops:
        bounds[loop.loop_var] = bounds_of(loop.min, bounds)
    loop_bytes = _set_regions(accesses, nest, touched, bounds)
    top = sum([_bytes(access.buffer) for access in accesses])
    rows = []
    for access in accesses:
        _set_strides(access, nest, bounds)
        _set_reuse(access, nest, touched, top)
        rows.append((access, access.features(nest, line_bytes)))
    rows.sort(key=lambda row: (-row[0].lines, -row[0].bytes, row[0].buffer.name))
    features = [value for _, row in rows[:count] for value in row]
    return features + [0.0] * (COUNT * count - len(features)), loop_bytes


def _set_regions(
    accesses: list[Access], nest: LoopNest, touched: Touched, bounds: dict[Var, Bounds]
) -> list[int]:
    """Let one loop after the other run, from the innermost to the outermost."""
    for access in accesses:
        access.shape = [1] * len(access.buffer.shape)
        access.elements = [0] * len(nest.loops)
    loop_bytes = [0] * len(nest.loops)
    for number, loop in reversed(list(enumerate(nest.loops))):
        least, most = bounds_of(loop.min, bounds), bounds_of(loop.extent, bounds)
        bounds[loop.loop_var] = least[0], least[1] + most[1] - 1
        for access in accesses:
            access.shape = _region(access.indices, bounds)
            elements = max(0, min(MOST, math.prod(access.shape)))
            access.elements[number] = elements
            loop_bytes[number] += elements * _bytes(access.buffer)
            touched.add(loop, access.buffer, elements)
    return loop_bytes


def _region(indices: list[Sequence[PrimExpr]], bounds: dict[Var, Bounds]) -> list[int]:
    """The extents of the smallest box that holds all elements."""
    extents = []
    for axis in zip(*indices, strict=True):
        ranges = [bounds_of(index, bounds) for index in axis]
        extents.append(max([r[1] for r in ranges]) - min([r[0] for r in ranges]) + 1)
    return extents


def _set_strides(access: Access, nest: LoopNest, bounds: dict[Var, Bounds]) -> None:
    shape = shape_of(access.buffer, bounds)
    for touched, extent in zip(reversed(access.shape), reversed(shape), strict=True):
        if touched == extent:
            access.continuous_bytes = extent * _bytes(access.buffer)
            break
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    for number, loop in reversed(list(enumerate(nest.loops))):
        access.min_stride = _stride(access.indices, strides, loop.loop_var)
        if access.min_stride:
            if number == len(nest.loops) - 1:
                access.innermost_stride = access.min_stride
            return
        access.still_runs *= extent_of(loop)


def _stride(indices: list[Sequence[PrimExpr]], strides: list[int], var: Var) -> int:
    """The least number of elements that a step of a variable moves by; 0 if it does not move."""
    steps = []
    for index in indices:
        for axis in reversed(range(len(strides))):
            coefficient = coefficient_of(index[axis], var)
            if coefficient:
                steps.append(abs(coefficient) * strides[axis])
                break
    return min(steps, default=0)


def _set_reuse(access: Access, nest: LoopNest, touched: Touched, top: int) -> None:
    """The innermost loop in which data is used again, and how far apart the uses are."""
    loops = nest.loops
    for number, loop in reversed(list(enumerate(loops))):
        if not any(mentions(index, loop.loop_var) for index in access.indices):
            access.reuse, access.reuse_count = ReuseType.LOOP, extent_of(loop)
            access.reuse_iterations = math.prod([extent_of(inner) for inner in loops[number + 1 :]])
            is_innermost = number == len(loops) - 1
            access.reuse_bytes = top if is_innermost else touched.bytes_under(loops[number + 1])
            return
        counts = touched.elements[loop][access.buffer]
        if len(counts) >= 2:
            extent = extent_of(loop) or 1
            access.reuse, access.reuse_count = ReuseType.SERIAL, len(counts) - 1
            access.reuse_iterations = min(counts) / extent
            access.reuse_bytes = touched.bytes_under(loop) / extent
            return
