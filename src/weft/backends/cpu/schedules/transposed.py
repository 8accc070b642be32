"""Blocks that read along one axis and write along another: transposes, changes of layout.

A tile of as many rows as a vector has lanes is read in vectors along the one axis, transposed in
registers and stored in vectors along the other (TransposeTile). Axes that follow each other in
memory on both sides are one, and an axis whose quotient and remainder are axes of what is read is
two, so that a change between ``NCHW`` and blocks of channels is a transpose of pixels and channels
of one block. Tiles follow each other along what is read: few pages are read at once, and what
is written are whole lines; where it is not, along what is written, so that the tile which writes
the rest of a line comes next. Where rows are powers of two apart, a tile
reads whole lines at once, since those of its rows have few places in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weft.backends.cpu.schedules.elementwise import extent_of, run_in_parallel
from weft.backends.cpu.schedules.places import Part, Places, loops_of_parts, parts_of
from weft.backends.cpu.schedules.together import together
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE, is_unconditional
from weft.dlight.nest import Nest
from weft.target.machine import Machine
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_LEAST: Final = 4
"""Elements along both axes of what is worth a tile."""
_SHUFFLED: Final = 4
"""Bytes of the smallest elements that are shuffled across a vector by one instruction."""
_WAYS: Final = 8
"""Lines of the first cache that addresses a power of two apart share."""
_BESIDE: Final = 2
"""Tiles side by side, so that more of a line of cache, or the next one, is written at once."""


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a block that transposes; False if it does not, or has symbolic sizes."""
    nest = Nest(sch, block)
    transposed = _rows_and_lanes(nest)
    if transposed is None:
        return False
    parts, rows, lanes = transposed
    split = loops_of_parts(sch, nest, parts)
    if split is None:
        return False
    loops, others = split
    outer = [*others, *[loops[part] for part in parts if part not in (*rows, *lanes)]]
    sch.reorder(*outer, *[loops[part] for part in (*rows, *lanes)])
    width = machine.lanes(8 * _stored_bytes(nest))
    row_tiles, row = _split(sch, [loops[part] for part in rows], width)
    lane_tiles, lane = _split(sch, [loops[part] for part in lanes], width)
    beside: list[LoopRV] = []
    if row_tiles and lane_tiles and _size(lanes) % (width * _BESIDE) == 0:
        lane_tiles, beside = [[loop] for loop in sch.split(lane_tiles[0], [None, _BESIDE])]
    is_whole = _size(lanes) % width == 0  # else two tiles write the line between them, soon after
    outer += [*lane_tiles, *row_tiles] if is_whole else [*row_tiles, *lane_tiles]
    sch.reorder(*outer, *beside, row, lane)
    sch.annotate(row, TRANSPOSE, _at_once(nest, parts, rows, lanes, machine))
    sch.vectorize(lane)
    depth = together(sch, outer, machine)
    if depth:
        run_in_parallel(sch, outer[:depth], machine)
    return True


def _stored_bytes(nest: Nest) -> int:
    """The bytes of one element in memory: a boolean has one bit and takes a byte."""
    return max(8, nest.stores[0].buffer.dtype.bits) // 8


def _split(sch: Schedule, loops: Sequence[LoopRV], width: int) -> tuple[list[LoopRV], LoopRV]:
    """One loop of several, in parts of ``width``: the loop over parts, if there are several."""
    loop = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    size = extent_of(sch, loop)
    if size is not None and size <= width:
        return [], loop
    outer, inner = sch.split(loop, [None, width])
    return [outer], inner


def _rows_and_lanes(nest: Nest) -> tuple[list[Part], list[Part], list[Part]] | None:
    """The parts of all axes, those along which a load is contiguous, and those of the stores."""
    axes = nest.result_axes() if nest.is_spatial and len(nest.stores) == 1 else None
    parts = None if axes is None else parts_of(nest)
    if not parts or nest.stores[0].buffer.strides:
        return None
    if any(load.buffer.strides for load in nest.loads):
        return None
    if not is_unconditional(nest.stores[0].value):
        return None
    places = Places(nest, parts)
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


def _at_once(
    nest: Nest, parts: Sequence[Part], rows: Sequence[Part], lanes: Sequence[Part],
    machine: Machine,
) -> int:  # fmt: skip
    """The bytes of a row that a tile reads at once: those that one instruction interleaves, or all
    of a line, where rows lie so far apart that the cache cannot hold the lines of one tile.
    """
    size = _stored_bytes(nest)
    places = Places(nest, parts)
    steps = [places.steps[rows[-1]][0], *places.steps[lanes[-1]][1:]]
    crowded = any(_lines_held(step * size, machine) < _BESIDE * machine.lanes(size * 8)
                  for step in steps if step)  # fmt: skip
    return machine.vector_bits // 8 if crowded and size >= _SHUFFLED else 1


def _lines_held(distance: int, machine: Machine) -> int:
    """How many lines so many bytes apart the first cache holds."""
    way = machine.l1 // _WAYS
    return way // math.gcd(distance, way) * _WAYS


def _size(parts: Sequence[Part]) -> int:
    total = 1
    for part in parts:
        total *= part.extent
    return total
