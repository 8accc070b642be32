"""Windows along the contiguous axis (images in NCHW): depthwise convolutions and pools.

A vector holds neighbouring results of one row. A tile is one vector in each of several rows; the
windows of these rows overlap, so that most pixels are loaded once for all of them. Images are
padded in bands: as many rows as the first cache holds, just before their windows are computed. If
the windows of neighbouring results are two pixels apart (stride 2), the band is stored in two
parts, the even columns and the odd ones. What a vector of results reads then lies side by side, and
pixels are sorted once instead of once for each window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.backends.cpu.schedules.borders import is_padding
from weft.backends.cpu.schedules.elementwise import run_in_parallel
from weft.backends.cpu.schedules.tile_loops import order_sum
from weft.backends.cpu.schedules.tiles import even
from weft.dlight.decisions import decide
from weft.dlight.nest import Access, Nest, loops_of, product
from weft.ir.expr import IntImm
from weft.ir.functor import collect, mentions
from weft.target.machine import Machine
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_LARGEST: Final = 64
"""How many elements a window has at most: its steps are unrolled."""
_FARTHEST: Final = 4
"""How many elements the windows of two neighbouring results may be apart."""
_FILLED: Final = 0.75
"""The share of the first cache that a band may fill."""
_ELEMENT: Final = 4
"""Bytes of an element; an estimate is enough here."""
_TALLEST, _LOWEST = 8, 4
"""The most rows of a tile, since eight accumulators hide the latency of each; and the rows that it
has even if the factors of the window leave no registers for so many."""
_HIGHEST: Final = 12
"""The most rows of a tile that a search tries."""
_BEFORE: Final = 32
"""How many rows are padded before the first of them is read, if possible: a load of what was stored
in several pieces just before waits until all pieces are in the cache."""


@dataclass(frozen=True)
class Band:
    """The sizes of a band of results, and how far apart its windows are."""

    rows: int
    """Rows of a band."""
    high: int
    """Rows of a tile."""
    images: int
    """How many small images have their bands padded together."""
    apart: int
    """How many columns two neighbouring windows are apart: the parts that the band is stored in."""


def fits(nest: Nest) -> bool:
    """Whether a block computes windows along the axis that is contiguous in its result."""
    axes = nest.result_axes()
    if not nest.is_plain or not nest.is_reduction or not axes or len(nest.stores) != 1:
        return False
    size = product([nest.extent(axis) for axis in nest.reduced])
    if size is None or size > _LARGEST or len(axes) < 2:
        return False
    along = [load for load in nest.loads if load.uses(axes[-1])]
    return (
        bool(along)
        and all(_is_window(nest, load, axes[-1]) for load in along)
        and not any(load.uses(axes[-2]) for load in nest.loads if load not in along)
        and all(_is_separate(nest, load, axes) for load in along)
    )


def _is_window(nest: Nest, load: Access, column: Var) -> bool:
    """Whether the last index of a load is ``column`` times a small stride plus a window's axis."""
    used, step = collect(load.indices[-1], Var), load.step(column)
    along = column in used and any(axis in used for axis in nest.reduced)
    return along and step is not None and 1 <= step <= _FARTHEST


def _is_separate(nest: Nest, load: Access, axes: Sequence[Var]) -> bool:
    """Whether each result has a window of its own; in a plain convolution all filters share one."""
    return all(load.uses(axis) for axis in axes if nest.extent(axis) != 1)


def paddings(sch: Schedule, block: BlockRV) -> list[BlockRV]:
    """The blocks that pad a tensor for ``block`` alone."""
    return [
        producer
        for producer in sch.get_producers(block)
        if len(sch.get_consumers(producer)) == 1 and is_padding(Nest(sch, producer))
    ]


def schedule(
    sch: Schedule,
    block: BlockRV,
    result: BlockRV | None,
    machine: Machine,
    padded: Sequence[BlockRV] = (),
) -> bool:
    """Compute in vectors the windows of ``block``, and ``result``, which reads them elementwise.

    ``result`` is None if no such block follows. ``padded`` are the ``paddings`` of the block.
    Returns False if ``block`` has no such windows.
    """
    nest = Nest(sch, block)
    if not fits(nest):
        return False
    band = _band(nest, machine, bool(padded))
    along = _along_rows(sch, nest)
    if result is None:
        result = sch.cache_write(block, 0, "local")
    else:
        sch.set_scope(block, 0, "local")
    *images, tall, column = sch.get_loops(result)
    together: list[LoopRV] = []
    if band.images > 1:
        images[-1], image = sch.split(images[-1], [None, band.images])
        together.append(image)
    down, inside = sch.split(tall, [None, band.rows])
    sets, high = sch.split(inside, [None, band.high])
    around, lanes = sch.split(column, [None, machine.lanes()])
    sch.reorder(*images, down, *together, sets, around, high, lanes)
    sch.unroll(high)
    sch.vectorize(lanes)
    for part in [block, *along]:
        sch.compute_at(part, around)
    for pad in padded:
        sch.compute_at(pad, down)  # before loops are fused: what a band reads is still simple
    run_in_parallel(sch, [*images, down], machine)
    for pad in padded:
        _pad(sch, pad, band.apart)
    outside = len(sch.get_loops(result)) - 2
    for part in [*along, block]:
        _take(sch, part, outside)
    return True


