"""What ``order`` has to know of a tiled reduction: its tiles, the bytes it reads, its cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.arith.linear import detect_linear_equation
from weft.backends.cpu.schedules.order import (
    Order,
    Side,
    Tiles,
    best_order,
    loops_in,
    orders,
    share_of_busiest,
    tiles_of,
)
from weft.backends.cpu.schedules.roles import Roles, Sizes
from weft.dlight.decisions import decide
from weft.dlight.nest import Access, Nest, product
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import mentions
from weft.target.machine import Machine
from weft.tir.expr import Var

_ELEMENT: Final = 4
"""Bytes of an element; an estimate is enough here."""
_ASSUMED_ROWS: Final = 128
"""How many rows a product is taken to have, at least, where only the run tells: a sentence, or a
batch. With fewer rows its time is that of reading its weights, whatever the order of its tiles."""
_ASSUMED_SIDE: Final = 28
"""How high and wide an image is taken to be where only the run tells."""


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
    has_known_rows: bool = True
    """Whether the tiles of rows are as many as it says, whatever the run's sizes are."""


def traffic_of(nest: Nest, roles: Roles, sizes: Sizes, machine: Machine) -> Traffic | None:
    """What a reduction reads and computes; None if a size that is not assumed is symbolic."""
    columns = [load for load in nest.loads if load.uses(roles.column)]
    others = [load for load in nest.loads if not load.uses(roles.column)]
    extents = _extents(nest, roles)
    around = [axis for axis in roles.outer if extents[axis] != 1]
    here, there = [_bytes(loads, extents, around) for loads in (columns, others)]
    each = product([extents[axis] for axis in nest.spatial if axis not in around])
    steps = product([extents[axis] for axis in nest.reduced])
    if not here or not there or each is None or steps is None:
        return None
    across = _tiles(extents, (roles.column, sizes.columns), (roles.wide, sizes.several))
    down = _tiles(extents, (roles.tall, sizes.high), (roles.row, sizes.rows))
    cycles = each * steps / machine.lanes() / machine.fma_ports
    sizes_around = [(extents[axis] or 1, nest.extent(axis) is not None) for axis in around]
    outer = tuple([Tiles(size, is_known=is_known) for size, is_known in sizes_around])
    known = all(axis is None or nest.extent(axis) is not None for axis in (roles.tall, roles.row))
    return Traffic(Side(across, here), Side(down, there), outer, each, cycles, known)


def _extents(nest: Nest, roles: Roles) -> dict[Var, int | None]:
    """The extents of all axes; None for those that are symbolic and not assumed.

    Where there are no size hints, the rows of a product and the sides of an image are assumed, and
    a loop around the tiles to run once.
    """
    extents = {axis: nest.extent(axis) for axis in (*nest.spatial, *nest.reduced)}
    unknown = [axis for axis, extent in extents.items() if extent is None]
    likely = {axis: nest.likely_extent(axis) for axis in unknown}
    likely |= {axis: likely[axis] or 1 for axis in unknown if axis in roles.outer}
    if roles.row in unknown and roles.row is not None and roles.tall is None:
        likely[roles.row] = max(_ASSUMED_ROWS, likely[roles.row] or 0)
    if roles.tall is not None:
        sides = [axis for axis in (roles.tall, roles.row) if axis in unknown]
        likely |= {axis: likely[axis] or _ASSUMED_SIDE for axis in sides if axis is not None}
    return extents | likely


def order_of(nest: Nest, roles: Roles, sizes: Sizes, machine: Machine) -> Order:
    """The order in which tiles are computed.

    Rows are not the outer loop where columns lie in blocks and the result is about as large as what
    the rows read: such a result is better written one block of columns after the other.
    """
    traffic = traffic_of(nest, roles, sizes, machine)
    if traffic is None:
        return Order()
    columns, rows = traffic.columns, traffic.rows
    return decide(
        f"order of {nest.block.name_hint}",
        _best_order(traffic, roles, machine),
        lambda: orders(machine, columns, rows, may_be_by_row=_may_be_by_row(traffic, roles)),
    )


def _best_order(traffic: Traffic, roles: Roles, machine: Machine) -> Order:
    return best_order(
        machine,
        traffic.columns,
        traffic.rows,
        traffic.cycles,
        outer=traffic.outer,
        may_be_by_row=_may_be_by_row(traffic, roles),
    )


def _may_be_by_row(traffic: Traffic, roles: Roles) -> bool:
    return roles.wide is None or traffic.result * _ELEMENT * 3 < traffic.rows.size * 2


def busiest_share(nest: Nest, roles: Roles, sizes: Sizes, machine: Machine) -> float | None:
    """The share of the work that the busiest core has; None if a size is symbolic."""
    traffic = traffic_of(nest, roles, sizes, machine)
    if traffic is None:
        return None
    order = _best_order(traffic, roles, machine)
    loops = loops_in(traffic.columns, traffic.rows, order, traffic.outer)
    return share_of_busiest(loops, machine.cores)


def _tiles(extents: Mapping[Var, int | None], *axes: tuple[Var | None, int]) -> tuple[Tiles, ...]:
    """The tiles of each axis, given what one tile holds of it; an axis of one tile is left out."""
    sizes = [(extents[axis] if axis is not None else 1, tile) for axis, tile in axes]
    tiles = [tiles_of(size or 1, tile) for size, tile in sizes]
    return tuple([side for side in tiles if side.count > 1])


def _bytes(
    loads: Sequence[Access], extents: Mapping[Var, int | None], around: Sequence[Var]
) -> int | None:
    """What is loaded for one value of each axis ``around``; None if that is symbolic."""
    total = 0
    for load in loads:
        elements = _elements(load, extents)
        if elements is None:
            return None
        again = product([extents[axis] for axis in around if load.uses(axis)])
        total += elements * _ELEMENT // (again or 1)
    return total


def _elements(load: Access, extents: Mapping[Var, int | None]) -> int | None:
    """How many elements a load reads; None if that is symbolic."""
    spans = [
        size.value if isinstance(size, IntImm) else _span(index, extents)
        for size, index in zip(load.buffer.shape, load.indices, strict=True)
    ]
    if None not in spans:
        return product(spans)
    return product([size for axis, size in extents.items() if load.uses(axis)])


def _span(index: PrimExpr, extents: Mapping[Var, int | None]) -> int | None:
    """How many values a linear index has over the extents of axes; None if that is not known.

    Three steps of a window, 12 pixels apart, over a row of 33: ``column + 12 * step`` -> 57.
    """
    axes = [axis for axis in extents if mentions(index, axis)]
    sizes = [extents[axis] for axis in axes]
    steps = [step.value for step in detect_linear_equation(index, axes) if isinstance(step, IntImm)]
    if None in sizes or len(steps) <= len(axes):
        return None
    return 1 + sum(abs(step) * (size - 1) for step, size in zip(steps, sizes, strict=False) if size)
