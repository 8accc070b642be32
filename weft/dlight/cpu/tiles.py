"""How large a register tile is, by counting: the cost model of tiled reductions on a CPU.

A tile holds ``rows`` times ``vectors`` accumulators in registers. Each step of the reduction loads
``vectors`` vectors and ``rows`` broadcast numbers and does a multiply-add for each accumulator. A
step takes as many cycles as its busiest unit: the multiply-add ports, two load ports, or the
latency of one accumulator's chain (Goto and van de Geijn, "Anatomy of High-Performance Matrix
Multiplication", 2008; Low et al., "Analytical Modeling Is Enough for High-Performance BLIS", 2016).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from weft.target.machine import Machine

_LATENCY: Final = 4
"""Cycles from a multiply-add to the next one on its result, on processors since 2015."""
_LOADS: Final = 2
"""Vectors that can be loaded in a cycle."""
_UNKNOWN: Final = 1 << 10
"""What a symbolic extent counts as."""
_SPARE: Final = 1
"""Registers for a broadcast number."""


@dataclass(frozen=True)
class Tile:
    """Rows, and vectors of ``lanes`` elements, of a register tile."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """The width in elements."""
        return self.vectors * self.lanes


@functools.lru_cache(maxsize=1024)
def best_tile(machine: Machine, rows: int | None, columns: int | None, shared: bool) -> Tile:
    """The tile that covers ``rows`` times ``columns`` (None: symbolic) in the fewest cycles.

    ``shared`` says that all rows multiply one vector (a matrix product); else each row loads a
    vector of its own (a depthwise convolution), and more accumulators than hide the latency of
    one would only make the code longer.

    >>> best_tile(Machine(1, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20), 768, 768, True)
    Tile(rows=4, vectors=3, lanes=8)
    """
    lanes = machine.lanes()
    height = _UNKNOWN if rows is None else rows
    width = _UNKNOWN if columns is None else columns
    while lanes > 1 and lanes // 2 >= width:
        lanes //= 2
    candidates = [
        Tile(r, v, lanes)
        for v in (1, 2, 3, 4)
        if v == 1 or (v - 1) * lanes < width
        for r in range(1, machine.vector_registers)
        if r <= most_rows(machine, v) and r <= height
        and (shared or r * v <= _LATENCY * machine.fma_ports or r == 1)
    ]  # fmt: skip
    return min(
        candidates,
        key=lambda tile: (
            round(_cycles(machine, tile, height, width, shared), 3),
            (tile.rows + tile.vectors) / (tile.rows * tile.vectors),
        ),
    )


def most_rows(machine: Machine, vectors: int) -> int:
    """The rows of a tile of so many vectors that the registers can hold, operands beside them.

    >>> most_rows(Machine(1, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20), 2)
    6
    """
    return max((machine.vector_registers - vectors - _SPARE) // vectors, 0)


def _cycles(machine: Machine, tile: Tile, rows: int, columns: int, shared: bool) -> float:
    """Cycles of one step of the reduction over the whole result."""
    total = 0.0
    for height, down in _parts(rows, tile.rows):
        for width, across in _parts(columns, tile.columns):
            vectors = _vectors(width, tile.lanes)
            total += down * across * _step(machine, height, vectors, shared)
    return total


def _parts(size: int, tile: int) -> list[tuple[int, int]]:
    """``(size, how many)`` of the whole tiles and of the tail."""
    whole, tail = divmod(size, tile)
    return [part for part in ((tile, whole), (tail, 1)) if part[0] and part[1]]


def _vectors(width: int, lanes: int) -> int:
    """Vectors that hold ``width`` elements; a tail is taken apart into powers of two."""
    whole, tail = divmod(width, lanes)
    return whole + tail.bit_count()


def _step(machine: Machine, rows: int, vectors: int, shared: bool) -> float:
    products = rows * vectors
    loads = vectors + rows if shared else vectors + products
    return max(products / machine.fma_ports, loads / _LOADS, _LATENCY)
