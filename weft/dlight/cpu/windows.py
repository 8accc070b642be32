"""Reductions over windows along the contiguous axis: pools of images whose rows are contiguous.

A vector holds neighbouring results of one row, and the steps of the window are unrolled, so that
their loads, which may be some elements apart, differ by a constant. An image is padded just before
its windows are taken, by a fill and a copy, neither of which tests anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.dlight.cpu.elementwise import run_in_parallel, vectorize_inside
from weft.dlight.nest import Nest, loops_of, product
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.tir.expr import BufferLoad, Call, Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_LARGEST: Final = 64
"""Elements of a window that is unrolled."""
_FARTHEST: Final = 4
"""Elements from one result's window to the next one's that vectors still skip."""


def fits(nest: Nest) -> bool:
    """Whether a block takes windows along the axis that is contiguous in its result."""
    axes = nest.result_axes()
    if not nest.is_plain or not nest.is_reduction or not axes or len(nest.stores) != 1:
        return False
    size = product([nest.extent(axis) for axis in nest.reduced])
    if size is None or size > _LARGEST or len(axes) < 2 or not nest.loads:
        return False
    return all(_is_window(nest, load.indices[-1], load.step(axes[-1]), axes[-1])
               for load in nest.loads if load.indices)  # fmt: skip


def _is_window(nest: Nest, index: object, step: int | None, column: Var) -> bool:
    used = collect(index, Var)
    along = column in used and any(axis in used for axis in nest.reduced)
    return along and step is not None and 1 <= step <= _FARTHEST


def paddings(sch: Schedule, block: BlockRV) -> list[BlockRV]:
    """The blocks that pad what only ``block`` reads."""
    found = [one for one in sch.get_producers(block) if len(sch.get_consumers(one)) == 1]
    return [producer for producer in found if _is_padding(Nest(sch, producer))]


def _is_padding(nest: Nest) -> bool:
    """Whether a block holds an element of another tensor, or a constant outside of it."""
    if not nest.is_spatial or len(nest.stores) != 1:
        return False
    value = nest.stores[0].value
    is_choice = isinstance(value, Call) and getattr(value.op, "name", "") == "tir.if_then_else"
    return (
        is_choice and isinstance(value, Call) and isinstance(value.args[1], BufferLoad)
        and not collect(value.args[2], (BufferLoad, Var))
    )  # fmt: skip


def schedule(
    sch: Schedule, block: BlockRV, result: BlockRV | None, machine: Machine,
    padded: Sequence[BlockRV] = (),
) -> bool:  # fmt: skip
    """Take the windows of ``block``, and what follows element by element (``result``), in vectors.

    ``padded`` are ``paddings`` of the block. False if the block takes no windows.
    """
    if not fits(Nest(sch, block)):
        return False
    if result is None:
        result = sch.cache_write(block, 0, "local")
    else:
        sch.set_scope(block, 0, "local")
    loops = sch.get_loops(result)
    images = loops[:-2]
    image = sch.fuse(*images) if len(images) > 1 else (images or loops)[0]
    around, lanes = sch.split(loops[-1], [None, machine.lanes()])
    sch.vectorize(lanes)
    sch.compute_at(block, around)
    run_in_parallel(sch, [image], machine)
    for pad in padded:
        if not _pad(sch, pad, image, min(len(images), 1) + 1, machine):
            return False
    _take(sch, block, len(sch.get_loops(result)) - 1)
    return True


def _pad(sch: Schedule, pad: BlockRV, image: LoopRV, rank: int, machine: Machine) -> bool:
    """Fill the padded image, then copy what is inside; False if images share what is padded."""
    sch.compute_at(pad, image)
    if len(sch.get_loops(pad)) != 1 + rank:  # an image's windows are of several images
        return False
    fill = sch.decompose_padding(pad, sch.get_loops(pad)[1])
    for part in (fill, pad):
        nest = Nest(sch, part)
        vectorize_inside(sch, nest, nest.spatial[-1], 1, machine)
    return True


def _take(sch: Schedule, block: BlockRV, outside: int) -> None:
    """The steps of the window one after the other, each a vector of results."""
    nest = Nest(sch, block)
    loops = loops_of(sch, nest, outside)
    steps = [loops[axis] for axis in nest.reduced if axis in loops]
    axes = nest.result_axes()
    column = None if axes is None else loops.get(axes[-1])
    sch.reorder(*steps, *([] if column is None else [column]))
    if column is not None:
        sch.vectorize(column)
    if steps:
        start = sch.decompose_reduction(block, steps[0])
        if column is not None:
            sch.vectorize(sch.get_loops(start)[-1])
    for step in steps:
        sch.unroll(step)
