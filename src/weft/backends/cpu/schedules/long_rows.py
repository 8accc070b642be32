"""Sums of rows that are longer than registers hold: whole rows at once, their sum in the cache.

Each number is read once, so memory is what takes the time, and memory is fast along runs: the sums
of a part of the columns that registers hold would read a piece of a page, skip the rest of it and
come back. A few rows are added in registers to what the first cache holds, so that it is read and
written once for all of them.
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
"""The sums take so small a part of the first cache; the rest is for what streams past."""
_TOGETHER: Final = 4
"""Rows at a time: what is read and written of the sums is less than half of what is read then."""
_BYTES: Final = 4


def long_row(machine: Machine, work: Work) -> int | None:
    """The columns of a tile of sums in the cache, shared by the cores; None if registers do.

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
    """Whether the loops of a tile are one row of more sums than registers hold."""
    sizes = [extent_of(sch, loop) for loop in tail]
    is_row = all(size == 1 for size in sizes[:-1])
    columns = sizes[-1] if sizes and is_row else None
    return columns is not None and columns > most_sums(machine) * machine.lanes()


def add_together(sch: Schedule, step: LoopRV, column: LoopRV, machine: Machine) -> LoopRV:
    """Add a few rows, of which ``step`` is the loop, to the sums of one vector after the other.

    Returns the loop over so many rows.
    """
    size = extent_of(sch, step) or 1  # of an unknown number, one at a time
    some = max([count for count in range(1, _TOGETHER + 1) if size % count == 0])
    rows, few = sch.split(step, [None, some])
    vector, lane = sch.split(column, [None, machine.lanes()])
    sch.reorder(vector, few, lane)
    sch.unroll(few)
    sch.vectorize(lane)
    return rows