def _along_rows(sch: Schedule, nest: Nest) -> list[BlockRV]:
    """Reduce the pixels along each row first, in a block of its own, where windows can share that.

    The maximum of a 3x3 window, for example, is the maximum over three rows of the maximum of three
    pixels. Windows of neighbouring rows of results need the same maxima of rows, and a tile
    computes each of them once. That works without weights, which would differ from row to row.
    Returns the new block in a list, which is empty if windows share nothing.
    """
    axes, steps = nest.result_axes(), [axis for axis in nest.reduced if nest.extent(axis) != 1]
    if axes is None or len(nest.loads) != 1 or len(steps) != 2:
        return []
    [load] = nest.loads
    [down, *along] = sorted(steps, key=lambda axis: mentions(load.indices[-1], axis))
    if any(not mentions(load.indices[-1], axis) for axis in along):
        return []
    shift, step, size = load.step(axes[-2]), load.step(down), nest.extent(down)
    if not shift or not step or not size or shift % step or shift >= step * size:
        return []
    block = sch.rfactor(loops_of(sch, nest)[down], 0)
    sch.set_scope(block, 0, "local")
    return [block]


def _band(nest: Nest, machine: Machine, is_padded: bool) -> Band:
    """The sizes of a band: tiles fill the registers, and as many rows as the first cache holds."""
    axes = nest.result_axes()
    assert axes is not None
    tall, name = nest.extent(axes[-2]) or 1, f"band of {nest.block.name_hint}"
    size = product([nest.extent(axis) for axis in nest.reduced]) or 1
    most = max(min(machine.vector_registers + 1 - size, _TALLEST), _LOWEST)
    if not is_padded:
        heights = [even(tall, most), *[even(tall, high) for high in range(_HIGHEST, 0, -1)]]
        bands = [Band(high, high, 1, 1) for high in heights]
        return decide(name, bands[0], lambda: bands)
    [load, *_] = [load for load in nest.loads if load.uses(axes[-1])]
    last, apart = load.buffer.shape[-1], load.step(axes[-1]) or 1
    wide = last.value if isinstance(last, IntImm) else 1
    step = max((load.step(axes[-2]) or wide) // wide, 1)
    row, apart = wide * step * _ELEMENT, 1 if wide % apart else apart
    images = (nest.extent(axes[-3]) or 1) if len(axes) > 2 else 1

    def band(rows: int, high: int) -> Band:
        together = _images_together(images, rows * step) if rows == tall else 1
        return Band(rows, even(rows, high), together, apart)

    best = band(_rows(tall, row, machine), most)
    return decide(
        name,
        best,
        lambda: [
            *[band(best.rows, high) for high in range(_HIGHEST, 0, -1)],
            *[band(rows, most) for rows in _divisors(tall) if rows * row <= machine.l2],
            *[replace(best, images=some) for some in _divisors(images) if best.rows == tall],
            replace(best, apart=1),
        ],
    )


def _images_together(images: int, rows: int) -> int:
    """How many of ``images`` small images, each of ``rows`` rows, are padded together."""
    some = _divisors(images)
    return min([*[count for count in some if count * rows >= _BEFORE], images])


def _divisors(number: int) -> list[int]:
    return [count for count in range(1, number + 1) if number % count == 0]


def _rows(tall: int, row: int, machine: Machine) -> int:
    """How many of ``tall`` rows a band has, where a padded row takes ``row`` bytes.

    It is the largest divisor that the first cache holds. (A last band that is cut off could not be
    proved to be padded before its windows are computed.) Where these are too few, it is all rows.
    """
    held = max(int(machine.l1 * _FILLED) // row, 1)
    rows = max([rows for rows in _divisors(tall) if rows <= held])
    # Neighbouring bands of few rows would pad most of their pixels twice.
    repeats = rows < _LOWEST and tall * row <= machine.l2 * _FILLED
    return tall if repeats else rows


def _pad(sch: Schedule, pad: BlockRV, apart: int) -> None:
    """Copy and fill a band row by row, its columns stored in ``apart`` parts."""
    column = sch.get_loops(pad)[-1]
    if apart > 1:
        sch.transform_layout(pad, ("write", 0), _in_parts(apart))
        # Windows may not need the last columns, but the band has room for them: no guard is needed.
        column, part = sch.split(column, [None, apart], disable_predication=True)
        sch.reorder(part, column)
        sch.unroll(part)
    sch.vectorize(column)


def _in_parts(apart: int) -> Any:
    """The index map ``(.., column) -> (.., column % apart, column // apart)``."""
    return lambda *place: [*place[:-1], place[-1] % apart, place[-1] // apart]


def _take(sch: Schedule, block: BlockRV, outside: int) -> None:
    """Unroll the steps of the window; each adds to a vector of results in every row of the tile."""
    axes = Nest(sch, block).result_axes()
    assert axes is not None
    for step in order_sum(sch, block, axes, outside):
        sch.unroll(step)
