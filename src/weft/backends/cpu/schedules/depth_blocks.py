"""The loops of a tiled reduction that runs block by block of its depth (``chunks`` says when).

For a product ``C[i, j] = sum of A[i, k] * B[k, j]``, then relu, and blocks of 128 steps::

    for chunk in parallel:                       # columns of C that stay in the second cache
        total[i, j] = 0                          # of the whole chunk
        for block of k, panel of 48 columns:     # one loop; a panel is read once, and stays near
            for tile of 8 rows:
                part[i, j] = sum over the block  # in registers
                total[i, j] += part[i, j]
        C[i, j] = relu(total[i, j])

The blocks are the parts of ``parts``, which tiles add up in the same order without such loops, so
the results are the same to the last bit, however many chunks there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from weft.backends.cpu.schedules.chunks import Chunks
from weft.backends.cpu.schedules.elementwise import run_in_parallel
from weft.backends.cpu.schedules.parallel_depth import parallel_depth
from weft.backends.cpu.schedules.roles import Roles, Sizes
from weft.backends.cpu.schedules.tile_loops import (
    are_few,
    loops_like,
    mark_tile,
    prefetch_steps,
    tile_axes,
    tile_reduction,
)
from weft.backends.cpu.vectors.prefetch_next import PREFETCH_NEXT
from weft.backends.cpu.vectors.prefetch_result import PREFETCH_RESULT
from weft.dlight.nest import Nest, loops_of
from weft.target.machine import Machine
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule


def place_blocks(
    sch: Schedule,
    nest: Nest,
    roles: Roles,
    blocks: tuple[BlockRV, BlockRV, BlockRV],
    steps: tuple[Var, ...],
    sizes: Sizes,
    chunks: Chunks,
    machine: Machine,
    padded: Sequence[BlockRV] = (),
) -> LoopRV:
    """Order the loops of three ``blocks``: the sums of parts over ``steps``, the total, the result.

    ``nest`` is the reduction before it was cut into parts. Blocks that copy an image into a
    ``padded`` one copy what a block of the depth reads. Returns the innermost loop in each
    iteration of which all tiles of rows use the same block of a panel.
    """
    part, total, result = blocks
    place, is_parallel = _chunk_loops(sch, nest, roles, result, sizes, chunks, machine)
    sch.compute_at(total, place)
    if is_parallel:
        run_in_parallel(sch, [place], machine)
    variables = [sch.get(loop).loop_var for loop in sch.get_loops(total)]
    around = variables.index(sch.get(place).loop_var) + 1
    each, panels, tiles = _total_loops(sch, nest, roles, total, sizes, around)
    if not padded and _are_whole(nest, _across(roles, sizes)):
        # As one loop, so that the first panel of the next block is fetched ahead, too.
        panels = [sch.fuse(each, *panels)]
    if are_few(sch, tiles):
        sch.annotate(panels[-1], PREFETCH_NEXT, True)
    sch.annotate(tiles[-1], PREFETCH_RESULT, True)
    sch.compute_at(part, tiles[-1])
    for pad in padded:
        sch.compute_at(pad, each)
        sch.vectorize(sch.get_loops(pad)[-1])
    inside = len(sch.get_loops(total)) - len(tile_axes(roles))
    step = tile_reduction(sch, part, replace(roles, steps=steps), inside, machine)
    prefetch_steps(sch, step)
    return panels[-1]


def _chunk_loops(
    sch: Schedule,
    nest: Nest,
    roles: Roles,
    result: BlockRV,
    sizes: Sizes,
    chunks: Chunks,
    machine: Machine,
) -> tuple[LoopRV, bool]:
    """Order the loops of the result: over chunks, then over the elements of a chunk.

    Returns the innermost loop over chunks, and whether it runs in parallel.
    """
    loops = loops_like(sch, result, nest)
    around = [loop for loop in sch.get_loops(result) if not _runs(sch, loop, loops)]
    around += [loops[axis] for axis in roles.outer if axis in loops]
    sides = (_down(roles, sizes), chunks.rows), (_across(roles, sizes), chunks.columns)
    for axes, count in sides:
        axis = _most_tiles(nest, axes)
        chunk, loops[axis] = sch.split(loops[axis], [count, None])
        around.append(chunk)
    column, lanes = sch.split(loops[roles.column], [None, sizes.columns])
    rows = [loops[axis] for axis in (roles.wide, roles.tall, roles.row) if axis is not None]
    sch.reorder(*around, *rows, column, lanes)
    sch.vectorize(lanes)
    depth = parallel_depth(sch, around, machine)
    fused = sch.fuse(*around[:depth]) if depth else None
    if fused is not None and depth == len(around):
        return fused, True
    if fused is not None:
        run_in_parallel(sch, [fused], machine)
    return around[-1], False


def _total_loops(
    sch: Schedule, nest: Nest, roles: Roles, total: BlockRV, sizes: Sizes, around: int
) -> tuple[LoopRV, list[LoopRV], list[LoopRV]]:
    """Order the loops of the total below the ``around`` outermost: blocks, panels, tiles of rows.

    Returns the loop over blocks, those over panels, and those over tiles.
    """
    own = sch.get_loops(total)[around:]
    loops = loops_like(sch, total, nest, around)
    [reduced] = Nest(sch, total).reduced
    blocks = loops_of(sch, Nest(sch, total), around)[reduced]
    rest = [loop for loop in own if not _runs(sch, loop, {**loops, reduced: blocks})]
    panels, tiles = [
        [_cut(sch, loops, axis, size) for axis, size in sides if axis in loops]
        for sides in (_across(roles, sizes), _down(roles, sizes))
    ]
    tile = [loops[axis] for axis in tile_axes(roles) if axis in loops]
    sch.reorder(*rest, blocks, *panels, *tiles, *tile)
    start = sch.decompose_reduction(total, blocks)
    for block in (start, total):
        mark_tile(sch, sch.get_loops(block)[-len(tile) :])
    return blocks, panels, tiles


def _cut(sch: Schedule, loops: dict[Var, LoopRV], axis: Var, size: int) -> LoopRV:
    """Cut the loop of an axis into tiles; returns the loop over tiles."""
    outside, loops[axis] = sch.split(loops[axis], [None, size])
    return outside


def _are_whole(nest: Nest, sides: Sequence[tuple[Var, int]]) -> bool:
    """Whether no tile along these axes is cut off, which would need a guard."""
    return all((nest.extent(axis) or 1) % size == 0 for axis, size in sides)


def _across(roles: Roles, sizes: Sizes) -> list[tuple[Var, int]]:
    """The axes of the columns, the outermost first, and how much of each a tile holds."""
    sides = ((roles.column, sizes.columns), (roles.wide, sizes.several))
    return [(axis, size) for axis, size in sides if axis is not None]


def _down(roles: Roles, sizes: Sizes) -> list[tuple[Var, int]]:
    """The axes of the rows."""
    sides = ((roles.tall, sizes.high), (roles.row, sizes.rows))
    return [(axis, size) for axis, size in sides if axis is not None]


def _most_tiles(nest: Nest, sides: Sequence[tuple[Var, int]]) -> Var:
    """The axis that has the most tiles, which chunks cut; the outermost of equals."""
    return max(sides, key=lambda side: -(-(nest.extent(side[0]) or 0) // side[1]))[0]


def _runs(sch: Schedule, loop: LoopRV, loops: Mapping[Var, LoopRV]) -> bool:
    """Whether a loop runs one of the axes."""
    return sch.get(loop).loop_var in {sch.get(other).loop_var for other in loops.values()}
