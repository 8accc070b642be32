"""Convolutions by Winograd's algorithm: a band of tiles passes all stages while it is in a cache.

The stages are the blocks of ``weft.topi.nn.winograd``, known by their annotation. Bands run in
parallel. For each band, the data is transformed row by row; then the products of all places are
computed; then each tile of results, with what follows element by element (bias, activation,
residual). If there is only one band, each of these three parts is a parallel loop. If the function
takes the kernel itself and not transformed weights, it transforms a panel of weights just before
the products that use it. Vectors run over the channels of a block. The accumulators of a tile of
products stay in registers, as in ``tiled``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from weft.backends.cpu.machine import is_cpu
from weft.backends.cpu.schedules.elementwise import extent_of, run_together
from weft.backends.cpu.schedules.tiles import most_rows
from weft.backends.cpu.vectors.skip_unused import SKIP_UNUSED
from weft.dlight.apply import ScheduleRule
from weft.dlight.nest import Nest, blocks_of, loops_of
from weft.ir.expr import constant_value
from weft.support.errors import ScheduleError
from weft.target.machine import Machine, machine_of
from weft.target.target import Target
from weft.tir.function import PrimFunc
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import BlockRealize
from weft.tir.transform.loop_partition import HINT
from weft.topi.nn.winograd import (
    BAND_AXES,
    DATA,
    GROUPS,
    LINES,
    PIXELS,
    PRODUCTS,
    RESULT,
    STAGE,
    STAGES,
    TILE_LINES,
    TILES,
    WEIGHTS,
)

logger = logging.getLogger(__name__)

Stages = Mapping[str, BlockRV]

_WAY: Final = 1024
"""Lines that are a multiple of this many elements apart share few places of the first cache."""
_LINE: Final = 16
"""Elements of a cache line."""


class Winograd(ScheduleRule):
    """The rule that schedules functions with the stages of ``topi.nn.winograd``."""

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        """The schedule of ``func``; None if it is no such function or the target is no CPU."""
        del tunable  # there is one schedule, nothing to tune
        root = func.body.block if isinstance(func.body, BlockRealize) else None
        if not is_cpu(target) or root is None or root.name_hint != "root":
            return None
        sch = Schedule(func, debug_mask="none")
        stages = stages_of(sch)
        if stages is None:
            return None
        try:
            return sch if schedule(sch, stages, machine_of(target)) else None
        except ScheduleError as error:
            logger.debug("the schedule of Winograd's algorithm does not fit: %s", error)
            return None


def stages_of(sch: Schedule) -> Stages | None:
    """The block of each stage; None unless the function has each once (WEIGHTS may be missing)."""
    by_stage = {}
    for block in blocks_of(sch):
        stage = dict(sch.get(block).annotations or {}).get(STAGE)
        if stage is not None:
            if str(stage) in by_stage:
                return None
            by_stage[str(stage)] = block
    return by_stage if set(by_stage) - {WEIGHTS} == set(STAGES) else None


def schedule(sch: Schedule, stages: Stages, machine: Machine) -> bool:
    """Schedule the stages and what follows them; False if they have a form that does not fit."""
    final = _final(sch, stages)
    if final is None or _of_band(sch, stages[TILES])[1] == 1:
        return False
    band = _tile_result(sch, stages, final, machine)
    _multiply(sch, stages, band, machine)
    _transform_data(sch, stages, band, machine)
    return True


def _final(sch: Schedule, stages: Stages) -> BlockRV | None:
    """The last block, after inlining into it the other blocks that follow the tiles of results."""
    own = [sch.get(block) for name, block in stages.items() if name != RESULT]
    *others, final = [block for block in blocks_of(sch) if sch.get(block) not in own]
    for block in others:
        sch.compute_inline(block)
    nest = Nest(sch, final)
    return final if nest.is_spatial and len(nest.axes) == 5 else None


def _tile_result(sch: Schedule, stages: Stages, final: BlockRV, machine: Machine) -> LoopRV | None:
    """Compute the results tile by tile; returns the loop over bands, None if there is one band."""
    is_whole = _is_one_band(sch, stages[TILES])
    *_, block = sch.get_loops(final)
    if _groups(sch, stages[TILES]) is None:
        tile, bands = _tiles_by_rows(sch, stages, final, is_whole)
    else:
        tile, bands = _tiles_by_number(sch, stages, final)
    fused = _parallel(sch, bands, machine)
    sch.vectorize(block)
    for stage in (TILES, TILE_LINES):
        _compute_inside(sch, stages[stage], tile)
    return None if is_whole else fused


def _tiles_by_rows(
    sch: Schedule, stages: Stages, final: BlockRV, is_whole: bool
) -> tuple[LoopRV, list[LoopRV]]:
    """The loop over the tiles of a row, and those that run in parallel."""
    side, rows = _of_band(sch, stages[TILES])[2], _of_band(sch, stages[PIXELS])[0]
    batch, filters, height, width, block = sch.get_loops(final)
    band, down, y = sch.split(height, [1, None, side] if is_whole else [None, rows, side])
    across, x = sch.split(width, [None, side])
    outer = [filters, batch, band, down] if is_whole else [batch, band, filters, down]
    sch.reorder(*outer, across, y, x, block)
    return across, outer if is_whole else [batch, band]


def _tiles_by_number(sch: Schedule, stages: Stages, final: BlockRV) -> tuple[LoopRV, list[LoopRV]]:
    """The loop over the tiles of a group, and the one that runs in parallel."""
    side, rows = _of_band(sch, stages[TILES])[2], _of_band(sch, stages[PIXELS])[0]
    batch, filters, height, width, block = sch.get_loops(final)
    down, y = sch.split(height, [None, side])
    across, x = sch.split(width, [None, side])
    sch.reorder(batch, down, across, filters, y, x, block)
    is_single = extent_of(sch, batch) == 1
    # One after the other: the number of a row of tiles divided by those of an image is the image.
    number = sch.fuse(down if is_single else sch.fuse(batch, down), across)
    band, group, tile = sch.split(number, [None, _groups(sch, stages[TILES]), rows])
    sch.reorder(band, filters, group, tile, y, x, block)
    sch.annotate(group, SKIP_UNUSED, rows)
    return tile, [sch.fuse(batch, band) if is_single else band]


def _groups(sch: Schedule, block: BlockRV) -> int | None:
    """How many groups of tiles a band has; None if it has rows of tiles."""
    groups = dict(sch.get(block).annotations or {}).get(GROUPS)
    return None if groups is None else int(groups)


def _of_band(sch: Schedule, block: BlockRV) -> list[int]:
    """The shape of what a block writes for one band; only numbers of bands are symbolic."""
    return [int(extent) for extent in sch.get(block).writes[0].buffer.shape[BAND_AXES:]]


def _is_one_band(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block writes a single band."""
    bands = sch.get(block).writes[0].buffer.shape[:BAND_AXES]
    return all(constant_value(extent) == 1 for extent in bands)


