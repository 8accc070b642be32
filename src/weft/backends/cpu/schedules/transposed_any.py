"""Blocks that read along one axis and write along another, of which a call tells the extent.

The tiles are those of ``transposed``. The axis of unknown extent is cut into tiles with a guard for
each element; ShiftTiles lets the last tile begin earlier instead, so that each is whole.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from weft.backends.cpu.schedules.elementwise import run_together
from weft.backends.cpu.schedules.parallel_depth import parallel_depth
from weft.backends.cpu.schedules.transposed import LEAST, stored_bytes
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE, is_unconditional
from weft.dlight.nest import Access, Nest, loops_of
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import mentions
from weft.target.machine import Machine
from weft.tir.expr import FloorMod, Var
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_ROWS: Final = 16
"""A tile has at most so many rows: vectors of bytes have more lanes, and tiles would be long."""


class _Pair(NamedTuple):
    """The axis along which a load is contiguous, and that of the store, with the tile's extents."""

    row: Var
    height: int
    lane: Var
    width: int


def fits(nest: Nest, machine: Machine) -> bool:
    """Whether a block transposes an axis of unknown extent."""
    return _pair_of(nest, machine) is not None


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a block that transposes an axis of unknown extent; False for other blocks."""
    nest = Nest(sch, block)
    pair, loops = _pair_of(nest, machine), loops_of(sch, nest)
    if pair is None or pair.row not in loops or pair.lane not in loops:
        return False
    tiled = [sch.get(loops[axis]) for axis in (pair.row, pair.lane)]
    outer = [loop for loop in sch.get_loops(block) if sch.get(loop) not in tiled]
    row_tiles, row = sch.split(loops[pair.row], [None, pair.height])
    lane_tiles, lane = sch.split(loops[pair.lane], [None, pair.width])
    sch.reorder(*outer, lane_tiles, row_tiles, row, lane)
    sch.annotate(row, TRANSPOSE, 1)
    sch.vectorize(lane)
    depth = parallel_depth(sch, outer, machine)
    if depth:
        run_together(sch, outer[:depth], machine)
    return True


def _pair_of(nest: Nest, machine: Machine) -> _Pair | None:
    axes = nest.result_axes() if nest.is_spatial and len(nest.stores) == 1 else None
    if not axes or nest.stores[0].buffer.strides or not is_unconditional(nest.stores[0].value):
        return None
    lane = axes[-1]
    is_known = all(nest.extent(axis) is not None for axis in axes)
    if is_known or nest.stores[0].indices[-1] is not lane:
        return None
    moving = [load for load in nest.loads if load.uses(lane)]
    rows = {_contiguous(load) for load in moving if not mentions(load.indices[-1], lane)}
    if len(rows) != 1 or any(load.buffer.strides for load in nest.loads):
        return None
    [(row, digit)] = rows
    if row is None or row not in axes or None not in (nest.extent(row), nest.extent(lane)):
        return None
    lanes = machine.lanes(8 * stored_bytes(nest))
    height = _tile(nest.extent(row), digit, min(lanes, _ROWS))
    width = _tile(nest.extent(lane), 0, lanes)
    return None if min(height, width) < LEAST else _Pair(row, height, lane, width)


def _contiguous(load: Access) -> tuple[Var | None, int]:
    """The axis that is the last index, and by what its remainder: ``x[.., c % 16]`` (0: none)."""
    last: PrimExpr = load.indices[-1]
    if isinstance(last, FloorMod) and isinstance(last.a, Var) and isinstance(last.b, IntImm):
        return last.a, int(last.b.value)
    return (last, 0) if isinstance(last, Var) else (None, 0)


def _tile(extent: int | None, digit: int, lanes: int) -> int:
    """How many elements a tile has of an axis: parts of an extent that is known are whole."""
    return math.gcd(extent or 0, digit, lanes)
