"""Reductions whose result is contiguous along an axis: products, convolutions, pools.

One program serves them all. The last axis of the result is the vector axis; one more axis gives
the rows of a register tile that stays in registers over the whole reduction. What follows the
reduction element by element (bias, activation, residual) is computed on the tile. Operands are
first copied into panels where they need it (``panels``), and terms that are surely padding are left
out (``borders``). Sizes come from ``tiles.best_tile``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.backends.cpu.schedules.borders import crossing
from weft.backends.cpu.schedules.elementwise import extent_of, run_in_parallel
from weft.backends.cpu.schedules.joined import join_rows
from weft.backends.cpu.schedules.long_rows import add_together, exceeds_registers, long_row
from weft.backends.cpu.schedules.order import Order, Side, Tiles, best_order, tiles_of
from weft.backends.cpu.schedules.panels import can_pack, is_panel, panel, schedule_panel
from weft.backends.cpu.schedules.parallel_depth import parallel_depth
from weft.backends.cpu.schedules.parts import cut_of, in_parts
from weft.backends.cpu.schedules.tiles import Work, best_tile, shared_out
from weft.backends.cpu.vectors.fill_tails import FILL_TAIL
from weft.backends.cpu.vectors.prefetch_next import PREFETCH_NEXT
from weft.backends.cpu.vectors.skip_padding import SKIP_PADDING, has_padding
from weft.dlight.nest import Access, Nest, loops_of, product
from weft.ir.expr import IntImm
from weft.target.machine import Machine
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_UNROLLED: Final = 100
"""A reduction of at most this many multiply-adds of vectors is unrolled as a whole."""
_STEPS: Final = 4
"""How many steps of a longer reduction are unrolled together."""
_FILLED: Final = 0.75
"""Steps are unrolled together if accumulators take at most this share of the registers."""
_ELEMENT: Final = 4
"""Bytes of an element; an estimate is enough here."""
_NEAR: Final = 64
"""Two rows at most this many elements apart count as neighbours, as two pixels are."""
_FEW: Final = 64
"""How many uses of a panel share the wait for it to come from memory: with more uses than this,
the wait no longer counts."""


@dataclass(frozen=True)
class Roles:
    """What each axis of the result does in a tiled reduction."""

    column: Var
    """The axis along which vectors lie."""
    row: Var | None
    """The axis of the rows of a tile; None: a tile has one row."""
    wide: Var | None
    """The axis that counts blocks of columns (channels / 16 of a blocked layout): a tile may hold
    several."""
    tall: Var | None
    """The axis that counts sets of rows, such as lines of an image, whose rows are pixels: a tile
    may hold several short ones. Sets that choose what the columns index, as the rows of a mixture
    of experts do, come each in a tile of its own."""
    outer: tuple[Var, ...]
    """The other axes, in the order of the result."""
    steps: tuple[Var, ...]
    """The axes of the reduction; the one that walks memory with the smallest steps is last."""
    packed: tuple[Access, ...]
    """Operands that are copied into panels."""
    shared: bool
    """Whether an operand is loaded once for all rows of a tile."""


@dataclass(frozen=True)
class Sizes:
    """How much of each axis a tile holds."""

    columns: int
    several: int
    rows: int
    high: int


def roles_of(nest: Nest, weights: Collection[Buffer]) -> Roles | None:
    """The roles of the axes; None if the block is no reduction of this kind."""
    axes = nest.result_axes()
    if not nest.is_plain or not nest.is_reduction or not axes or len(nest.stores) != 1:
        return None
    column = axes[-1]
    rest = [axis for axis in axes[:-1] if nest.extent(axis) != 1]
    along = [load for load in nest.loads if load.uses(column)]
    if not along:
        return None
    contiguous = [load for load in along if load.stride_one(column)]
    strided = [load for load in along if not load.stride_one(column)]
    again = [axis for axis in rest if any(not load.walks(axis) for load in along)]
    row = (again or rest)[-1] if rest else None
    tall = again[-2] if len(again) > 1 else None
    free = [axis for axis in rest if axis is not row and axis is not tall]
    wide = None if nest.extent(column) is None else _wide_of(free, nest.loads, along)
    reused = [load for load in along if row is not None and not load.uses(row)]
    packed = [load for load in strided if can_pack(nest, load, column)]
    if len(packed) != len(strided):
        return None
    if any(load not in reused and load.buffer not in weights for load in strided):
        return None  # copying costs as much as computing
    # Panels are filled up with zeros: if the number of columns is symbolic, vectors may read there.
    panels = reused if nest.extent(column) is None else []
    packed += [
        load
        for load in contiguous
        if (load in panels or load.buffer in weights) and can_pack(nest, load, column)
    ]
    outer = tuple([axis for axis in axes[:-1] if axis not in (row, wide, tall)])
    steps = sorted(
        nest.reduced,
        key=lambda axis: (
            not _slides(nest, axis, row),
            -min(load.depth(axis) for load in nest.loads),
        ),
    )
    shared = row is None or len(reused) > 0
    return Roles(column, row, wide, tall, outer, tuple(steps), tuple(packed), shared)


def _slides(nest: Nest, axis: Var, row: Var | None) -> bool:
    """Whether two rows read the same element at different steps of an axis: ``x[2 * row + axis]``.

    If LLVM unrolls such an axis, it keeps these elements in registers for the other row, and spills
    accumulators to make room.
    """
    size = nest.extent(axis)
    for load in nest.loads:
        if row is not None and load.uses(row) and load.uses(axis):
            apart = load.step(row)
            if load.step(axis) == 1 and apart is not None and size is not None and apart < size:
                return True
    return False


def _wide_of(rest: Sequence[Var], loads: Sequence[Access], along: Sequence[Access]) -> Var | None:
    """The innermost axis that indexes only operands along the columns: it counts their blocks."""
    wide = [
        axis
        for axis in rest
        if any(load.uses(axis) for load in along)
        and not any(load.uses(axis) for load in loads if load not in along)
        and len(along) < len(loads)
    ]
    return wide[-1] if wide else None


def schedule(
    sch: Schedule,
    block: BlockRV,
    result: BlockRV | None,
    machine: Machine,
    weights: Collection[Buffer],
) -> bool:
    """Tile a reduction and what follows it (``result``, which reads it element by element).

    Returns whether the block is such a reduction. ``weights`` are buffers that are known when
    the model is built.
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
    sizes = _sizes(nest, roles, machine)
    panels = [
        panel(sch, nest, load, roles.column, sizes.columns, weights)
        for load in roles.packed
        if not is_panel(nest, load, roles.column, sizes.columns)
    ]
    if panels and nest.extent(roles.column) is None:
        sch.annotate(block, FILL_TAIL, 1)
    if has_padding(nest.block):
        sch.annotate(block, SKIP_PADDING, 1)
    part = in_parts(sch, nest, roles.steps)
    place_tile(sch, nest, roles, (block, result), sizes, machine)
    around = loops_around(sch, result, roles)
    if part is None:
        tile_reduction(sch, block, roles, around, machine)
    else:
        total, (block, steps) = block, part
        _tile_total(sch, total, block, around)
        tile_reduction(sch, block, replace(roles, steps=steps), around + 1, machine)
    for copy in panels:
        if copy is not None:
            schedule_panel(sch, copy, machine)
    return True


