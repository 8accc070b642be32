"""Joins the rows of an image and the pixels of a row into one axis of a tiled reduction.

That suits windows of one pixel (1x1 convolutions), whose tiles need not end where a row of the
image ends. Take an image of 7x7 pixels and two vectors of channels: 16 registers hold the
accumulators of six pixels at most, so each row of seven leaves a small tile that keeps few
registers busy. Of all 49 pixels only the last tile is cut off. No data moves, since the rows
follow each other in memory already. (JoinPixels does the same in the graph, for channels that are
not in blocks.) Rows of symbolic length, or of a symbolic number, are joined, too, since they may be
short or few: a batch of sentences becomes a long one. Lowering computes where a pixel lies without
dividing by a symbolic length (``vectors.join_axes``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from weft.backends.cpu.schedules.tiles import Work, fewest_cycles
from weft.dlight.nest import Access, Nest
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.structural import structural_equal
from weft.target.machine import Machine
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_GAIN: Final = 0.97
"""The axes are joined if that takes at most this share of the cycles: two axes are plainer code."""

Pair = tuple[Var, Var]
"""The axis that counts the rows of an image, and the axis along a row."""


def join_rows(
    sch: Schedule,
    nest: Nest,
    result: BlockRV,
    pair: tuple[Var | None, Var | None],
    work: Work,
    machine: Machine,
) -> bool:
    """Join the two axes ``pair`` of a reduction if tiles are better for it and memory allows it.

    ``nest`` is a reduction into a local buffer, which ``result`` reads element by element. ``pair``
    are the axes that ``work`` calls ``high`` and ``rows``; None stands for an axis that is not
    there. Returns whether the axes were joined, in both blocks.
    """
    tall, row = pair
    if tall is None or row is None or work.rows is None or work.high is None:
        return False
    joined = replace(work, rows=work.rows * work.high, high=1)
    if fewest_cycles(machine, joined) > fewest_cycles(machine, work) * _GAIN:
        return False
    return _join(sch, nest, result, (tall, row))


def join_symbolic_rows(
    sch: Schedule, nest: Nest, result: BlockRV, pair: tuple[Var | None, Var | None]
) -> bool:
    """Join the two axes ``pair`` of a reduction if one of them is of symbolic length.

    ``nest`` and ``result`` are those of ``join_rows``. The number of all pixels must be one of 64
    bits. Returns whether the axes were joined, in both blocks.
    """
    tall, row = pair
    if tall is None or row is None or None not in (nest.extent(tall), nest.extent(row)):
        return False
    axes = (*nest.axes, *Nest(sch, result).axes)
    if any(axis.var.dtype != "int64" for axis in axes):
        return False
    return _join(sch, nest, result, (tall, row))


def _join(sch: Schedule, nest: Nest, result: BlockRV, own: Pair) -> bool:
    other = Nest(sch, result)
    others = _corresponding(nest, other, own)
    if others is None or not _can_join(nest, own) or not _can_join(other, others):
        return False
    stored = [nest.simplified(index) for index in nest.stores[0].indices]
    outer_axes, size = [axis.var for axis in other.axes], _extent(nest, own[1])
    sch.transform_block_layout(result, _as_one(outer_axes, others, size))
    sch.transform_block_layout(nest.rv, _as_one([axis.var for axis in nest.axes], own, size))
    sch.transform_layout(nest.rv, ("write", 0), _as_one(stored, own, size))
    return True


def _extent(nest: Nest, axis: Var) -> PrimExpr:
    """The extent of an axis, which may be symbolic."""
    [domain] = [item.dom for item in nest.axes if item.var is axis]
    assert domain is not None
    return domain.extent


def _corresponding(nest: Nest, other: Nest, pair: Pair) -> Pair | None:
    """The axes of ``other`` that index its result where ``pair`` indexes the result of ``nest``.

    None if the results have different ranks, or are not indexed by plain axes.
    """
    axes, of_other = nest.result_axes(), other.result_axes()
    if axes is None or of_other is None or len(axes) != len(of_other):
        return None
    same = dict(zip(axes, of_other, strict=True))
    return same[pair[0]], same[pair[1]]


def _can_join(nest: Nest, pair: Pair) -> bool:
    """Whether every access that uses the two axes could use one joined axis instead."""
    stores = [
        Access(store.buffer, tuple([nest.simplified(index) for index in store.indices]))
        for store in nest.stores
    ]
    return all(_are_adjacent(nest, access, pair) for access in (*nest.loads, *stores))


def _are_adjacent(nest: Nest, access: Access, pair: Pair) -> bool:
    """Whether an access uses neither axis, or both as ``[.., tall, row, ..]`` with whole rows."""
    tall, row = pair
    if not access.uses(tall) and not access.uses(row):
        return True
    outer, place = access.position(tall), access.position(row)
    if outer is None or place is None or place != outer + 1:
        return False
    size, extent = access.buffer.shape[place], _extent(nest, row)
    if isinstance(size, IntImm) and isinstance(extent, IntImm):
        return size.value == extent.value
    return structural_equal(size, extent)


def _as_one(axes: Sequence[Any], pair: Pair, size: PrimExpr) -> Callable[..., list[PrimExpr]]:
    """The index map ``(.., tall, .., row, ..) -> (.., tall * size + row, ..)``."""
    tall, row = [next(i for i, axis in enumerate(axes) if axis is item) for item in pair]

    def joined(*place: Any) -> list[PrimExpr]:
        both = op.add(op.multiply(place[tall], size), place[row])
        return [both if i == tall else place[i] for i in range(len(place)) if i != row]

    return joined
