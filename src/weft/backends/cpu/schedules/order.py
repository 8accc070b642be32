"""The order in which the tiles of a reduction are computed, by an estimate of its cycles.

A tile is a block of columns times a block of rows. Say that columns are the outer loop and rows the
inner one. Then what the columns index comes from memory once, and what the rows index comes again
for each block of columns, unless it stays in the second cache. Rows that are too large for that may
be cut into groups that do stay. The groups become the outermost loop (Goto and van de Geijn,
"Anatomy of High-Performance Matrix Multiplication", 2008), and what the columns index then comes
once for each group.

Each core takes equally many tiles that follow each other. Where the last tile of an axis is cut
off, the core that gets it has less to do. Groups as the outermost loop may share the work out
better.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.backends.cpu.schedules.parallel_depth import depth_of_counts
from weft.target.machine import Machine

_FAR: Final = 24
"""Bytes that arrive from beyond the second cache in a cycle."""
_GAIN: Final = 0.97
"""Rows become the outer loop if that takes at most this share of the cycles of the usual order."""
_GROUPS_GAIN: Final = 0.85
"""The same for groups, which need a larger gain: with them, what else is read once is read again
for each group, maybe from memory."""
_MANY: Final = 1 << 10
"""With more tiles than this, all cores are taken to have the same work."""


@dataclass(frozen=True)
class Tiles:
    """The tiles of an axis: how many, and the size of the last one as a share of a whole tile."""

    count: int
    last: float = 1.0
    is_known: bool = True
    """Whether ``count`` is a constant of the program. If not, it is what the run is likely to have,
    and may be 1."""

    @property
    def weights(self) -> list[float]:
        """The work of each tile, where that of a whole tile is 1."""
        return [*[1.0] * (self.count - 1), self.last]


def tiles_of(size: int, tile: int) -> Tiles:
    """Cut an axis of ``size`` elements into tiles of ``tile`` elements.

    >>> tiles_of(196, 48)
    Tiles(count=5, last=0.08333333333333333, is_known=True)
    """
    count = -(-size // tile)
    return Tiles(count, (size - (count - 1) * tile) / tile)


@dataclass(frozen=True)
class Side:
    """The columns, or the rows: the tiles of their axes, outermost first, and the bytes of the
    operands that they index.
    """

    tiles: tuple[Tiles, ...]
    size: int

    @property
    def count(self) -> int:
        """How many tiles there are in all."""
        return math.prod([tiles.count for tiles in self.tiles])


class Order(NamedTuple):
    """Whether rows are the outer loop, and into how many groups the inner side is cut."""

    by_row: bool = False
    groups: int = 1


def best_order(
    machine: Machine,
    columns: Side,
    rows: Side,
    cycles: float,
    *,
    outer: Sequence[Tiles] = (),
    may_be_by_row: bool = True,
) -> Order:
    """The order that takes the fewest cycles.

    ``cycles`` are those that one core needs for all multiply-adds of one iteration of the loops
    ``outer``. ``may_be_by_row`` says whether rows may be the outer loop.

    >>> machine = Machine(2, 512, 32, 2, 32 << 10, 1 << 20, 32 << 20)
    >>> pixels = Side((tiles_of(196, 48),), 196 * 1024 * 4)
    >>> best_order(machine, pixels, Side((Tiles(32),), 256 * 1024 * 4), 1.6e6)
    Order(by_row=False, groups=2)
    """

    def cost(order: Order) -> float:
        return cycles_of(machine, columns, rows, cycles, order, outer)

    usual = Order()
    best = usual
    for order in _orders(machine, columns, rows, may_be_by_row):
        enough = _GAIN if order.groups == 1 else _GROUPS_GAIN
        if cost(order) < min(cost(best), cost(usual) * enough):
            best = order
    return best


def orders(machine: Machine, columns: Side, rows: Side, *, may_be_by_row: bool) -> list[Order]:
    """All orders that ``best_order`` chooses from."""
    return [Order(), *_orders(machine, columns, rows, may_be_by_row)]


def cycles_of(
    machine: Machine,
    columns: Side,
    rows: Side,
    cycles: float,
    order: Order,
    outer: Sequence[Tiles] = (),
) -> float:
    """The cycles that an order takes."""
    seldom, often = _sides(columns, rows, order)
    far = _far(machine, seldom, often, order.groups)
    return cycles_of_loops(machine, loops_in(columns, rows, order, outer), cycles, far)


def loops_in(
    columns: Side, rows: Side, order: Order, outer: Sequence[Tiles] = ()
) -> tuple[Tiles, ...]:
    """The loops over tiles in an order, outermost first."""
    seldom, often = _sides(columns, rows, order)
    groups = (Tiles(order.groups),) if order.groups > 1 else ()
    return (*outer, *groups, *seldom.tiles, *_in_group(often.tiles, order.groups))


def _sides(columns: Side, rows: Side, order: Order) -> tuple[Side, Side]:
    """The side whose tiles are the outer loop, and the other one."""
    return (rows, columns) if order.by_row else (columns, rows)


def cycles_of_loops(machine: Machine, loops: Sequence[Tiles], cycles: float, far: float) -> float:
    """The cycles of the busiest core, where ``far`` bytes come from beyond the second cache."""
    sharers = min(machine.cores, math.prod([tiles.count for tiles in loops]))
    return cycles * share_of_busiest(loops, machine.cores) + far / _FAR / sharers


def _orders(machine: Machine, columns: Side, rows: Side, may_be_by_row: bool) -> Iterator[Order]:
    """All orders but the usual one (columns outside, no groups), the plainest first.

    There are none where what the columns index exceeds the second cache. In the usual order these
    panels of weights come from memory once, and are fetched ahead (PrefetchNextIteration); in any
    other order they would come several times.
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
    """Into how many equal groups the first axis can be cut; none if its last tile is cut off."""
    if not tiles or tiles[0].last != 1.0:
        return []
    count = tiles[0].count
    return [groups for groups in range(2, count) if count % groups == 0]


