"""Whether a long reduction runs block by block of its depth, by an estimate of its cycles.

In the usual order of tiles (``order``) each tile goes through the whole depth. If the panel that it
reads, the next one, and what the rows read do not fit the second cache together, they come from
beyond it again and again. With blocks of the depth as an outer loop only blocks of them have to
fit; the price is that tiles of the result are read and written once for each block (Goto and van de
Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008; Van Zee and van de Geijn, "BLIS: A
Framework for Rapidly Instantiating BLAS Functionality", 2015). So that the result stays in the
second cache from block to block, it may be cut into chunks, each of which runs through all blocks
by itself. Chunks are also what cores share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from weft.backends.cpu.schedules.order import (
    Order,
    Side,
    Tiles,
    cycles_of,
    cycles_of_loops,
    lost_share,
)
from weft.backends.cpu.schedules.tile_order import Traffic
from weft.target.machine import Machine

_SHARE: Final = 0.75
"""The part of the second cache that is counted on; other data and conflicts take the rest."""
_NEAR: Final = 64
"""Bytes of the result that the second cache reads or writes in a cycle, beside multiply-adds."""
_RESTART: Final = 30
"""Cycles between two blocks of a tile, beside those bytes: sums that must be complete before they
are stored, and the end of a loop."""
_GAIN: Final = 0.97
"""Blocks are worth their code if they take at most this share of the cycles without them."""
_BYTES: Final = 4
"""Bytes of an element; an estimate is enough here."""


class Chunks(NamedTuple):
    """Into how many chunks the tiles of the rows and those of the columns are cut."""

    rows: int = 1
    columns: int = 1


def best_chunks(machine: Machine, traffic: Traffic, blocks: int, order: Order) -> Chunks | None:
    """The chunks of the result that take the fewest cycles, if its depth is cut into ``blocks``.

    None if all take longer than ``order`` without blocks. A product of 128 rows, 3072 steps and
    768 columns reads 1.5 MiB for its rows:

    >>> from weft.backends.cpu.schedules.order import tiles_of
    >>> machine = Machine(1, 512, 32, 2, 32 << 10, 1 << 20, 32 << 20)
    >>> columns, rows = Side((tiles_of(768, 48),), 9 << 20), Side((tiles_of(128, 8),), 3 << 19)
    >>> best_chunks(machine, Traffic(columns, rows, (), 128 * 768, 9.4e6), 24, Order())
    Chunks(rows=1, columns=1)
    """
    best, least = None, _GAIN * _cycles_without(machine, traffic, order)
    for chunks in _candidates(traffic):
        cycles = _cycles(machine, traffic, blocks, chunks)
        if cycles is not None and cycles < least:
            best, least = chunks, cycles
    return best


def likely_chunks(machine: Machine, traffic: Traffic, blocks: int, most: int) -> list[Chunks]:
    """The chunks that take the fewest cycles by the model, at most ``most``, the best first."""
    cycles = {chunks: _cycles(machine, traffic, blocks, chunks) for chunks in _candidates(traffic)}
    fitting = {chunks: count for chunks, count in cycles.items() if count is not None}
    return sorted(fitting, key=lambda chunks: fitting[chunks])[:most]


def _cycles_without(machine: Machine, traffic: Traffic, order: Order) -> float:
    """The cycles of an order without blocks.

    If two panels and what the rows read do not fit the second cache, the rows' operand comes again
    for each panel, as far as it has been replaced since, and panels that were fetched ahead are
    lost before they are used. A panel that does not even fit beside a single tile of rows comes
    again for each of them.
    """
    columns, rows = traffic.columns, traffic.rows
    usual = cycles_of(machine, columns, rows, traffic.cycles, order, traffic.outer)
    seldom, often = (rows, columns) if order.by_row else (columns, rows)
    panel, tile = seldom.size // seldom.count, often.size // often.count
    needed = 2 * panel + often.size // order.groups
    if needed <= machine.l2 * _SHARE:
        return usual
    far = int(often.size * seldom.count * lost_share(machine, needed))
    far += 2 * seldom.size * order.groups
    far += int(seldom.size * (often.count - 1) * lost_share(machine, panel + tile))
    loops = (*traffic.outer, *seldom.tiles)
    return max(usual, cycles_of_loops(machine, loops, traffic.cycles, far))


def _candidates(traffic: Traffic) -> Iterator[Chunks]:
    """All chunks of equally many tiles. Rows of which only the run tells the number are in one."""
    for rows in _divisors(traffic.rows) if traffic.has_known_rows else [1]:
        for columns in _divisors(traffic.columns):
            yield Chunks(rows, columns)


def _divisors(side: Side) -> list[int]:
    """Into how many chunks the axis with the most tiles can be cut; only one if its last tile is
    cut off.
    """
    most = max(side.tiles, key=lambda tiles: tiles.count, default=None)
    if most is None or most.last != 1.0:
        return [1]
    return [chunks for chunks in range(1, most.count + 1) if most.count % chunks == 0]


def _cycles(machine: Machine, traffic: Traffic, blocks: int, chunks: Chunks) -> float | None:
    """The cycles with these chunks; None if panels and the result of one do not fit.

    Where a block of the rows does not fit beside them, each panel reads it anew.
    """
    columns, rows = traffic.columns, traffic.rows
    result, room = traffic.result * _BYTES, machine.l2 * _SHARE
    needed = 2 * columns.size // columns.count // blocks + result // chunks.rows // chunks.columns
    if needed > room:
        return None
    stays = needed + rows.size // chunks.rows // blocks <= room
    far = rows.size * (chunks.columns if stays else columns.count) + columns.size * chunks.rows
    near = 2 * result * blocks / _NEAR + rows.count * columns.count * blocks * _RESTART
    loops = (*traffic.outer, Tiles(chunks.rows), Tiles(chunks.columns))
    return cycles_of_loops(machine, loops, traffic.cycles + near, far)
