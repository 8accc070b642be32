"""Values that run along an axis: running sums, products and extremes, several rows side by side.

One row's steps wait for each other, those of several rows do not. Where rows are next to each other
in memory, they are the lanes of vectors. Where each row runs along memory, the lanes are rows that
lie apart: a tile of as many steps as rows is transposed in registers on its way in, and on its way
out (TransposeTile). Rows that no such tile fits run side by side one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.backends.cpu.schedules.elementwise import extent_of, run_in_parallel
from weft.backends.cpu.schedules.together import together
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE
from weft.dlight.nest import Access, Nest, loops_of
from weft.ir.expr import PrimExpr
from weft.target.machine import Machine
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_VECTORS: Final = 8
"""Vectors of running values of rows next to each other: additions of one wait for each other."""
_CHAINS: Final = 8
"""Rows that run side by side one by one."""
_BYTES: Final = 32
"""Bytes of a row of a tile that is transposed, of the widest elements."""
_LEAST: Final = 4
_MOST: Final = 16
"""Rows, and steps, of a tile."""


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a block with one ordered axis; False if it is none."""
    nest = Nest(sch, block)
    loops = loops_of(sch, nest) if nest.is_scan else {}
    if set(loops) != {axis.var for axis in nest.axes}:
        return False
    program = _across_memory if _runs_along(nest, nest.spatial[-1:]) else _along_memory
    return program(sch, nest, loops, machine)


def _results(nest: Nest) -> list[Access]:
    """Where values are stored on the way: what an ordered axis indexes."""
    [step] = nest.ordered
    stores = [
        Access(store.buffer, tuple([nest.simplified(index) for index in store.indices]))
        for store in nest.stores
    ]
    return [access for access in stores if access.uses(step)]


def _runs_along(nest: Nest, axes: Sequence[Var]) -> bool:
    """Whether the next value of an axis is the next element of all results."""
    return any(all(access.step(axis) == 1 for access in _results(nest)) for axis in axes)


def _across_memory(
    sch: Schedule, nest: Nest, loops: dict[Var, LoopRV], machine: Machine
) -> bool:
    """Rows next to each other in memory are the lanes of vectors."""
    [step] = nest.ordered
    *others, last = nest.spatial
    widest = max([store.buffer.dtype.bits for store in nest.stores])
    lanes = machine.lanes(widest) * _VECTORS
    outer, lane = [loops[axis] for axis in others], loops[last]
    size = extent_of(sch, lane)
    if size is None or size > lanes:
        around, lane = sch.split(lane, [None, lanes])
        outer.append(around)
    sch.reorder(*outer, loops[step], lane)
    sch.vectorize(lane)
    _start(sch, nest, outer, loops[step], machine)
    return True


def _along_memory(
    sch: Schedule, nest: Nest, loops: dict[Var, LoopRV], machine: Machine
) -> bool:
    """Rows that lie apart run side by side: in tiles that are transposed, or one by one."""
    [step] = nest.ordered
    row = _side_by_side(nest)
    outer = [loops[axis] for axis in nest.spatial if axis is not row]
    if row is None:
        _start(sch, nest, outer, loops[step], machine)
        return True
    size = _tile(nest, row)
    around, lane = sch.split(loops[row], [None, size or _CHAINS])
    outer.append(around)
    steps = loops[step]
    if size is None:
        sch.reorder(*outer, steps, lane)
        sch.unroll(lane)
    else:
        steps, inner = sch.split(steps, [None, size])
        sch.reorder(*outer, steps, inner, lane)
        sch.vectorize(lane)
        _transpose_all(sch, nest, row, steps)
    _start(sch, nest, outer, steps, machine)
    return True


def _transpose_all(sch: Schedule, nest: Nest, row: Var, tile: LoopRV) -> None:
    """Copy what is read along rows, and all results, in tiles whose rows are next to each other."""
    [step] = nest.ordered
    for load in {load.buffer: load for load in nest.loads}.values():
        if load.step(step) == 1 and load.position(row) is not None:
            copy = sch.cache_read(nest.rv, load.buffer, "local")
            sch.transform_layout(copy, ("write", 0), _rows_last(load, row))
            sch.compute_at(copy, tile)
            _transpose(sch, copy, row_first=False)
    for result in _results(nest):
        copy = sch.cache_write(nest.rv, result.buffer, "local")
        sch.transform_layout(copy, ("read", 0), _rows_last(result, row))
        sch.reverse_compute_at(copy, tile)
        _transpose(sch, copy, row_first=True)


def _rows_last(access: Access, row: Var) -> Callable[..., list[PrimExpr]]:
    """The layout in which rows are next to each other."""
    place = access.position(row)
    assert place is not None

    def moved(*indices: Any) -> list[PrimExpr]:
        return [*indices[:place], *indices[place + 1 :], indices[place]]

    return moved


def _transpose(sch: Schedule, copy: BlockRV, *, row_first: bool) -> None:
    """Mark the loops of a copy over rows and steps, the inner one of which is lanes."""
    loops = sch.get_loops(copy)[-2:]
    if not row_first:
        loops = loops[::-1]
        sch.reorder(*loops)
    sch.annotate(loops[0], TRANSPOSE, 1)
    sch.vectorize(loops[1])


def _side_by_side(nest: Nest) -> Var | None:
    """The axis whose rows run side by side: the last one that is long enough, else the longest."""
    sizes = {axis: nest.extent(axis) or _MOST for axis in reversed(nest.spatial)}
    long = [axis for axis, size in sizes.items() if size >= _LEAST]
    some = [axis for axis, size in sizes.items() if 1 < size == max(sizes.values())]
    return next(iter((*long, *some)), None)


def _tile(nest: Nest, row: Var) -> int | None:
    """The rows, and steps, of a tile that is transposed; None where tiles are not worth it."""
    [step] = nest.ordered
    results = _results(nest)
    kinds = [access.buffer.dtype for access in (*nest.loads, *results)]
    extents = [nest.extent(axis) or _MOST for axis in (row, step)]
    if any(kind.is_bool for kind in kinds) or min(extents) < _LEAST:
        return None
    if not _runs_along(nest, [step]) or any(result.position(row) is None for result in results):
        return None
    return max(_LEAST, min(_MOST, _BYTES * 8 // max([kind.bits for kind in kinds])))


def _start(
    sch: Schedule, nest: Nest, outer: Sequence[LoopRV], steps: LoopRV, machine: Machine
) -> None:
    """Run the outer loops in parallel, and start the values just before the steps."""
    depth = together(sch, outer, machine)
    if depth:
        run_in_parallel(sch, outer[:depth], machine)
    sch.decompose_reduction(nest.rv, steps)