def _in_group(tiles: tuple[Tiles, ...], groups: int) -> tuple[Tiles, ...]:
    if groups == 1:
        return tiles
    return (Tiles(tiles[0].count // groups), *tiles[1:])


def _far(machine: Machine, seldom: Side, often: Side, groups: int) -> int:
    """The bytes that come from beyond the second cache, half of which a group may fill."""
    group, panels = often.size // groups, 2 * seldom.size // seldom.count
    lost = 0.0 if group <= machine.l2 // 2 else lost_share(machine, group + panels)
    return int(often.size * (1 + (seldom.count - 1) * lost)) + seldom.size * groups


def lost_share(machine: Machine, needed: int) -> float:
    """The share of ``needed`` bytes, read again and again, that has left the second cache since.

    Lines are replaced nearly at random, so some of a run that is too long are still there.

    >>> machine = Machine(2, 512, 32, 2, 32 << 10, 1 << 20, 32 << 20)
    >>> lost_share(machine, 1 << 20), lost_share(machine, 2 << 20)
    (0.0, 0.75)
    """
    return 1 - min(machine.l2 / needed, 1.0) ** 2


def share_of_busiest(loops: Sequence[Tiles], cores: int) -> float:
    """The share of all work that the busiest core does.

    >>> share_of_busiest([Tiles(5, 0.25), Tiles(8)], 2)
    0.5882352941176471

    Where only the run tells a count, it is the mean of two: of the likely count, and of 1. Two
    images keep two cores busy, but tiles of a program that has nothing else to share out would
    leave a single image to one core:

    >>> share_of_busiest([Tiles(2, is_known=False), Tiles(5, 0.25)], 2)
    0.75
    """
    depth = depth_of_counts(
        [tiles.count if tiles.is_known else None for tiles in loops],
        [tiles.last != 1.0 for tiles in loops],
        cores,
    )
    if depth == 0:
        return 1.0
    likely = list(loops[:depth])
    once = [tiles if tiles.is_known else Tiles(1) for tiles in likely]
    return (_busiest(likely, cores) + _busiest(once, cores)) / 2


def _busiest(loops: Sequence[Tiles], cores: int) -> float:
    """The same of loops all of which are fused, with these counts."""
    if math.prod([tiles.count for tiles in loops]) > _MANY:
        return 1 / cores
    work = [math.prod(each) for each in itertools.product(*[tiles.weights for tiles in loops])]
    chunk, rest = divmod(len(work), cores)
    starts = [core * chunk + min(core, rest) for core in range(cores + 1)]
    busiest = max(sum(work[start:end]) for start, end in itertools.pairwise(starts))
    return busiest / sum(work)
