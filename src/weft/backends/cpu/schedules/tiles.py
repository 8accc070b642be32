"""How large a register tile is: a cost model of tiled reductions on a CPU.

A tile holds ``rows`` times ``vectors`` accumulators in registers. Each step of the reduction loads
``vectors`` vectors and ``rows`` broadcast numbers and does a multiply-add for each accumulator. A
step takes as many cycles as its slowest part: the multiply-add ports, two load ports, the latency
of the multiply-adds to one accumulator, or the second cache, which delivers the vectors that the
first cache cannot keep until the next rows use them (Goto and van de Geijn, "Anatomy of
High-Performance Matrix Multiplication", 2008; Low et al., "Analytical Modeling Is Enough for
High-Performance BLIS", 2016).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from weft.backends.cpu.vectors.shift_tiles import tiles_of_extent
from weft.backends.cpu.vectors.split_vector_loop import PADDED
from weft.target.machine import Machine, vector_count

_LATENCY: Final = 4
"""Cycles from a multiply-add to the next one on its result, on processors since 2015."""
CHAIN: Final = 4.75
"""The same as measured: a chain of multiply-adds that once waited for a load never catches up."""
_LOADS: Final = 2
"""Vectors that can be loaded in a cycle."""
_BROADCASTS: Final = 1.82
"""The same where each number needs a load of its own to be broadcast: as measured in tiles of 10 to
14 rows and one vector, on an AVX2 processor. With 32 registers multiply-adds broadcast it."""
_STREAM: Final = 24
"""Bytes that the second cache delivers in a cycle while everything else goes on."""
_MANY_REGISTERS: Final = 32
_WIDE: Final = 512
"""Processors lower their clock for vectors of this many bits."""
_WIDE_LOAD: Final = 0.12
"""What each load of such a vector costs on top of the multiply-adds, in cycles."""
_WIDE_STREAM: Final = 0.17
"""What such a vector costs more if the second cache delivers it, in cycles."""
_START: Final = 20
"""Cycles to start and end a tile, beside the reduction itself."""
_UNKNOWN: Final = 1 << 10
"""The extent that is assumed where it is symbolic, and no size hint tells more."""
_LENGTHS: Final = (7, 14, 28, 56)
"""How long rows of images are taken to be where that is symbolic: short rows decide about tiles."""
_WAYS: Final = 8
"""Lines in one set of the first cache. Rows at a distance of a power of two fall into one set: more
rows than this would push each other out."""
_WIDEST: Final = 4
"""The most vectors in a tile: beyond it, a number that is broadcast gains too little from being
used by one more vector."""
_UNEVEN: Final = 1.05
"""Work is shared out well if the busiest core has at most so many times its part."""
_GAIN: Final = 0.95
"""Another tile is taken for the cores' sake if it needs at most this share of the time."""
_OTHERS: Final = 8
"""How many of the next best tiles are looked at for that."""
_SPARED: Final = 2
"""Registers left for other things where additions take their operands from memory."""
_LONGEST: Final = 16
"""The most vectors in a tile where each number is read only once: longer runs of memory are
fetched faster."""


@dataclass(frozen=True)
class Work:
    """What is tiled: ``rows`` times ``columns`` accumulators over ``depth`` steps (None: symbolic).

    ``shared`` says that all rows multiply one vector (a matrix product); else each row loads a
    vector of its own (a depthwise convolution), and more accumulators than hide the latency of
    one would only make the code longer. There may be ``high`` such sets of rows, as the rows of an
    image, of which a tile takes several where one is short; and columns may lie in ``blocks`` of
    ``columns`` each, as channels do, of which a tile takes several or a part of one.
    """

    rows: int | None
    columns: int | None
    shared: bool = True
    high: int | None = 1
    blocks: int = 1
    depth: int | None = None
    apart: bool = False
    """Whether the numbers of two rows lie so far from each other that they share cache sets."""
    once: bool = False
    """Whether each number is read once, for one accumulator, and nothing else is read: a sum."""
    bits: int = 32
    """The size of an accumulator."""
    likely_rows: int | None = None
    """How many rows there usually are, if that is known of a symbolic number."""
    likely_high: int | None = None
    """The same of sets of rows."""
    likely_depth: int | None = None
    """The same of steps."""
    cost: float = 1.0
    """How many times as long the instructions of a product take as a multiply-add."""
    chain: float = CHAIN
    """Cycles from a sum to the next one of the same accumulator."""
    ends_with_rows: bool = False
    """Whether a tile must hold equal parts of ``rows``: it is then known where they end in it."""

    @property
    def has_unknown_rows(self) -> bool:
        """Whether rows are those of images of symbolic size."""
        return self.rows is None and self.high is None


