"""Windows over images whose channels are contiguous (NHWC): depthwise convolutions and pools.

A vector holds channels of one pixel. A tile is some pixels of a row, or of a few short rows, whose
accumulators stay in registers for all steps of the window. Where registers suffice, tiles are so
small that each pixel is loaded once for a row of the window (``shared_pixels``); else each step
loads a vector of data for each pixel, which keeps the load ports as busy as the multiply-add ports.
No padded copy of the image is written, which would cost more than the window: a pixel outside of
the image is a choice between a load and a constant, and code generation makes that a choice between
two addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.backends.cpu.schedules.elementwise import run_together
from weft.backends.cpu.schedules.roles import Roles, roles_of
from weft.backends.cpu.schedules.shared_pixels import (
    Window,
    is_shared,
    slides,
    tile_of,
    window_of,
)
from weft.backends.cpu.schedules.tile_loops import loops_around, loops_like, tile_reduction
from weft.backends.cpu.schedules.tiles import even
from weft.dlight.decisions import decide
from weft.dlight.nest import Access, Nest, product
from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import ForKind
from weft.tir.transform.loop_partition import HINT

_UNKNOWN: Final = 112
"""How long a row is taken to be where only the run tells."""
_LARGEST: Final = 64
"""How many pixels a window has at most."""


def fits(nest: Nest) -> bool:
    """Whether a block computes windows over pixels, each channel by itself."""
    axes = nest.result_axes()
    if not nest.is_plain or not nest.is_reduction or not axes or len(nest.stores) != 1:
        return False
    size = product([nest.extent(axis) for axis in nest.reduced])
    if size is None or size > _LARGEST or len(axes) < 3 or not nest.loads:
        return False
    channel = axes[-1]
    if nest.extent(channel) is None:
        return False
    return all(load.stride_one(channel) for load in nest.loads) and any(
        _is_window(nest, load, axes) for load in nest.loads
    )


def _is_window(nest: Nest, load: Access, axes: Sequence[Var]) -> bool:
    """Whether a load is ``x[.., row + i, column + j, channel]``: result axes plus window axes."""
    if len(load.buffer.shape) < 3 or not isinstance(load.buffer.shape[-1], IntImm):
        return False
    places = [set(collect(index, Var)) for index in load.indices[-3:-1]]
    reduced = set(nest.reduced)
    return all(
        axis in used and used <= {axis} | reduced
        for axis, used in zip(axes[-3:-1], places, strict=True)
    )


def schedule(
    sch: Schedule,
    block: BlockRV,
    result: BlockRV | None,
    machine: Machine,
    padded: Sequence[BlockRV] = (),
) -> bool:
    """Compute in tiles the windows of ``block``, and ``result``, which reads them elementwise.

    ``result`` is None if no such block follows. ``padded`` are the blocks that pad the image
    (``windows.paddings``); they are inlined. Returns False if ``block`` has no such windows.
    """
    if not fits(Nest(sch, block)):
        return False
    for pad in padded:
        sch.compute_inline(pad)
    nest = Nest(sch, block)
    roles = roles_of(nest, ())
    axes = nest.result_axes()
    if roles is None or axes is None or roles.packed:
        return False
    outer, tall, row, column = tuple(axes[:-3]), axes[-3], axes[-2], axes[-1]
    window = window_of(nest, row, machine)
    high, wide = _tile(nest, window, machine)
    shares = window is not None and high == 1 and is_shared(window, wide, machine)
    steps = _order_of_steps(nest, roles, row, shares=shares)
    if result is None:
        result = sch.cache_write(block, 0, "local")
    else:
        sch.set_scope(block, 0, "local")
    loops = loops_like(sch, result, nest)
    inside = [sch.get(loops[axis]) for axis in (tall, row, column)]
    around = [loop for loop in sch.get_loops(result) if sch.get(loop) not in inside]
    down, rows = sch.split(loops[tall], [None, high])
    across, pixels = sch.split(loops[row], [None, wide])
    sch.reorder(*around, down, across, rows, pixels, loops[column])
    for loop in (rows, pixels):
        sch.unroll(loop)
    sch.vectorize(loops[column])
    sch.compute_at(block, across)
    outermost = run_together(sch, [*around, down], machine)
    roles = Roles(column, row, None, tall, outer, steps, (), False)
    step = tile_reduction(sch, block, roles, loops_around(sch, result, roles), machine)
    if shares and step is not None:
        sch.unroll(step)
    if padded:
        size = nest.extent(row)
        whole = [across] if size is None or size % wide == 0 else []
        _keep_whole(sch, [*outermost, *whole, *_steps(sch, block, across)])
    return True


def _order_of_steps(nest: Nest, roles: Roles, row: Var, *, shares: bool) -> tuple[Var, ...]:
    """The steps of a window, outermost first: those along the row last if they share pixels.

    If LLVM unrolls the axis along the row, it keeps shared pixels in registers. In a tile that
    fills them it would spill accumulators to make room.
    """
    along = {axis for axis in roles.steps if any(slides(load, axis, row) for load in nest.loads)}
    return tuple(sorted(roles.steps, key=lambda axis: (axis in along) == shares))


def _steps(sch: Schedule, block: BlockRV, across: LoopRV) -> list[LoopRV]:
    """The loops over steps of the window: those inside of ``across`` that are not unrolled."""
    loops = sch.get_loops(block)
    at = [sch.get(loop) for loop in loops].index(sch.get(across))
    return [loop for loop in loops[at + 1 :] if sch.get(loop).kind is ForKind.SERIAL]


def _keep_whole(sch: Schedule, loops: Sequence[LoopRV]) -> None:
    """Tell lowering not to cut these loops where windows start to leave the image.

    Cut loops would be more code for nothing: only the first and last pixels of a tile have to
    choose between a load and a constant, and whether a row is inside is the same for all its
    pixels.
    """
    for loop in loops:
        sch.annotate(loop, HINT, 0)


def _tile(nest: Nest, window: Window | None, machine: Machine) -> tuple[int, int]:
    """How many rows, and pixels of a row, a tile has: few pixels that are loaded once, else equal
    parts that fill the registers.
    """
    axes = nest.result_axes()
    assert axes is not None
    tall, wide = [nest.extent(axis) or nest.likely_extent(axis) or _UNKNOWN for axis in axes[-3:-1]]
    channels = nest.extent(axes[-1]) or 1
    most = max(machine.accumulator_rows(-(-channels // machine.lanes())), 1)

    def tile(most: int) -> tuple[int, int]:
        columns = even(wide, most)
        return even(tall, most // columns) if columns == nest.extent(axes[-2]) else 1, columns

    small = tile_of(window, wide, machine)
    return decide(
        f"tile of {nest.block.name_hint}",
        tile(most) if small is None else (1, small),
        lambda: [tile(pixels) for pixels in range(most + most // 2, 0, -1)],
    )