def knows_ends(nest: Nest, weights: Collection[Buffer], machine: Machine) -> bool:
    """Whether it is known where the rows of an image end inside a tile.

    It is if a tile holds whole rows, or equal parts of one, and all steps of a window.
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
    return size % _sizes(nest, roles, machine).rows == 0


def place_tile(
    sch: Schedule,
    nest: Nest,
    roles: Roles,
    blocks: tuple[BlockRV, BlockRV],
    sizes: Sizes,
    machine: Machine,
) -> None:
    """Tile the result, the second of ``blocks``; compute the reduction, the first, in its tiles."""
    block, result = blocks
    order, columns = _tile_result(sch, nest, roles, result, sizes, machine)
    depth = parallel_depth(sch, order, machine)
    fused = sch.fuse(*order[:depth]) if depth else None
    if depth <= columns < len(order) and _are_few(sch, order[columns:]):
        _prefetch_panels(sch, order[columns - 1] if fused is None or depth < columns else fused)
    place = fused if fused is not None and depth == len(order) else order[-1]
    sch.compute_at(block, place)
    if fused is not None:
        run_in_parallel(sch, [fused], machine)


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
        once=_reads_once(nest),
        bits=max(nest.stores[0].buffer.dtype.bits, 32),  # shorter numbers are added as float32
    )


def _sizes(nest: Nest, roles: Roles, machine: Machine) -> Sizes:
    """What a tile holds of each axis."""
    work = _work_of(nest, roles)
    tile, long = best_tile(machine, work), long_row(machine, work)
    if long is not None:
        return Sizes(long, 1, 1, 1)
    alone = (roles.wide, roles.tall) == (None, None) and not roles.shared
    if alone and product([nest.extent(axis) for axis in roles.outer]) == 1:
        rows = shared_out(size_of(nest, roles.row), tile.rows, machine.cores)
        return Sizes(tile.columns, tile.several, rows, tile.high)
    return Sizes(tile.columns, tile.several, tile.rows, tile.high)


def _reads_once(nest: Nest) -> bool:
    """Whether every instance of the block reads one number, which no other instance reads."""
    if len(nest.loads) != 1:
        return False
    axes = [axis for axis in (*nest.spatial, *nest.reduced) if nest.extent(axis) != 1]
    places = [index for index in nest.loads[0].indices if isinstance(index, Var)]
    return set(axes) <= set(places)


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


def size_of(nest: Nest, axis: Var | None) -> int | None:
    """The extent of an axis; None if it is symbolic, 1 if there is none."""
    return 1 if axis is None else nest.extent(axis)


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
    best = _order_of(nest, roles, sizes, machine)
    seldom, often = (down, across) if best.by_row else (across, down)
    if best.groups > 1:
        at = next(i for i, loop in enumerate(often) if extent_of(sch, loop) != 1)
        group, often[at] = sch.split(often[at], [best.groups, None])
        order.append(group)
    order += [*seldom, *often]
    chosen = 0 if best.by_row or not across else len(order) - len(down)
    sch.reorder(*order, *rows, column)
    for loop in rows:
        sch.unroll(loop)
    sch.vectorize(column)
    return order, chosen


def _are_few(sch: Schedule, rows: Sequence[LoopRV]) -> bool:
    """Whether a panel has so few uses that the first one, which waits for memory, counts."""
    times = product([extent_of(sch, loop) for loop in rows])
    return times is not None and 1 < times <= _FEW


def _prefetch_panels(sch: Schedule, columns: LoopRV) -> None:
    """Fetch the next panel from memory while rows go through this one.

    A network's other layers have filled the caches since its last run, so no panel is in them.
    """
    sch.annotate(columns, PREFETCH_NEXT, True)


def _order_of(nest: Nest, roles: Roles, sizes: Sizes, machine: Machine) -> Order:
    """The order in which tiles are computed.

    Rows are not the outer loop where columns lie in blocks and the result is about as large as what
    the rows read: such a result is better written one block of columns after the other.
    """
    columns = [load for load in nest.loads if load.uses(roles.column)]
    others = [load for load in nest.loads if not load.uses(roles.column)]
    around = [axis for axis in roles.outer if nest.extent(axis) != 1]
    here, there = [_bytes(nest, loads, around) for loads in (columns, others)]
    each = product([nest.extent(axis) for axis in nest.spatial if axis not in around])
    steps = product([nest.extent(axis) for axis in nest.reduced])
    if not here or not there or each is None or steps is None:
        return Order()
    across = _tiles(nest, (roles.column, sizes.columns), (roles.wide, sizes.several))
    down = _tiles(nest, (roles.tall, sizes.high), (roles.row, sizes.rows))
    cycles = each * steps / machine.lanes() / machine.fma_ports
    may_be_by_row = roles.wide is None or each * _ELEMENT * 3 < there * 2
    outer = _tiles(nest, *[(axis, 1) for axis in around])
    sides = Side(across, here), Side(down, there)
    return best_order(machine, *sides, cycles, outer=outer, may_be_by_row=may_be_by_row)


def _tiles(nest: Nest, *axes: tuple[Var | None, int]) -> tuple[Tiles, ...]:
    """The tiles of each axis, given what one tile holds of it; an axis of one tile is left out."""
    tiles = [tiles_of(size_of(nest, axis) or 1, tile) for axis, tile in axes]
    return tuple([side for side in tiles if side.count > 1])


def _bytes(nest: Nest, loads: Sequence[Access], around: Sequence[Var]) -> int | None:
    """What is loaded for one value of each axis ``around``; None if that is symbolic."""
    total = 0
    for load in loads:
        shape = [int(size) if isinstance(size, IntImm) else None for size in load.buffer.shape]
        known = product(shape)
        if known is None:
            return None
        again = product([size_of(nest, axis) for axis in around if load.uses(axis)])
        total += known * _ELEMENT // (again or 1)
    return total


def loops_like(sch: Schedule, result: BlockRV, nest: Nest) -> dict[Var, LoopRV]:
    """The loop of the result that runs each axis of the reduction."""
    other = Nest(sch, result)
    axes, loops = other.result_axes(), loops_of(sch, other)
    mine = nest.result_axes()
    assert axes is not None
    assert mine is not None
    return {axis: loops[same] for axis, same in zip(mine, axes, strict=True) if same in loops}


def loops_around(sch: Schedule, result: BlockRV, roles: Roles) -> int:
    """How many loops are around the tiles of the result."""
    return len(sch.get_loops(result)) - len(_tile_axes(roles))


def _tile_axes(roles: Roles) -> list[Var]:
    # A number of one row is multiplied with all vectors before that of the next row is loaded, so
    # that few registers hold operands.
    tile = (roles.tall, roles.row, roles.wide, roles.column)
    return [axis for axis in tile if axis is not None]


def _tile_total(sch: Schedule, total: BlockRV, part: BlockRV, around: int) -> None:
    """Add the parts of a sum to the total of a tile, each as soon as it is computed."""
    parts, *tail = sch.get_loops(total)[around:]
    mark_tile(sch, tail)
    start = sch.decompose_reduction(total, parts)
    mark_tile(sch, sch.get_loops(start)[around:])
    sch.compute_at(part, parts)


def tile_reduction(
    sch: Schedule, block: BlockRV, roles: Roles, shared: int, machine: Machine
) -> None:
    """Order the loops inside a tile: the reduction outermost, then rows, unrolled, then columns as
    vectors.

    ``shared`` is the number of loops around the tile.
    """
    inside = _tile_axes(roles)
    nest = Nest(sch, block)
    loops = loops_of(sch, nest, shared)
    steps = [loops[axis] for axis in roles.steps if axis in loops]
    tail = [loops[axis] for axis in inside if axis in loops]
    sizes = [nest.extent(axis) for axis in nest.reduced]
    sch.reorder(*steps, *tail)
    if steps and _reads_once(nest) and exceeds_registers(sch, tail, machine):
        rows = add_together(sch, steps[-1], tail[-1], machine)
        sch.decompose_reduction(block, [*steps[:-1], rows][0])
        return
    mark_tile(sch, tail)
    if steps:
        start = sch.decompose_reduction(block, steps[0])
        mark_tile(sch, sch.get_loops(start)[shared:])
        whole = product([*sizes, *[extent_of(sch, loop) for loop in tail[:-1]]])
        if whole is not None and whole <= _UNROLLED:
            for loop in steps:
                sch.unroll(loop)
        else:
            unroll_some(sch, steps[-1], tail, machine)
            if roles.row is not None and has_padding(nest.block):
                for axis in crossing(nest.loads, roles.steps, [roles.row]):
                    sch.unroll(loops[axis])  # other pixels are outside in each step of the window


def unroll_some(sch: Schedule, step: LoopRV, tail: Sequence[LoopRV], machine: Machine) -> None:
    """Unroll several steps of the reduction where registers are left for what they load."""
    size, width = extent_of(sch, step), extent_of(sch, tail[-1]) if tail else None
    rows = product([extent_of(sch, loop) for loop in tail[:-1]])
    if size is None or width is None or rows is None:
        return
    products = rows * -(-width // machine.lanes())
    if products <= machine.vector_registers * _FILLED:
        together = max(number for number in range(1, _STEPS + 1) if size % number == 0)
        if 1 < together < size:
            _, inner = sch.split(step, [None, together])
            sch.unroll(inner)


def mark_tile(sch: Schedule, tail: Sequence[LoopRV]) -> None:
    """Unroll the rows and make the columns vectors."""
    for loop in tail[:-1]:
        sch.unroll(loop)
    if tail:
        sch.vectorize(tail[-1])
