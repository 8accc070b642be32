"""Windows over pixels whose channels are contiguous: depthwise convolutions, pools.

A vector holds the channels of a pixel. A tile is some pixels of a row, or of a few short rows, that
stay in registers over the window; each step loads a vector of data for each of them, which keeps
the load ports as busy as the multiply-adds. What limits such a kernel is memory, so that an image
is never padded as a whole: bands of rows are, each just before its windows are taken, as many rows
as the first cache holds, or more, where those would be copied again and again for few results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.dlight.cpu import tiled
from weft.dlight.cpu.elementwise import run_in_parallel
from weft.dlight.cpu.tiles import even
from weft.dlight.nest import Access, Nest, product
from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_LARGEST: Final = 64
"""Pixels of a window at most."""
_WIDEST: Final = 4
"""Vectors of the channels of a pixel at most."""
_FILLED: Final = 0.75
"""The share of the first cache that a band may take."""
_ENOUGH: Final = 1.25
"""Rows copied for each row of the image with which such a band is high enough."""
_HIGHER: Final = 0.125
"""The share of the second cache that a band may take where that of the first one repeats more: the
rows of a window, which are in the first one, move on by one row of results at a time."""
_PARTS: Final = 4
"""Bands for each core at least, where they are higher than the first cache asks for."""
_ELEMENT: Final = 4
"""Bytes of an element, near enough."""


@dataclass(frozen=True)
class Band:
    """How much of an image is computed at once."""

    columns: int
    """Pixels of a tile along a row."""
    high: int
    """Rows of a tile."""
    rows: int
    """Rows of a band, a multiple of ``high`` or all."""


def fits(nest: Nest) -> bool:
    """Whether a block takes windows of pixels, channel by channel."""
    axes = nest.result_axes()
    if not nest.is_plain or not nest.is_reduction or not axes or len(nest.stores) != 1:
        return False
    size = product([nest.extent(axis) for axis in nest.reduced])
    if size is None or size > _LARGEST or len(axes) < 3 or not nest.loads:
        return False
    if any(nest.extent(axis) is None for axis in axes[-3:]):
        return False
    channel = axes[-1]
    return all(load.stride_one(channel) for load in nest.loads) and any(
        _is_window(nest, load, axes) for load in nest.loads
    )


def _is_window(nest: Nest, load: Access, axes: Sequence[Var]) -> bool:
    """Whether a load walks over rows and columns, of which it takes some at each place."""
    sizes = load.buffer.shape[-3:]
    if len(sizes) < 3 or not all(isinstance(size, IntImm) for size in sizes):
        return False
    places = [set(collect(index, Var)) for index in load.indices[-3:-1]]
    reduced = set(nest.reduced)
    return all(
        axis in used and used <= {axis} | reduced
        for axis, used in zip(axes[-3:-1], places, strict=True)
    )  # fmt: skip


def schedule(
    sch: Schedule, block: BlockRV, result: BlockRV | None, machine: Machine,
    padded: Sequence[BlockRV] = (),
) -> bool:  # fmt: skip
    """Take the windows of ``block``, and what follows element by element (``result``), in tiles.

    ``padded`` are ``windows.paddings`` of the block. False if the block takes no windows.
    """
    nest = Nest(sch, block)
    if not fits(nest):
        return False
    roles = tiled.roles_of(nest, ())
    axes = nest.result_axes()
    if roles is None or axes is None or roles.packed:
        return False
    outer, tall, row, column = tuple(axes[:-3]), axes[-3], axes[-2], axes[-1]
    steps = tuple(sorted(roles.steps, key=lambda axis: not _slides(nest, axis, row)))
    band = _band(nest, machine, bool(padded))
    if result is None:
        result = sch.cache_write(block, 0, "local")
    else:
        sch.set_scope(block, 0, "local")
    loops = tiled.loops_like(sch, result, nest)
    around = [loops[axis] for axis in outer if axis in loops]
    down, inside = sch.split(loops[tall], [None, band.rows])
    sets, high = sch.split(inside, [None, band.high])
    across, wide = sch.split(loops[row], [None, band.columns])
    sch.reorder(*around, down, sets, across, high, wide, loops[column])
    for loop in (high, wide):
        sch.unroll(loop)
    sch.vectorize(loops[column])
    sch.compute_at(block, across)
    for pad in padded:
        sch.compute_at(pad, down)  # before loops are fused: what a band reads is plain to see
    run_in_parallel(sch, [*around, down], machine)
    roles = tiled.Roles(column, row, None, tall, outer, steps, (), False)
    tiled.tile_reduction(sch, block, roles, tiled.loops_around(sch, result, roles), machine)
    for pad in padded:
        _pad(sch, pad)
    return True


def _slides(nest: Nest, axis: Var, row: Var) -> bool:
    """Whether an axis of the window walks along a row: what it meets, other pixels meet too.

    LLVM, where it unrolls such an axis, keeps what they share and spills accumulators for it.
    """
    places = [collect(index, Var) for load in nest.loads for index in load.indices]
    return any(axis in place and row in place for place in places)


def _band(nest: Nest, machine: Machine, is_padded: bool) -> Band:
    """Tiles of equal size that fill the registers; bands that copy least and stay in the cache."""
    axes = nest.result_axes()
    assert axes is not None
    tall, wide, channels = [nest.extent(axis) or 1 for axis in axes[-3:]]
    vectors = -(-channels // machine.lanes())
    most = max(machine.accumulator_rows(vectors), 1)
    columns = even(wide, most)
    high = even(tall, most // columns) if columns == wide else 1
    if not is_padded:
        return Band(columns, high, high)
    [load] = [load for load in nest.loads if _is_window(nest, load, axes)][:1]
    height, width = [int(size) for size in load.buffer.shape[-3:-1]]
    step = (load.step(axes[-3]) or 1) // (width * channels)
    bands = product([nest.extent(axis) for axis in axes[:-3]]) or 1
    row = width * channels * _ELEMENT
    for tile in (high, 1):
        # A last band that is cut off would not surely be padded before its windows are taken.
        sizes = [*[rows for rows in range(tile, tall, tile) if tall % rows == 0], tall]
        copied = [(tall // rows * (height - (tall - rows) * step), rows) for rows in sizes]
        near = _held(copied, tall, int(machine.l1 * _FILLED) // row)
        # Tiles of several rows are of small images, which higher bands make slower.
        some = [
            pair for pair in copied
            if high == 1 and bands * tall // pair[1] >= _PARTS * machine.cores
        ]  # fmt: skip
        far = _held(some, tall, int(machine.l2 * _HIGHER) // row)
        if near and (near[0][0] <= height * _ENOUGH or not far):
            return Band(columns, tile, near[0][1])
        if far:
            return Band(columns, tile, min([*near, *far])[1])
    return Band(columns, 1, 1)


def _held(
    copied: Sequence[tuple[int, int]], tall: int, most: int
) -> list[tuple[int, int]]:
    """The ``(rows copied in all, rows of results)`` of bands of ``most`` rows, fewest first."""
    return sorted(pair for pair in copied if pair[0] * pair[1] // tall <= most)


def _pad(sch: Schedule, pad: BlockRV) -> None:
    """Copy and fill a band pixel by pixel."""
    sch.vectorize(sch.get_loops(pad)[-1])
