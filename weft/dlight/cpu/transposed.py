"""Blocks that read along one axis and write along another: transposes, changes of layout.

A tile of as many rows as a vector has lanes is read in vectors along the one axis, transposed in
registers and stored in vectors along the other (TransposeTile). Axes that follow each other in
memory on both sides are one, and an axis whose quotient and remainder are axes of what is read is
two, so that a change between ``NCHW`` and blocks of channels is a transpose of pixels and channels
of one block. Tiles follow each other along what is read: few pages are read at once, and what
is written stays in cache until its lines are whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.dlight.cpu.elementwise import extent_of, run_in_parallel
from weft.dlight.cpu.tiled import together
from weft.dlight.nest import Nest, loops_of
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.target.machine import Machine
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import FloorDiv, FloorMod, Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.transform.transpose_tile import TRANSPOSE, is_unconditional
from weft.tir.transform.wide_index import widened

_LEAST: Final = 4
"""Elements along both axes of what is worth a tile."""

_BESIDE: Final = 2
"""Tiles side by side, so that more of a line of cache, or the next one, is written at once."""


@dataclass(frozen=True)
class _Part:
    """An axis of the block, or one of the axes that it is made of."""

    axis: Var
    var: Var
    extent: int


class _Places:
    """How far each part of an axis goes in the memory of the result and of what is read."""

    def __init__(self, nest: Nest, parts: Sequence[_Part]) -> None:
        self.parts = parts
        [store] = nest.stores
        accesses = [(store.buffer, tuple(store.indices))]
        accesses += [(load.buffer, load.indices) for load in nest.loads]
        self.steps = {part: [self._step(*access, part) for access in accesses] for part in parts}

    def _step(self, buffer: Buffer, indices: Sequence[PrimExpr], part: _Part) -> int | None:
        """What one more of a part adds to a place; None if that is not constant."""
        analyzer = Analyzer()
        for one in self.parts:  # there is no one more than the last
            analyzer.bind(one.var, Range(0, one.extent - 1 if one is part else one.extent))
        here, after = [
            _place(buffer, [substitute(index, self._values(more)) for index in indices], analyzer)
            for more in (None, part)
        ]
        found = analyzer.simplify(op.subtract(after, here))
        return found.value if isinstance(found, IntImm) else None

    def _values(self, more: _Part | None) -> dict[Var, PrimExpr]:
        """The axes as made of their parts, where ``more`` is one more."""
        value: dict[Var, PrimExpr] = {}
        for part in self.parts:
            here = op.add(part.var, 1) if part is more else part.var
            before = value.get(part.axis)
            value[part.axis] = (
                here if before is None else op.add(op.multiply(before, part.extent), here)
            )
        return value

    def run(self, last: _Part, others: Sequence[_Part]) -> list[_Part]:
        """The parts that walk all memory as one with ``last``, which is the innermost of them."""
        found, size = [last], last.extent
        rest = [part for part in others if part is not last]
        while True:
            whole = [None if step is None else step * size for step in self.steps[last]]
            more = [part for part in rest if None not in whole and self.steps[part] == whole]
            if not more:
                return found
            found.insert(0, more[0])
            rest.remove(more[0])
            size *= more[0].extent


def _place(buffer: Buffer, indices: Sequence[PrimExpr], analyzer: Analyzer) -> PrimExpr:
    """How many elements from the start of a buffer an access is, simplified."""
    place: PrimExpr = op.const(0, "int64")
    for size, index in zip(buffer.shape, indices, strict=True):
        place = op.add(op.multiply(place, size), widened(index, analyzer))
    return analyzer.simplify(place)


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a block that transposes; False if it does not, or has symbolic sizes."""
    nest = Nest(sch, block)
    found = _rows_and_lanes(nest)
    if found is None:
        return False
    parts, rows, lanes = found
    loops = _loops(sch, nest, parts)
    if loops is None:
        return False
    order = [part for part in parts if part not in rows and part not in lanes]
    sch.reorder(*[loops[part] for part in (*order, *rows, *lanes)])
    width = machine.lanes(nest.stores[0].buffer.dtype.bits)
    row_tiles, row = _split(sch, [loops[part] for part in rows], width)
    lane_tiles, lane = _split(sch, [loops[part] for part in lanes], width)
    beside: list[LoopRV] = []
    if lane_tiles and _size(lanes) % (width * _BESIDE) == 0:
        lane_tiles, beside = [[loop] for loop in sch.split(lane_tiles[0], [None, _BESIDE])]
    outer = [*[loops[part] for part in order], *lane_tiles, *row_tiles]
    sch.reorder(*outer, *beside, row, lane)
    sch.annotate(row, TRANSPOSE, 1)
    sch.vectorize(lane)
    depth = together(sch, outer, machine)
    if depth:
        run_in_parallel(sch, outer[:depth], machine)
    return True


