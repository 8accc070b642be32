"""Data along the columns of a tiled reduction: when kernels copy it into panels.

Weights are laid out in panels when the model is built (``panels``), data is read where it lies. Say
that an image of 14 x 14 pixels lies along vectors. Its rows of 196 numbers start in the middle of
cache lines, so that three of four vectors lie in two lines each, and the rows of a tile are in as
many pages as there are rows. A panel, aligned and one run of memory, takes half the loads from the
second cache. Copying it costs about as much as a tile of rows saves in two or three tiles, so many
tiles have to use it (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication",
2008, copy both operands of every product).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from weft.backends.cpu.schedules.panels import can_pack, is_panel, panel
from weft.backends.cpu.schedules.roles import Roles, Sizes
from weft.backends.cpu.schedules.widened import tiles_of_rows
from weft.dlight.nest import Access, Nest, product
from weft.ir.expr import IntImm
from weft.target.machine import Machine
from weft.tir.buffer import Buffer
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_MANY: Final = 16
"""So many tiles of rows make a copy worthwhile, wherever the data comes from."""


def copy_rows(
    sch: Schedule,
    nest: Nest,
    roles: Roles,
    sizes: Sizes,
    weights: Collection[Buffer],
    machine: Machine,
) -> tuple[list[BlockRV], list[BlockRV]]:
    """Give data along the columns that many tiles use a copy.

    Returns the blocks that copy all of an operand into panels at once, since half of the second
    cache holds it, and those that still have to be placed where a panel is used
    (``widened.place_copies``).
    """
    whole: list[BlockRV] = []
    each: list[BlockRV] = []
    tiles = tiles_of_rows(nest, roles, sizes)
    if tiles is None or tiles < _MANY:
        return whole, each
    for load in nest.loads:
        if not reads_apart(nest, load, roles, sizes, weights):
            continue
        size = product([int(n) if isinstance(n, IntImm) else None for n in load.buffer.shape])
        if size is None:
            continue
        if size * load.buffer.dtype.itemsize <= machine.l2 // 2:
            copy = panel(sch, nest, load, roles.column, sizes.columns, weights)
            assert copy is not None
            whole.append(copy)
        else:
            index = [region.buffer for region in nest.block.reads].index(load.buffer)
            each.append(sch.cache_read(nest.rv, index, "global"))
    return whole, each


def reads_apart(
    nest: Nest, load: Access, roles: Roles, sizes: Sizes, weights: Collection[Buffer]
) -> bool:
    """Whether data that all rows share has rows longer than a tile, read where they lie."""
    return (
        load.buffer not in weights
        and roles.row is not None
        and load.uses(roles.column)
        and not load.uses(roles.row)
        and load not in roles.packed
        and nest.extent(roles.column) is not None
        and load.stride_one(roles.column)
        and not is_panel(nest, load, roles.column, sizes.columns)
        and can_pack(nest, load, roles.column)
    )
