"""Reductions whose result is contiguous along an axis: products, convolutions, pools.

One program serves them all. The last axis of the result is the vector axis; one more axis gives
the rows of a register tile that stays in registers over the whole reduction. What follows the
reduction element by element (bias, activation, residual) is computed on the tile. Operands are
first copied into panels where they need it (``panels``), and terms that are surely padding are left
out (``borders``). Sizes come from ``tiles.best_tile``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from weft.backends.cpu.schedules.borders import crossing
from weft.backends.cpu.schedules.chunks import Chunks, best_chunks, likely_chunks
from weft.backends.cpu.schedules.copied import copy_rows, reads_apart
from weft.backends.cpu.schedules.depth_blocks import place_blocks
from weft.backends.cpu.schedules.elementwise import extent_of, run_in_parallel
from weft.backends.cpu.schedules.joined import join_rows
from weft.backends.cpu.schedules.long_rows import long_row
from weft.backends.cpu.schedules.order import Order
from weft.backends.cpu.schedules.panels import can_pack, is_panel, panel, schedule_panel
from weft.backends.cpu.schedules.parallel_depth import parallel_depth
from weft.backends.cpu.schedules.parts import cut_of, in_parts
from weft.backends.cpu.schedules.roles import Roles, Sizes, reads_once, roles_of, size_of
from weft.backends.cpu.schedules.tile_loops import (
    are_few,
    loops_around,
    loops_like,
    mark_tile,
    prefetch_steps,
    tile_reduction,
)
from weft.backends.cpu.schedules.tile_order import busiest_share, order_of, traffic_of
from weft.backends.cpu.schedules.tiles import (
    Tile,
    Work,
    balanced_tile,
    fewest_cycles,
    likely_tiles,
    shared_out,
)
from weft.backends.cpu.schedules.widened import bytes_of_copy, place_copies, widen_panels
from weft.backends.cpu.schedules.windows import paddings
from weft.backends.cpu.vectors.fill_tails import FILL_TAIL
from weft.backends.cpu.vectors.prefetch_next import PREFETCH_NEXT
from weft.backends.cpu.vectors.prefetch_result import PREFETCH_RESULT
from weft.backends.cpu.vectors.skip_padding import SKIP_PADDING, has_padding
from weft.dlight.decisions import decide
from weft.dlight.nest import Access, Nest, product
from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.tir.buffer import Buffer
from weft.tir.expr import BinaryExpr, Call, Cast, Select, Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_OTHERS: Final = 12
"""How many alternatives a choice offers to a search."""
_MOST_UNROLLED: Final = 16
"""Operations on an element after a reduction up to which the rows of a tile are unrolled for them.

