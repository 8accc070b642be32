"""What ``order`` has to know of a tiled reduction: its tiles, the bytes it reads, its cycles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.backends.cpu.schedules.order import Order, Side, Tiles, best_order, tiles_of
from weft.backends.cpu.schedules.roles import Roles, Sizes, size_of
from weft.dlight.nest import Access, Nest, product
from weft.ir.expr import IntImm
from weft.target.machine import Machine
from weft.tir.expr import Var

_ELEMENT: Final = 4
"""Bytes of an element; an estimate is enough here."""


@dataclass(frozen=True)
class Traffic:
    """The columns and the rows of a tiled reduction, with the bytes they read, and its cycles."""

    columns: Side
    rows: Side
    outer: tuple[Tiles, ...]
    """The loops around both."""
    result: int
    """The elements of the result, in one iteration of these loops."""
    cycles: float
    """The cycles of all multiply-adds in one iteration."""


def traffic_of(nest: Nest, roles: Roles, sizes: Sizes, machine: Machine) -> Traffic | None:
    """What a reduction reads and computes; None if a size is symbolic."""
    columns = [load for load in nest.loads if load.uses(roles.column)]
    others = [load for load in nest.loads if not load.uses(roles.column)]
    around = [axis for axis in roles.outer if nest.extent(axis) != 1]
    here, there = [_bytes(nest, loads, around) for loads in (columns, others)]
    each = product([nest.extent(axis) for axis in nest.spatial if axis not in around])
    steps = product([nest.extent(axis) for axis in nest.reduced])
    if not here or not there or each is None or steps is None:
        return None
    across = _tiles(nest, (roles.column, sizes.columns), (roles.wide, sizes.several))
    down = _tiles(nest, (roles.tall, sizes.high), (roles.row, sizes.rows))
    cycles = each * steps / machine.lanes() / machine.fma_ports
    outer = _tiles(nest, *[(axis, 1) for axis in around])
    return Traffic(Side(across, here), Side(down, there), outer, each, cycles)


def order_of(nest: Nest, roles: Roles, sizes: Sizes, machine: Machine) -> Order:
    """The order in which tiles are computed.

    Rows are not the outer loop where columns lie in blocks and the result is about as large as what
    the rows read: such a result is better written one block of columns after the other.
    """
    traffic = traffic_of(nest, roles, sizes, machine)
    if traffic is None:
        return Order()
    columns, rows = traffic.columns, traffic.rows
    may_be_by_row = roles.wide is None or traffic.result * _ELEMENT * 3 < rows.size * 2
    return best_order(
        machine, columns, rows, traffic.cycles, outer=traffic.outer, may_be_by_row=may_be_by_row
    )


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
