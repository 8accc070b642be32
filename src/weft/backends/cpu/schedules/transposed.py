"""Blocks that read along one axis and write along another: transposes, changes of layout.

A tile has as many rows as a vector has lanes. It is read in vectors along one axis, transposed in
registers, and stored in vectors along the other (TransposeTile). Axes that follow each other in
memory on both sides count as one axis. An axis whose quotient and remainder index what is read
counts as two, so a change from ``NCHW`` to blocks of channels is a transpose of the pixels and the
channels of one block (see ``places``).

If tiles write whole cache lines, the next tile is the neighbour along what is read: then few pages
are read at once. If they do not, it is the neighbour along what is written, which soon writes the
rest of the line. Rows that lie a power of two apart have few places in the first cache, so there a
tile reads whole lines at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weft.backends.cpu.schedules.elementwise import extent_of, run_in_parallel
from weft.backends.cpu.schedules.parallel_depth import parallel_depth
from weft.backends.cpu.schedules.places import Part, Places, loops_of_parts, parts_of
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE, is_unconditional
from weft.dlight.nest import Nest
from weft.target.machine import Machine
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

LEAST: Final = 4
"""Both axes must have at least this many elements, else tiles are not worth it."""
_SHUFFLED: Final = 4
"""Elements of at least this many bytes are shuffled across a whole vector by one instruction."""
_WAYS: Final = 8
"""Lines in one set of the first cache."""
_BESIDE: Final = 2
"""Tiles that are computed side by side, to write more of a cache line, or the next one, at once."""


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a block that transposes axes of constant size; False for other blocks."""
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
    width = machine.lanes(8 * stored_bytes(nest))
    row_tiles, row = _split(sch, [loops[part] for part in rows], width)
    lane_tiles, lane = _split(sch, [loops[part] for part in lanes], width)
    beside: list[LoopRV] = []
    if row_tiles and lane_tiles and _size(lanes) % (width * _BESIDE) == 0:
        lane_tiles, beside = [[loop] for loop in sch.split(lane_tiles[0], [None, _BESIDE])]
    is_whole = _size(lanes) % width == 0  # if not, two tiles share a line: compute both soon
    outer += [*lane_tiles, *row_tiles] if is_whole else [*row_tiles, *lane_tiles]
    sch.reorder(*outer, *beside, row, lane)
    sch.annotate(row, TRANSPOSE, _at_once(nest, parts, rows, lanes, machine))
    sch.vectorize(lane)
    depth = parallel_depth(sch, outer, machine)
    if depth:
        run_in_parallel(sch, outer[:depth], machine)
    return True


def stored_bytes(nest: Nest) -> int:
    """The bytes of one element in memory: a boolean has one bit and takes a byte."""
    return max(8, nest.stores[0].buffer.dtype.bits) // 8


def _split(sch: Schedule, loops: Sequence[LoopRV], width: int) -> tuple[list[LoopRV], LoopRV]:
    """Fuse loops into one and split it into parts of ``width``.

    Returns the loop over the parts, as a list that is empty if there is one part, and the loop
    inside.
    """
    loop = sch.fuse(*loops)
    size = extent_of(sch, loop)
    if size is not None and size <= width:
        return [], loop
    outer, inner = sch.split(loop, [None, width])
    return [outer], inner


def _rows_and_lanes(nest: Nest) -> tuple[list[Part], list[Part], list[Part]] | None:
    """All parts of the axes; those along which a load is contiguous; those of the store.

    None if the block is no transpose that tiles can compute.
    """
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
    across = [at for at, step in enumerate(places.steps[lane[0]]) if step not in (0, 1) and at > 0]
    row = [part for part in parts if any(places.steps[part][at] == 1 for at in across)]
    if not row:
        return None
    rows = places.run(row[0], [part for part in parts if part is not lane[0]])
    lanes = places.run(lane[0], [part for part in parts if part not in rows])
    if min(_size(rows), _size(lanes)) < LEAST:
        return None
    return parts, rows, lanes


def _at_once(
    nest: Nest,
    parts: Sequence[Part],
    rows: Sequence[Part],
    lanes: Sequence[Part],
    machine: Machine,
) -> int:
    """How many bytes of a row a tile reads at once: the value of the annotation ``TRANSPOSE``.

    That is a whole vector where rows lie so far apart that the first cache cannot hold the lines of
    one tile; else 1, which stands for as many bytes as one instruction interleaves.
    """
    size = stored_bytes(nest)
    places = Places(nest, parts)
    steps = [places.steps[rows[-1]][0], *places.steps[lanes[-1]][1:]]
    crowded = any(
        _lines_held(step * size, machine) < _BESIDE * machine.lanes(size * 8)
        for step in steps
        if step
    )
    return machine.vector_bits // 8 if crowded and size >= _SHUFFLED else 1


def _lines_held(distance: int, machine: Machine) -> int:
    """How many lines the first cache holds whose addresses are ``distance`` bytes apart."""
    way = machine.l1 // _WAYS
    return way // math.gcd(distance, way) * _WAYS


def _size(parts: Sequence[Part]) -> int:
    total = 1
    for part in parts:
        total *= part.extent
    return total
