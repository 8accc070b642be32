"""Running sums, products and extremes along an axis, of several rows side by side.

The steps of one row wait for each other; those of different rows do not. So rows are computed side
by side, in one of three ways. Rows that lie next to each other in memory (a running sum along the
first axis) are the lanes of vectors. Rows that run along memory (along the last axis) lie apart: a
tile of as many steps as rows is transposed in registers on its way in and out (TransposeTile), so
that they too become lanes. Rows that no such tile fits are scalars, computed in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.backends.cpu.schedules.elementwise import extent_of, run_in_parallel
from weft.backends.cpu.schedules.parallel_depth import parallel_depth
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE
from weft.dlight.nest import Access, Nest, loops_of
from weft.ir.expr import PrimExpr
from weft.target.machine import Machine
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_VECTORS: Final = 8
"""Vectors of running values side by side: while an addition to one finishes, others start."""
_CHAINS: Final = 8
"""Rows that are computed side by side as scalars."""
_BYTES: Final = 32
"""Bytes of a row of a tile that is transposed, counted in the widest elements of the block."""
_LEAST: Final = 4
_MOST: Final = 16
"""The fewest and the most rows, and steps, of a tile that is transposed."""


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a block with one ordered axis (``T.axis.scan``); False for any other block."""
    nest = Nest(sch, block)
    loops = loops_of(sch, nest) if nest.is_scan else {}
    if set(loops) != {axis.var for axis in nest.axes}:
        return False
    program = _across_memory if _runs_along(nest, nest.spatial[-1:]) else _along_memory
    return program(sch, nest, loops, machine)


def _results(nest: Nest) -> list[Access]:
    """The stores of running values: those that the ordered axis indexes."""
    [step] = nest.ordered
    stores = [
        Access(store.buffer, tuple([nest.simplified(index) for index in store.indices]))
        for store in nest.stores
    ]
    return [access for access in stores if access.uses(step)]


def _runs_along(nest: Nest, axes: Sequence[Var]) -> bool:
    """Whether along one of ``axes`` the next value is the next element of every result."""
    return any(all(access.step(axis) == 1 for access in _results(nest)) for axis in axes)


def _across_memory(sch: Schedule, nest: Nest, loops: dict[Var, LoopRV], machine: Machine) -> bool:
    """Make rows that lie next to each other in memory the lanes of vectors."""
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
    _parallelize_and_init(sch, nest, outer, loops[step], machine)
    return True


def _along_memory(sch: Schedule, nest: Nest, loops: dict[Var, LoopRV], machine: Machine) -> bool:
    """Compute rows that run along memory side by side, in transposed tiles or as scalars."""
    [step] = nest.ordered
    row = _side_by_side(nest)
    outer = [loops[axis] for axis in nest.spatial if axis is not row]
    if row is None:
        _parallelize_and_init(sch, nest, outer, loops[step], machine)
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
    _parallelize_and_init(sch, nest, outer, steps, machine)
    return True


def _transpose_all(sch: Schedule, nest: Nest, row: Var, tile: LoopRV) -> None:
    """Copy what is read along rows, and all results, tile by tile, with rows innermost."""
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
    """The index map that moves rows to the end: ``(.., row, step) -> (.., step, row)``."""
    place = access.position(row)
    assert place is not None

    def moved(*indices: Any) -> list[PrimExpr]:
        return [*indices[:place], *indices[place + 1 :], indices[place]]

    return moved


def _transpose(sch: Schedule, copy: BlockRV, *, row_first: bool) -> None:
    """Mark a copy's loops over rows and steps for TransposeTile; the inner one becomes lanes.

    ``row_first`` says whether the loop over rows is the outer one.
    """
    loops = sch.get_loops(copy)[-2:]
    if not row_first:
        loops = loops[::-1]
        sch.reorder(*loops)
    sch.annotate(loops[0], TRANSPOSE, 1)
    sch.vectorize(loops[1])


def _side_by_side(nest: Nest) -> Var | None:
    """The axis whose rows are computed side by side; None if there is only one row.

    It is the last axis with at least four rows; if none has as many, the longest one.
    """
    sizes = {axis: nest.extent(axis) or _MOST for axis in reversed(nest.spatial)}
    long = [axis for axis, size in sizes.items() if size >= _LEAST]
    some = [axis for axis, size in sizes.items() if 1 < size == max(sizes.values())]
    return next(iter((*long, *some)), None)


def _tile(nest: Nest, row: Var) -> int | None:
    """How many rows, and steps, a transposed tile has; None where tiles are not worth it."""
    [step] = nest.ordered
    results = _results(nest)
    kinds = [access.buffer.dtype for access in (*nest.loads, *results)]
    extents = [nest.extent(axis) or _MOST for axis in (row, step)]
    if any(kind.is_bool for kind in kinds) or min(extents) < _LEAST:
        return None
    if not _runs_along(nest, [step]) or any(result.position(row) is None for result in results):
        return None
    return max(_LEAST, min(_MOST, _BYTES * 8 // max([kind.bits for kind in kinds])))


def _parallelize_and_init(
    sch: Schedule, nest: Nest, outer: Sequence[LoopRV], steps: LoopRV, machine: Machine
) -> None:
    """Run the outer loops in parallel and store the initial values just before the steps."""
    depth = parallel_depth(sch, outer, machine)
    if depth:
        run_in_parallel(sch, outer[:depth], machine)
    sch.decompose_reduction(nest.rv, steps)
