"""In which order the tiles of a reduction are computed, by counting.

Tiles are chosen by their columns and their rows. What the axis that changes seldom reads comes from
memory once; what the other one reads comes again for each of its tiles, unless it stays in the
second cache: then a group of its tiles may stay there, and the groups go outermost (Goto and van de
Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008). Cores get equal numbers of tiles
one after the other, so a last tile that is cut off may leave one core less to do than another:
groups are then what cores share.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.backends.cpu.schedules.together import fused
from weft.target.machine import Machine

_FAR: Final = 24
"""Bytes that come from beyond the second cache in a cycle."""
_GAIN: Final = 0.97
"""The share of the cycles at most that rows of tiles may take instead of columns of tiles."""
_GROUPS_GAIN: Final = 0.85
"""The same for groups: they read again what else comes once, and maybe from memory."""
_MANY: Final = 1 << 10
"""Tiles whose shares are not counted one by one."""


@dataclass(frozen=True)
class Tiles:
    """How many tiles an axis has, and what share of a whole one the last is."""

    count: int
    last: float = 1.0

    @property
    def weights(self) -> list[float]:
        """The work of each."""
        return [*[1.0] * (self.count - 1), self.last]


def tiles_of(size: int, tile: int) -> Tiles:
    """The tiles of an axis.

    >>> tiles_of(196, 48)
    Tiles(count=5, last=0.08333333333333333)
    """
    count = -(-size // tile)
    return Tiles(count, (size - (count - 1) * tile) / tile)


@dataclass(frozen=True)
class Side:
    """One of the two: the tiles of its axes, outermost first, and the bytes that they index."""

    tiles: tuple[Tiles, ...]
    size: int

    @property
    def count(self) -> int:
        """All tiles."""
        return math.prod([tiles.count for tiles in self.tiles])


class Order(NamedTuple):
    """What changes seldom, and how many groups of the other are outermost."""

    by_row: bool = False
    groups: int = 1


def best_order(
    machine: Machine, columns: Side, rows: Side, cycles: float, *, outer: Sequence[Tiles] = (),
    may_be_by_row: bool = True,
) -> Order:  # fmt: skip
    """The order that takes the fewest cycles; ``cycles`` are those of all multiply-adds on a core,
    in each iteration of ``outer``.

    >>> machine = Machine(2, 512, 32, 2, 32 << 10, 1 << 20, 32 << 20)
    >>> pixels = Side((tiles_of(196, 48),), 196 * 1024 * 4)
    >>> best_order(machine, pixels, Side((Tiles(32),), 256 * 1024 * 4), 1.6e6)
    Order(by_row=False, groups=2)
    """

    def cost(order: Order) -> float:
        seldom, often = (rows, columns) if order.by_row else (columns, rows)
        groups = (Tiles(order.groups),) if order.groups > 1 else ()
        loops = (*outer, *groups, *seldom.tiles, *_in_group(often.tiles, order.groups))
        busiest = share_of_busiest(loops, machine.cores)
        far = _far(machine, seldom, often, order.groups) / _FAR
        sharers = min(machine.cores, math.prod([t.count for t in loops]))
        cost: float = cycles * busiest + far / sharers
        return cost

    usual = Order()
    found = usual
    for order in _orders(machine, columns, rows, may_be_by_row):
        enough = _GAIN if order.groups == 1 else _GROUPS_GAIN
        if cost(order) < min(cost(found), cost(usual) * enough):
            found = order
    return found


def _orders(
    machine: Machine, columns: Side, rows: Side, may_be_by_row: bool
) -> Iterator[Order]:
    """All orders but the usual one, the plainest first.

    There are none where columns exceed the second cache: panels of weights come from memory then,
    once and fetched ahead (PrefetchNextIteration), which other orders would undo.
    """
    if may_be_by_row and columns.size <= machine.l2 // 2:
        yield Order(by_row=True)
    if columns.size > machine.l2:
        return
    for by_row, often in ((False, rows), (True, columns)):
        if may_be_by_row or not by_row:
            for groups in _divisors(often.tiles):
                yield Order(by_row, groups)


def _divisors(tiles: Sequence[Tiles]) -> list[int]:
    """The numbers of groups, equal ones, that an axis without a tile that is cut off has."""
    if not tiles or tiles[0].last != 1.0:
        return []
    count = tiles[0].count
    return [groups for groups in range(2, count) if count % groups == 0]


def _in_group(tiles: tuple[Tiles, ...], groups: int) -> tuple[Tiles, ...]:
    if groups == 1:
        return tiles
    return (Tiles(tiles[0].count // groups), *tiles[1:])


def _far(machine: Machine, seldom: Side, often: Side, groups: int) -> int:
    """Bytes that come from beyond the second cache, half of which a group may fill."""
    stays = often.size // groups <= machine.l2 // 2
    return often.size * (1 if stays else seldom.count) + seldom.size * groups


def share_of_busiest(loops: Sequence[Tiles], cores: int) -> float:
    """The share of the work that the core with the most of it does.

    >>> share_of_busiest([Tiles(5, 0.25), Tiles(8)], 2)
    0.5882352941176471
    """
    depth = fused([tiles.count for tiles in loops], [tiles.last != 1.0 for tiles in loops], cores)
    if depth == 0:
        return 1.0
    counts = [tiles.count for tiles in loops[:depth]]
    if math.prod(counts) > _MANY:
        return 1 / cores
    work = [math.prod(each) for each in itertools.product(*[t.weights for t in loops[:depth]])]
    chunk, rest = divmod(len(work), cores)
    starts = [core * chunk + min(core, rest) for core in range(cores + 1)]
    busiest = max(sum(work[start:end]) for start, end in itertools.pairwise(starts))
    return busiest / sum(work)
