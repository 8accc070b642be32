"""Rows of rows as one axis of a tiled reduction: the pixels of an image for windows of one pixel.

A tile of pixels need not end where a row of the image does. Seven pixels in two vectors of 8 lanes
are more accumulators than 16 registers hold, and of seven a tile of five leaves two; of all 49
pixels only the last tile is cut off. In memory nothing moves (JoinPixels says the same to the graph
where channels are not in blocks).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from weft.backends.cpu.schedules.tiles import Work, fewest_cycles
from weft.dlight.nest import Access, Nest
from weft.ir.expr import IntImm, PrimExpr
from weft.target.machine import Machine
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_GAIN: Final = 0.97
"""The share of the cycles at most that one axis may take: what a row holds is plainer."""

Pair = tuple[Var, Var]
"""The axis that counts rows, and the one along a row."""


def join_rows(
    sch: Schedule, nest: Nest, result: BlockRV, pair: tuple[Var | None, Var | None], work: Work,
    machine: Machine,
) -> bool:  # fmt: skip
    """Make one axis of rows and what they hold, where tiles are better for it and memory allows.

    ``nest`` is a reduction into a local buffer, which ``result`` takes element by element; its
    axes ``pair`` are those that ``work`` calls ``high`` and ``rows``. Returns whether it did.
    """
    tall, row = pair
    if tall is None or row is None or work.rows is None or work.high is None:
        return False
    joined = replace(work, rows=work.rows * work.high, high=1)
    if fewest_cycles(machine, joined) > fewest_cycles(machine, work) * _GAIN:
        return False
    other = Nest(sch, result)
    own = (tall, row)
    its = _alike(nest, other, own)
    if its is None or not _can_join(nest, own) or not _can_join(other, its):
        return False
    stored = [nest.simplified(index) for index in nest.stores[0].indices]
    sch.transform_block_layout(result, _as_one([axis.var for axis in other.axes], its, work.rows))
    sch.transform_block_layout(nest.rv, _as_one([axis.var for axis in nest.axes], own, work.rows))
    sch.transform_layout(nest.rv, ("write", 0), _as_one(stored, own, work.rows))
    return True


def _alike(nest: Nest, other: Nest, pair: Pair) -> Pair | None:
    """The axes of a block that takes a result element by element; None if it has them otherwise."""
    mine, its = nest.result_axes(), other.result_axes()
    if mine is None or its is None or len(mine) != len(its):
        return None
    same = dict(zip(mine, its, strict=True))
    return same[pair[0]], same[pair[1]]


def _can_join(nest: Nest, pair: Pair) -> bool:
    """Whether whatever the two axes index lies in memory as if they were one."""
    stores = [
        Access(store.buffer, tuple([nest.simplified(index) for index in store.indices]))
        for store in nest.stores
    ]
    return all(_are_one(nest, access, pair) for access in (*nest.loads, *stores))


def _are_one(nest: Nest, access: Access, pair: Pair) -> bool:
    tall, row = pair
    if not access.uses(tall) and not access.uses(row):
        return True
    outer, place = access.position(tall), access.position(row)
    if outer is None or place is None or place != outer + 1:
        return False
    size = access.buffer.shape[place]
    return isinstance(size, IntImm) and size.value == nest.extent(row)


def _as_one(axes: Sequence[Any], pair: Pair, size: int) -> Callable[..., list[PrimExpr]]:
    """The index map that puts both axes where the first is."""
    tall, row = [next(i for i, axis in enumerate(axes) if axis is item) for item in pair]

    def joined(*place: Any) -> list[PrimExpr]:
        both = op.add(op.multiply(place[tall], size), place[row])
        return [both if i == tall else place[i] for i in range(len(place)) if i != row]

    return joined