def _parallel(sch: Schedule, loops: Sequence[LoopRV], machine: Machine) -> LoopRV:
    """Run all iterations of some loops in parallel; returns the innermost of them.

    Lowering is told not to cut them, which would copy large bodies.
    """
    [*others, last] = run_together(sch, loops, machine)
    for loop in (*others, last):
        sch.annotate(loop, HINT, 0)
    return last


def _compute_inside(sch: Schedule, block: BlockRV, loop: LoopRV) -> None:
    """Compute a block, in vectors over its last axis, for each iteration of a loop."""
    sch.compute_at(block, loop)
    sch.set_scope(block, 0, "local")
    sch.vectorize(sch.get_loops(block)[-1])


def _loops(sch: Schedule, block: BlockRV, depth: int = 0) -> list[LoopRV | None]:
    """The loop of each axis of a block below ``depth`` loops; None for an axis of extent 1."""
    nest = Nest(sch, block)
    by_axis = loops_of(sch, nest, depth)
    return [by_axis.get(axis.var) for axis in nest.axes]


def _multiply(sch: Schedule, stages: Stages, band: LoopRV | None, machine: Machine) -> None:
    """Compute the products of each place, one tile of accumulators in registers after the other."""
    block = stages[PRODUCTS]
    rows = _rows(sch, block, machine)
    write = sch.cache_write(block, 0, "local")
    if band is not None:
        sch.compute_at(write, band)
    *outer, tile, vector = sch.get_loops(write)
    if (_groups(sch, block) or 1) > 1:  # the groups of a band share a panel of weights
        fused, group, *others = outer
        sch.annotate(group, SKIP_UNUSED, _of_band(sch, block)[-2])
        sch.reorder(*others, group)
        outer = [fused, *others, group]
    shared = outer
    if WEIGHTS in stages:
        shared, outer = _panels_first(sch, write, outer)
    around, inner = sch.split(tile, [None, rows])
    sch.compute_at(block, around)
    depth = len(outer) + 1
    *_, tile_loop, columns, channels, places = _loops(sch, block, depth)
    steps = [loop for loop in (channels, places) if loop is not None]
    tail = [loop for loop in (tile_loop, columns) if loop is not None]
    sch.reorder(*steps, *tail)
    last = _parallel(sch, shared, machine) if band is None else shared[-1]
    for loop in (inner, *tail[:-1]):
        sch.unroll(loop)
    for loop in (vector, tail[-1]):
        sch.vectorize(loop)
    sch.decompose_reduction(block, steps[0])
    if WEIGHTS in stages:
        _transform_weights(sch, stages[WEIGHTS], last)