Chains of quantised networks have many more. Unrolled, they take LLVM long, and sums and what is
computed of them do not fit the registers together.
"""
_ENDS_GAIN: Final = 0.25
"""A tile that ends with rows is taken instead of the fastest if it takes at most this share of the
cycles: each step of a window gets code of its own there, which is compiled in time only if few
steps are left. Of others, whole tiles that lie outside are left out (SkipOutside)."""
_FEW_CHUNKS: Final = 8
"""In how many chunks of columns an image is padded anew."""
_NEAR: Final = 64
"""Two rows at most this many elements apart count as neighbours, as two pixels are."""


def schedule(
    sch: Schedule,
    block: BlockRV,
    result: BlockRV | None,
    machine: Machine,
    weights: Collection[Buffer],
    *,
    may_cut_depth: bool = True,
) -> bool:
    """Tile a reduction and what follows it (``result``, which reads it element by element).

    Returns whether the block is such a reduction. ``weights`` are buffers that are known when
    the model is built. ``may_cut_depth`` says whether it may run block by block of its depth.
    """
    nest = Nest(sch, block)
    roles = roles_of(nest, weights)
    if roles is None:
        return False
    if result is None:
        result = sch.cache_write(block, 0, "local")
    else:
        sch.set_scope(block, 0, "local")
    nest, pair = Nest(sch, block), (roles.tall, roles.row)
    if join_rows(sch, nest, result, pair, _work_of(nest, roles), machine):
        nest = Nest(sch, block)
        roles = roles_of(nest, weights)
        if roles is None:  # a sum of one product, whose rows are all that it had
            return False
    sizes = _sizes(nest, roles, weights, machine)
    streams = _streams(nest, roles, sizes, machine)
    panels = _pack(sch, nest, roles, sizes, weights)
    copies = widen_panels(sch, nest, roles, sizes, weights)
    if streams:
        whole, each = copy_rows(sch, nest, roles, sizes, weights, machine)
        panels, copies = [*panels, *whole], [*copies, *each]
    if roles.packed and nest.extent(roles.column) is None:
        sch.annotate(block, FILL_TAIL, 1)
    if has_padding(nest.block):
        sch.annotate(block, SKIP_PADDING, 1)
    chunks = _chunks_of(nest, roles, sizes, machine) if may_cut_depth else None
    place = _place(sch, nest, roles, (block, result), sizes, chunks, machine, streams=streams)
    place_copies(sch, copies, place, machine)
    for copy in panels:
        if copy is not None:
            schedule_panel(sch, copy, machine)
    return True


def _place(
    sch: Schedule,
    nest: Nest,
    roles: Roles,
    blocks: tuple[BlockRV, BlockRV],
    sizes: Sizes,
    chunks: Chunks | None,
    machine: Machine,
    *,
    streams: bool,
) -> LoopRV | None:
    """Order the loops of the reduction and of the result, ``blocks``, of which long sums are cut
    into parts first.

    Returns the innermost loop in each iteration of which all tiles of rows use the same panels.
    """
    block, result = blocks
    part = in_parts(sch, nest, roles.steps)
    if part is not None and chunks is not None:
        sch.set_scope(block, 0, "global")
        sums = part[0], block, result
        pixels = [axis for axis in (roles.row, roles.tall) if axis is not None]
        has_windows = {*crossing(nest.loads, roles.steps, pixels)} <= {*part[1]}
        padded = _padded_by_blocks(sch, part[0], chunks, machine) if has_windows else []
        return place_blocks(sch, nest, roles, sums, part[1], sizes, chunks, machine, padded)
    place = place_tile(sch, nest, roles, blocks, sizes, machine)
    around = loops_around(sch, result, roles)
    # Short sums leave too little time for that beside their other loads.
    if around and (streams or part is not None) and _stores_apart(nest, roles, sizes):
        sch.annotate(sch.get_loops(result)[around - 1], PREFETCH_RESULT, True)
    if part is None:
        step = tile_reduction(sch, block, roles, around, machine)
    else:
        _tile_total(sch, block, part[0], around)
        inside = replace(roles, steps=part[1])
        step = tile_reduction(sch, part[0], inside, around + 1, machine)
    if streams:
        prefetch_steps(sch, step)
    return place


def _pack(
    sch: Schedule, nest: Nest, roles: Roles, sizes: Sizes, weights: Collection[Buffer]
) -> list[BlockRV | None]:
    """Copy operands into panels; the blocks that do, and None for each that needs none."""
    panels = [
        panel(sch, nest, load, roles.column, sizes.columns, weights)
        for load in roles.packed
        if not is_panel(nest, load, roles.column, sizes.columns)
    ]
    if roles.row is not None and sizes.rows > 1:
        panels += [
            panel(sch, nest, load, roles.row, sizes.rows, weights)
            for load in _weights_of_rows(nest, roles.row, roles.column, weights)
        ]
    return panels


def _weights_of_rows(
    nest: Nest, row: Var, column: Var, weights: Collection[Buffer]
) -> list[Access]:
    """The weights that index rows only: in panels, the numbers of a tile's rows lie together.

    Else they may lie a power of two apart, and push each other out of the first cache.
    """
    return [
        load
        for load in nest.loads
        if load.buffer in weights
        and load.uses(row)
        and not load.uses(column)
        and can_pack(nest, load, row)
    ]


def _chunks_of(nest: Nest, roles: Roles, sizes: Sizes, machine: Machine) -> Chunks | None:
    """The chunks of a result whose depth is computed block by block; None if it is not."""
    extents = [nest.extent(axis) for axis in roles.steps]
    cut, traffic = cut_of(extents), traffic_of(nest, roles, sizes, machine)
    if cut is None or traffic is None or roles.row is None or not roles.shared:
        return None
    if _chooses(nest, roles):
        return None
    inside = product([cut.size, *extents[cut.axis + 1 :]])
    depth = product(extents)
    assert inside is not None
    assert depth is not None
    order = order_of(nest, roles, sizes, machine)
    blocks = depth // inside
    return decide(
        f"chunks of {nest.block.name_hint}",
        best_chunks(machine, traffic, blocks, order),
        lambda: [None, *likely_chunks(machine, traffic, blocks, _OTHERS)],
    )


def _padded_by_blocks(
    sch: Schedule, block: BlockRV, chunks: Chunks, machine: Machine
) -> list[BlockRV]:
    """The blocks that pad an image for the sums of ``block``, block by block of its depth.

    So the copy stays in the second cache. It is made anew for each chunk of columns. Not for chunks
    of rows: which rows lie outside is then no longer seen (SkipOutside).
    """
    if chunks.rows > 1 or chunks.columns > _FEW_CHUNKS:
        return []
    padded = paddings(sch, block)
    return padded if any(bytes_of_copy(sch, pad) > machine.l2 for pad in padded) else []


def knows_ends(nest: Nest, weights: Collection[Buffer], machine: Machine, share: float) -> bool:
    """Whether it is known where the rows of an image end inside a tile.

    It is if a tile holds whole rows, or equal parts of one, and all steps of a window. Another tile
    than the fastest is taken for that if ``share`` of the terms take less time in it than all terms
    in the fastest.
    """
    roles = roles_of(nest, weights)
    if roles is None or roles.row is None or roles.tall is None:
        return False
    window = crossing(nest.loads, roles.steps, [roles.row, roles.tall])
    cut = cut_of([nest.extent(axis) for axis in roles.steps])
    whole = roles.steps
    if cut is not None:
        is_whole = cut.size == nest.extent(whole[cut.axis])
        whole = whole[cut.axis if is_whole else cut.axis + 1 :]
    size = nest.extent(roles.row)
    if size is None or not window or not set(window) <= set(whole[:-1]):
        return False
    if size % _sizes(nest, roles, weights, machine).rows == 0:
        return True
    work = _work_of(nest, roles)
    known = fewest_cycles(machine, replace(work, ends_with_rows=True))
    return known * share < fewest_cycles(machine, work) * _ENDS_GAIN


def place_tile(
    sch: Schedule,
    nest: Nest,
    roles: Roles,
    blocks: tuple[BlockRV, BlockRV],
    sizes: Sizes,
    machine: Machine,
) -> LoopRV | None:
    """Tile the result, the second of ``blocks``; compute the reduction, the first, in its tiles.

    Returns the innermost loop in each iteration of which all tiles of rows use the same panels;
    None if there is none.
    """
    block, result = blocks
    order, columns = _tile_result(sch, nest, roles, result, sizes, machine)
    depth = parallel_depth(sch, order, machine)
    fused = sch.fuse(*order[:depth]) if depth else None
    if depth <= columns < len(order) and are_few(sch, order[columns:]):
        _prefetch_panels(sch, order[columns - 1] if fused is None or depth < columns else fused)
    place = fused if fused is not None and depth == len(order) else order[-1]
    sch.compute_at(block, place)
    if fused is not None:
        run_in_parallel(sch, [fused], machine)
    if columns == 0 or depth > columns:
        return None
    return order[columns - 1] if fused is None or depth < columns else fused


def _work_of(nest: Nest, roles: Roles) -> Work:
    """The sizes of what is tiled, for ``tiles.best_tile``."""
    high = 1 if _chooses(nest, roles) else size_of(nest, roles.tall)
    return Work(
        rows=size_of(nest, roles.row),
        columns=nest.extent(roles.column),
        shared=roles.shared,
        high=high,
        blocks=size_of(nest, roles.wide) or 1,
        depth=product([nest.extent(axis) for axis in nest.reduced]),
        apart=_is_apart(nest, roles),
        once=reads_once(nest),
        bits=max(nest.stores[0].buffer.dtype.bits, 32),  # shorter numbers are added as float32
        likely_rows=nest.likely_extent(roles.row),
        likely_high=nest.likely_extent(roles.tall),
        likely_depth=product([nest.likely_extent(axis) for axis in nest.reduced]),
        ends_with_rows=size_of(nest, roles.row) is not None and has_padding(nest.block),
    )


def _sizes(nest: Nest, roles: Roles, weights: Collection[Buffer], machine: Machine) -> Sizes:
    """What a tile holds of each axis."""

    def share(tile: Tile) -> float | None:
        sizes = _of_tile(tile)
        # A copy for many tiles needs a loop around them, which is fused where tiles are shared out.
        is_copied = any(reads_apart(nest, load, roles, sizes, weights) for load in nest.loads)
        return None if is_copied else busiest_share(nest, roles, sizes, machine)

    work = _work_of(nest, roles)
    long = long_row(machine, work)
    if long is not None:
        return Sizes(long, 1, 1, 1)
    tile = decide(
        f"tile of {nest.block.name_hint}",
        balanced_tile(machine, work, share),
        lambda: likely_tiles(machine, work, _OTHERS),
    )
    alone = (roles.wide, roles.tall) == (None, None) and not roles.shared
    if alone and product([nest.extent(axis) for axis in roles.outer]) == 1:
        rows = shared_out(size_of(nest, roles.row), tile.rows, machine.cores)
        return Sizes(tile.columns, tile.several, rows, tile.high)
    return _of_tile(tile)


def _of_tile(tile: Tile) -> Sizes:
    return Sizes(tile.columns, tile.several, tile.rows, tile.high)


def _streams(nest: Nest, roles: Roles, sizes: Sizes, machine: Machine) -> bool:
    """Whether the panel that a tile of rows reads leaves the first cache before the next tile.

    Not for pixels of an unknown number: there the prefetches took longer than they saved.
    """
    depth = product([nest.extent(axis) for axis in nest.reduced])
    width = sizes.columns * sizes.several * nest.stores[0].buffer.dtype.itemsize
    leaves = depth is None or depth * width > machine.l1 // 2
    may = (
        roles.shared
        and roles.row is not None
        and (_is_apart(nest, roles) or nest.extent(roles.row) is not None)
    )
    if not may:
        return False
    return decide(f"prefetches of {nest.block.name_hint}", leaves, lambda: [True, False])


def _stores_apart(nest: Nest, roles: Roles, sizes: Sizes) -> bool:
    """Whether the rows of a tile lie apart in the result, so that its lines are not one run."""
    store = Access(nest.stores[0].buffer, tuple(nest.stores[0].indices))
    return roles.row is not None and store.step(roles.row) != sizes.columns


def _chooses(nest: Nest, roles: Roles) -> bool:
    """Whether sets of rows choose by a table which part of an operand they meet."""
    return roles.tall is not None and any(
        load.uses(roles.tall) and not load.walks(roles.tall) for load in nest.loads
    )


def _is_apart(nest: Nest, roles: Roles) -> bool:
    """Whether neighbouring rows lie far apart in an operand that the columns do not index."""
    for load in nest.loads:
        if roles.row is not None and load.uses(roles.row) and not load.uses(roles.column):
            inner = load.buffer.shape[len(load.indices) - load.depth(roles.row) :]
            step = product([int(size) if isinstance(size, IntImm) else None for size in inner])
            if step is None or step > _NEAR:
                return True
    return False


# The tile


def _tile_result(
    sch: Schedule, nest: Nest, roles: Roles, result: BlockRV, sizes: Sizes, machine: Machine
) -> tuple[list[LoopRV], int]:
    """Tile the loops of the result.

    Returns the loops around the tile, and the position of the first loop after which only rows are
    chosen: 0 if the loops over rows come first.
    """
    loops = loops_like(sch, result, nest)
    used = {sch.get(loop).loop_var for loop in loops.values()}
    # Loops that run once and index nothing go outermost: inside they would count as rows of a tile.
    order = [loop for loop in sch.get_loops(result) if sch.get(loop).loop_var not in used]
    order += [loops[axis] for axis in roles.outer if axis in loops]
    down: list[LoopRV] = []
    across: list[LoopRV] = []
    rows, column = [], loops[roles.column]
    width = nest.extent(roles.column)
    is_alone = not order and roles.row is None and roles.wide is None
    if width is None or width > sizes.columns or is_alone:
        column_outer, column = sch.split(column, [None, sizes.columns])
        across.append(column_outer)
    parts = (
        (roles.wide, sizes.several, across),
        (roles.tall, sizes.high, down),
        (roles.row, sizes.rows, down),
    )
    for axis, size, outside in parts:
        if axis is not None:
            around, inside = sch.split(loops[axis], [None, size])
            outside.append(around)
            rows.append(inside)
    best = order_of(nest, roles, sizes, machine)
    if width is None and _run_several_times(sch, down):
        best = Order(by_row=True)
    seldom, often = (down, across) if best.by_row else (across, down)
    if best.groups > 1:
        at = next(i for i, loop in enumerate(often) if extent_of(sch, loop) != 1)
        group, often[at] = sch.split(often[at], [best.groups, None])
        order.append(group)
    order += [*seldom, *often]
    chosen = 0 if best.by_row or not across else len(order) - len(down)
    sch.reorder(*order, *rows, column)
    if _operations(sch, result) <= _MOST_UNROLLED:
        for loop in rows:
            sch.unroll(loop)
    sch.vectorize(column)
    return order, chosen


def _run_several_times(sch: Schedule, rows: Sequence[LoopRV]) -> bool:
    """Whether loops over rows are known to run more than once.

    Then they go around the columns of which only the run tells the number. Fused with them, such a
    loop would leave the guard of its last tile in a remainder, from where it is not moved out of
    the tile.
    """
    return (product([extent_of(sch, loop) for loop in rows]) or 0) > 1


def _operations(sch: Schedule, block: BlockRV) -> int:
    """The operations for an element of the block's result, without repetitions."""
    nest = Nest(sch, block)
    return len(collect([store.value for store in nest.stores], (BinaryExpr, Call, Cast, Select)))


def _prefetch_panels(sch: Schedule, columns: LoopRV) -> None:
    """Fetch the next panel from memory while rows go through this one.

    A network's other layers have filled the caches since its last run, so no panel is in them.
    """
    sch.annotate(columns, PREFETCH_NEXT, True)


def _tile_total(sch: Schedule, total: BlockRV, part: BlockRV, around: int) -> None:
    """Add the parts of a sum to the total of a tile, each as soon as it is computed."""
    parts, *tail = sch.get_loops(total)[around:]
    mark_tile(sch, tail)
    start = sch.decompose_reduction(total, parts)
    mark_tile(sch, sch.get_loops(start)[around:])
    sch.compute_at(part, parts)
