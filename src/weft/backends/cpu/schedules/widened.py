"""Narrow weights of a tiled reduction: where they become float32.

A product of float32 data and weights in bfloat16, float16 or int8 converts a weight whenever it
loads it. In a tile that takes an instruction or two for each vector of weights, beside a
multiply-add for each row. If few tiles use a panel, that hides behind the wait for the panel to
come from memory, which is half as long as for float32 or less. If many tiles use it, the panel is
converted once, to float32 in the second cache, just before them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from weft.backends.cpu.schedules.panels import schedule_panel
from weft.backends.cpu.schedules.roles import Roles, Sizes, size_of
from weft.dlight.nest import Nest, product
from weft.ir.expr import IntImm
from weft.support.dtype import DataType
from weft.support.errors import ScheduleError
from weft.target.machine import Machine
from weft.tir.buffer import Buffer
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_FEW: Final = 2
"""Up to this many tiles of rows convert the panel that they use, each for itself."""


def widen_panels(
    sch: Schedule, nest: Nest, roles: Roles, sizes: Sizes, weights: Collection[Buffer]
) -> list[BlockRV]:
    """Give each narrow weight along the columns a copy in float32, if many tiles use it.

    ``nest`` is the reduction as it was before operands were copied into panels. Returns the blocks
    that make the copies, which still have to be placed.
    """
    result = nest.stores[0].buffer.dtype
    tiles = tiles_of_rows(nest, roles, sizes)
    if result != "float32" or (tiles is not None and tiles <= _FEW):
        return []
    copies = []
    for load in nest.loads:
        if load.buffer in weights and is_narrow(load.buffer.dtype) and load.uses(roles.column):
            index = [region.buffer for region in nest.block.reads].index(load.buffer)
            copy = sch.cache_read(nest.rv, index, "global")
            sch.unsafe_set_dtype(copy, 0, str(result))
            copies.append(copy)
    return copies


def is_narrow(dtype: DataType) -> bool:
    """Whether numbers of a type are converted to float32 to compute with them."""
    return (dtype.is_float and dtype.bits == 16) or dtype == "int8"


def tiles_of_rows(nest: Nest, roles: Roles, sizes: Sizes) -> int | None:
    """How many tiles of rows there are; None if that is symbolic."""
    sides = [(roles.row, sizes.rows), (roles.tall, sizes.high)]
    extents = [size_of(nest, axis) for axis, _ in sides]
    if None in extents:
        return None
    return product(
        [-(-(size or 1) // tile) for size, (_, tile) in zip(extents, sides, strict=True)]
    )


def place_copies(
    sch: Schedule, copies: Sequence[BlockRV], place: LoopRV | None, machine: Machine
) -> None:
    """Make copies in each iteration of ``place``, for the panels that are used there.

    Without such a place, a copy is made of the whole weight if half of the second cache holds it;
    else the tiles convert what they load.
    """
    for copy in copies:
        if place is not None and _is_placed(sch, copy, place):
            sch.vectorize(sch.get_loops(copy)[-1])
        elif bytes_of_copy(sch, copy) <= machine.l2 // 2:
            schedule_panel(sch, copy, machine)
            sch.vectorize(sch.get_loops(copy)[-1])
        else:
            sch.compute_inline(copy)


def _is_placed(sch: Schedule, copy: BlockRV, place: LoopRV) -> bool:
    try:
        sch.compute_at(copy, place)
    except ScheduleError:
        return False
    return True


def bytes_of_copy(sch: Schedule, copy: BlockRV) -> int:
    """The bytes that a copy writes; more than any cache has if that is symbolic."""
    buffer = sch.get(copy).writes[0].buffer
    shape = [extent.value if isinstance(extent, IntImm) else None for extent in buffer.shape]
    size = product(shape)
    return 1 << 62 if size is None else size * buffer.dtype.itemsize