def _split(sch: Schedule, loops: Sequence[LoopRV], width: int) -> tuple[list[LoopRV], LoopRV]:
    """One loop of several, in parts of ``width``: the loop over parts, if there are several."""
    loop = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    size = extent_of(sch, loop)
    if size is not None and size <= width:
        return [], loop
    outer, inner = sch.split(loop, [None, width])
    return [outer], inner


def _rows_and_lanes(nest: Nest) -> tuple[list[_Part], list[_Part], list[_Part]] | None:
    """The parts of all axes, those along which a load is contiguous, and those of the stores."""
    axes = nest.result_axes() if nest.is_spatial and len(nest.stores) == 1 else None
    parts = None if axes is None else _parts(nest)
    if not parts or nest.stores[0].buffer.strides:
        return None
    if any(load.buffer.strides for load in nest.loads):
        return None
    if not is_unconditional(nest.stores[0].value):
        return None
    places = _Places(nest, parts)
    lane = [part for part in parts if places.steps[part][0] == 1]
    if not lane:
        return None
    across = [
        at for at, step in enumerate(places.steps[lane[0]]) if step not in (0, 1) and at > 0
    ]  # fmt: skip
    row = [part for part in parts if any(places.steps[part][at] == 1 for at in across)]
    if not row:
        return None
    rows = places.run(row[0], [part for part in parts if part is not lane[0]])
    lanes = places.run(lane[0], [part for part in parts if part not in rows])
    if min(_size(rows), _size(lanes)) < _LEAST:
        return None
    return parts, rows, lanes


def _size(parts: Sequence[_Part]) -> int:
    total = 1
    for part in parts:
        total *= part.extent
    return total


def _parts(nest: Nest) -> list[_Part] | None:
    """The axes that have more than one value, cut where loads take quotients of them."""
    found: list[_Part] = []
    for axis in nest.spatial:
        extent = nest.extent(axis)
        if extent is None:
            return None
        sizes = _cuts(nest, axis, extent)
        if sizes is None:
            return None
        found += [
            _Part(axis, Var(f"{axis.name}_{at}", axis.dtype), size)
            for at, size in enumerate(sizes) if extent > 1
        ]  # fmt: skip
    return found


def _cuts(nest: Nest, axis: Var, extent: int) -> list[int] | None:
    """The extents of the parts of an axis, outermost first; None if no parts are exact.

    A quotient that its remainder makes whole again is none, so places are looked at, not indices.
    """
    analyzer = nest.analyzer()
    places = [_place(load.buffer, load.indices, analyzer) for load in nest.loads]
    divisors = {extent}
    for place in places:
        for part in collect(place, (FloorDiv, FloorMod)):
            if axis in collect(part.a, Var):
                if not isinstance(part.b, IntImm):
                    return None
                divisors.add(part.b.value)
    ends = sorted(divisors, reverse=True)
    if any(size % inner for size, inner in itertools.pairwise(ends)):
        return None
    if ends[0] != extent or ends[-1] < 1:
        return None
    return [size // inner for size, inner in zip(ends, [*ends[1:], 1], strict=True)]


def _loops(sch: Schedule, nest: Nest, parts: Sequence[_Part]) -> dict[_Part, LoopRV] | None:
    """The loop that runs each part, after splitting those of axes of several parts."""
    of_axes = loops_of(sch, nest)
    found: dict[_Part, LoopRV] = {}
    for axis in nest.spatial:
        mine = [part for part in parts if part.axis is axis]
        if not mine:
            continue
        loop = of_axes.get(axis)
        if loop is None or extent_of(sch, loop) != nest.extent(axis):
            return None
        split = sch.split(loop, [part.extent for part in mine]) if len(mine) > 1 else [loop]
        found |= dict(zip(mine, split, strict=True))
    return found