def _panels_first(
    sch: Schedule, write: BlockRV, outer: Sequence[LoopRV]
) -> tuple[list[LoopRV], list[LoopRV]]:
    """Move the loop over panels of weights outside of those over places.

    Returns the loops outside of those over places, and these loops followed by those over places.
    """
    panels = _of_band(sch, write)[2]
    *around, high, wide = outer[:-1] if panels > 1 else outer
    if panels > 1:
        sch.reorder(outer[-1], high, wide)
        around.append(outer[-1])
    return around, [*around, high, wide]


def _transform_weights(sch: Schedule, block: BlockRV, around: LoopRV) -> None:
    """Transform a panel of weights just before all products that use it."""
    *_, depth, panel = [int(extent) for extent in sch.get(block).writes[0].buffer.shape]
    sch.compute_at(block, around)
    if depth * panel % _WAY == 0:
        sch.storage_align(block, 0, 0, _WAY, _LINE)
    *_, channels, filters = sch.get_loops(block)
    blocks, vector = sch.split(filters, [None, sch.get(block).reads[0].buffer.shape[-1]])
    sch.reorder(blocks, channels, vector)
    sch.vectorize(vector)


def _rows(sch: Schedule, block: BlockRV, machine: Machine) -> int:
    """How many tiles have their products in registers at a time: even parts of all tiles."""
    *_, tiles, panel = _of_band(sch, block)
    most = max(most_rows(machine, -(-panel // machine.lanes())), 1)
    return -(-tiles // -(-tiles // most))


def _transform_data(sch: Schedule, stages: Stages, band: LoopRV | None, machine: Machine) -> None:
    """Transform rows of pixels, in two stages: from line to line, then along the lines."""
    rows = _of_band(sch, stages[PIXELS])[0]
    if band is not None:
        sch.compute_at(stages[DATA], band)
    loops = _loops(sch, stages[DATA], 0 if band is None else 1)
    *_, group, line, channels, tile, vector = loops
    assert tile is not None
    if group is not None and _groups(sch, stages[DATA]) is not None:
        sch.annotate(group, SKIP_UNUSED, rows)
    row, tile = sch.split(tile, [rows, None])
    order = [loop for loop in (row, channels, line, tile, vector) if loop is not None]
    sch.reorder(*order)
    sch.vectorize(order[-1])
    outer = order[:-3]
    if band is None:
        outer = [_parallel(sch, outer, machine)]
    sch.compute_at(stages[LINES], outer[-1])
    for loop in outer if band is not None else ():
        sch.annotate(loop, HINT, 0)
    pixel, vector = sch.get_loops(stages[LINES])[-2:]
    sch.vectorize(vector)
    _compute_inside(sch, stages[PIXELS], pixel)