@dataclass(frozen=True)
class Tile:
    """``high`` times ``rows`` rows, and ``vectors`` of ``lanes`` elements, of a register tile."""

    rows: int
    vectors: int
    lanes: int
    high: int = 1
    several: int = 1
    """How many blocks of columns the vectors belong to."""

    @property
    def columns(self) -> int:
        """The width in elements, in one block of columns."""
        return self.vectors // self.several * self.lanes

    @property
    def products(self) -> int:
        """How many accumulators it holds."""
        return self.high * self.rows * self.vectors


@functools.lru_cache(maxsize=1024)
def best_tile(machine: Machine, work: Work) -> Tile:
    """The tile that does the work in the fewest cycles.

    >>> best_tile(Machine(1, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20), Work(768, 768))
    Tile(rows=4, vectors=3, lanes=8, high=1, several=1)
    """
    return min(
        _candidates(machine, work),
        key=lambda tile: (
            round(_cycles(machine, tile, work), 3),
            (tile.high * tile.rows + tile.vectors) / tile.products,
            -tile.vectors,
        ),
    )


def balanced_tile(machine: Machine, work: Work, share_of: Callable[[Tile], float | None]) -> Tile:
    """The tile with which the busiest core is done first.

    It is the best one by itself unless another one shares the work out so much better that its
    cycles, times the share of the busiest core, are fewer. ``share_of`` gives that share, or None
    if it is not known.

    >>> machine = Machine(2, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20)
    >>> balanced_tile(machine, Work(768, 768), lambda tile: 0.5)
    Tile(rows=4, vectors=3, lanes=8, high=1, several=1)
    """
    best = best_tile(machine, work)
    usual = share_of(best) if machine.cores > 1 else None
    if usual is None or usual * machine.cores <= _UNEVEN:
        return best
    cycles = {
        tile: _cycles(machine, tile, work) * (share_of(tile) or 1.0)
        for tile in likely_tiles(machine, work, _OTHERS)
    }
    fewest = min(cycles, key=lambda tile: (cycles[tile], -tile.products))
    enough = _cycles(machine, best, work) * usual * _GAIN
    return fewest if cycles[fewest] < enough else best


def likely_tiles(machine: Machine, work: Work, most: int) -> list[Tile]:
    """The tiles that take the fewest cycles by the model, at most ``most``, the best one first."""
    tiles = set(_candidates(machine, work))
    cycles = {tile: _cycles(machine, tile, work) for tile in tiles}
    return sorted(tiles, key=lambda tile: (cycles[tile], -tile.products))[:most]


def fewest_cycles(machine: Machine, work: Work) -> float:
    """Cycles of a step of the reduction in the tile that takes the fewest."""
    return _cycles(machine, best_tile(machine, work), work)


