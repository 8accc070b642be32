"""Sums of rows (``y[j] = sum of x[k, j] over k``) that are longer than the registers can hold.

Such a kernel reads each number once, so memory limits it, and memory is fastest along long runs. A
tile as narrow as the registers would read a piece of a page, go on to the next row, and come back
to the page later. So a tile of sums is as wide as an eighth of the first cache, where the sums stay
while rows stream past. Up to four rows are added at a time, in registers, so that each sum is
loaded and stored once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.backends.cpu.schedules.elementwise import extent_of
from weft.backends.cpu.schedules.tiles import Work, even, most_sums
from weft.target.machine import Machine
from weft.tir.schedule.random_variable import LoopRV
from weft.tir.schedule.schedule import Schedule

_SHARE: Final = 8
"""The sums take this part of the first cache, an eighth; the rest is for what streams past."""
_TOGETHER: Final = 4
"""At most so many rows are added at a time: then sums are half of the memory traffic or less."""
_BYTES: Final = 4
"""Bytes of a sum."""


def long_row(machine: Machine, work: Work) -> int | None:
    """How many columns a tile of sums in the cache has; None if registers hold a core's share.

    >>> machine = Machine(2, 512, 32, 2, 32 << 10, 1 << 20, 8 << 20)
    >>> [long_row(machine, Work(1, size, depth=64, once=True)) for size in (960, 1024, 3000)]
    [None, 512, 752]
    """
    if not work.once or work.columns is None or work.blocks > 1:
        return None
    lanes = machine.lanes()
    share = -(-work.columns // machine.cores)
    if share <= most_sums(machine) * lanes:
        return None
    width = even(share, machine.l1 // _SHARE // _BYTES)
    return min(-(-width // lanes) * lanes, work.columns)


def exceeds_registers(sch: Schedule, tail: Sequence[LoopRV], machine: Machine) -> bool:
    """Whether a tile, given by its loops, is a single row with more sums than registers hold."""
    sizes = [extent_of(sch, loop) for loop in tail]
    is_row = all(size == 1 for size in sizes[:-1])
    columns = sizes[-1] if sizes and is_row else None
    return columns is not None and columns > most_sums(machine) * machine.lanes()


def add_together(sch: Schedule, step: LoopRV, column: LoopRV, machine: Machine) -> LoopRV:
    """Add a few rows at a time to the sums, one vector of sums after the other.

    ``step`` is the loop over rows and ``column`` the loop along the sums. Returns the loop over
    groups of rows.
    """
    size = extent_of(sch, step) or 1  # a symbolic number of rows: one at a time
    some = max([count for count in range(1, _TOGETHER + 1) if size % count == 0])
    rows, few = sch.split(step, [None, some])
    vector, lane = sch.split(column, [None, machine.lanes()])
    sch.reorder(vector, few, lane)
    sch.unroll(few)
    sch.vectorize(lane)
    return rows