def _candidates(machine: Machine, work: Work) -> Iterator[Tile]:
    """Every tile that the registers hold."""
    height = _UNKNOWN if work.rows is None else work.rows
    for lanes, vectors, several in _widths(machine, work):
        most = most_rows(machine, vectors)
        most = most_sums(machine) // vectors if work.once else most
        most = min(most, _WAYS) if work.apart else most
        for rows in range(1, min(most, height) + 1):
            if work.ends_with_rows and height % rows:
                continue
            is_short = work.shared and rows == work.rows
            sets = min(most // rows, work.high or _UNKNOWN) if is_short else 1
            for high in range(1, sets + 1):
                tile = Tile(rows, vectors, lanes, high, several)
                few = tile.products <= _LATENCY * machine.fma_ports
                if work.shared or few or rows == 1:
                    yield tile


def _widths(machine: Machine, work: Work) -> Iterator[tuple[int, int, int]]:
    """``(lanes, vectors, blocks)`` of the tiles: parts of one block of columns, or whole ones."""
    lanes, width = machine.lanes(work.bits), _UNKNOWN if work.columns is None else work.columns
    while lanes > 1 and lanes // 2 >= width:
        lanes //= 2
    for vectors in range(1, _widest(machine, work) + 1):
        if (vectors == 1 or (vectors - 1) * lanes < width) and _stays_whole(vectors * lanes):
            yield lanes, vectors, 1
    each = -(-width // lanes)
    for several in range(2, _WIDEST // each + 1):
        if work.blocks % several == 0:
            yield lanes, each * several, several


def _stays_whole(columns: int) -> bool:
    """Whether LLVM keeps a vector of so many elements in registers over the steps of a loop.

    Lowering cuts wider ones (SplitVectorLoop). Three vectors of four, an extent that it leaves to
    LLVM, are put together anew, element by element, in every step.

    >>> _stays_whole(12), _stays_whole(16), _stays_whole(24)
    (False, True, True)
    """
    return columns > PADDED or columns & (columns - 1) == 0


def _widest(machine: Machine, work: Work) -> int:
    """The most vectors in a tile; those of a sum leave a part of the columns to each core."""
    if not work.once or work.columns is None:
        return _WIDEST
    return min(_LONGEST, max(_WIDEST, work.columns // (machine.lanes(work.bits) * machine.cores)))


def most_rows(machine: Machine, vectors: int) -> int:
    """How many rows of ``vectors`` vectors the registers hold, with the operands beside them.

    >>> most_rows(Machine(1, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20), 2)
    6
    """
    return machine.accumulator_rows(vectors)


def most_sums(machine: Machine) -> int:
    """How many sums the registers hold, in vectors, where additions take operands from memory."""
    return machine.vector_registers - _SPARED


def _cycles(machine: Machine, tile: Tile, work: Work) -> float:
    """Cycles of one step of the reduction over the whole result."""
    depth = work.depth or work.likely_depth or _UNKNOWN
    width = _UNKNOWN if work.columns is None else work.columns
    size = work.bits // 8
    panel = tile.vectors * tile.lanes * size * depth
    streamed = work.shared and panel > machine.l1 // 2
    total = 0.0
    for height, down in _heights(tile, work):
        for columns, across in _parts(width, tile.columns):
            vectors = vector_count(columns, tile.lanes) * tile.several
            step = _step(machine, height, vectors, work)
            if streamed:
                step = max(step, vectors * tile.lanes * size / _STREAM)
            if machine.vector_bits >= _WIDE and work.shared:
                step += (vectors + height) * _WIDE_LOAD + vectors * _WIDE_STREAM * streamed
            total += down * across * (step + _START / depth)
    return total * (work.blocks // tile.several)


def _heights(tile: Tile, work: Work) -> list[tuple[int, float]]:
    """``(rows, how many)`` of the tiles, from top to bottom."""
    if work.has_unknown_rows:
        lengths = _LENGTHS if work.likely_rows is None else (work.likely_rows,)
        return [part for length in lengths for part in _tiles_of_length(tile, length)]
    rows = work.likely_rows or _UNKNOWN if work.rows is None else work.rows
    high = work.likely_high or _UNKNOWN if work.high is None else work.high
    if tile.high > 1:
        return [(sets * rows, count) for sets, count in _parts(high, tile.high)]
    return [(size, count * high) for size, count in _parts(rows, tile.rows)]


def _tiles_of_length(tile: Tile, length: int) -> list[tuple[int, float]]:
    """``(rows, how many)`` of the tiles of ``_UNKNOWN`` pixels in rows of a length."""
    parts = tiles_of_extent(tile.rows, length)  # as lowering cuts them
    return [(rows, count * _UNKNOWN / length) for rows, count in parts]


def _parts(size: int, tile: int) -> list[tuple[int, int]]:
    """``(size, how many)`` of the whole tiles and of the tail."""
    whole, tail = divmod(size, tile)
    return [part for part in ((tile, whole), (tail, 1)) if part[0] and part[1]]


def _step(machine: Machine, rows: int, vectors: int, work: Work) -> float:
    products = rows * vectors
    beside = 0 if work.once else vectors
    loads = beside + (rows if work.shared else products)
    rate = _LOADS if machine.vector_registers >= _MANY_REGISTERS else _BROADCASTS
    return max(products * work.cost / machine.fma_ports, loads / rate, work.chain)


def even(size: int, most: int) -> int:
    """The size of the most even parts, of at most ``most`` elements, that something is cut into.

    >>> even(56, 30), even(7, 4)
    (28, 4)
    """
    return -(-size // -(-size // max(most, 1)))


def shared_out(size: int | None, most: int, cores: int) -> int:
    """How many rows, at most ``most``, a tile has so that the busiest core computes the fewest.

    Of several such numbers it is the largest. Rows that share no operand lose nothing in smaller
    tiles.

    >>> shared_out(9, 8, 2), shared_out(30, 8, 1)
    (5, 8)
    """
    if size is None:
        return most
    return min(range(1, most + 1), key=lambda rows: (_busiest(size, rows, cores), -rows))


def _busiest(size: int, rows: int, cores: int) -> int:
    """The rows of the core that has the most tiles."""
    tiles = -(-size // rows)
    return min(-(-tiles // cores) * rows, size)
