"""Reductions along the contiguous axis, and what is computed from them: sums, softmax, norms.

A result and the reductions that it needs are computed row by row, so that the row stays in cache;
rows run in parallel. A reduction accumulates in the lanes of vectors, which are combined at the end
of the row (VectorizeReduction). Short rows run in groups, and the lanes of all rows of a group are
combined at once (``fold_rows``).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.integer import equal
from weft.backends.cpu.schedules.elementwise import extent_of, run_in_parallel, vectorize_inside
from weft.backends.cpu.vectors.fold_rows import fold_limit
from weft.backends.cpu.vectors.vector_reduction import ROWS_TOGETHER, VECTOR_REDUCTION
from weft.dlight.decisions import decide
from weft.dlight.nest import Access, Nest, blocks_of, loops_of, product
from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_CHAINS: Final = 4
"""Vectors that a long reduction accumulates in, so that one addition need not wait for another."""
_LONG: Final = 16
"""Steps of each vector from which a reduction of pairs (the position and value of an argmax) uses
twice as many vectors: a comparison has more latency than an addition, but more vectors take longer
to combine at the end."""
_LEAST: Final = 4
"""The fewest rows of a group, and the fewest steps of its rows."""
_SHORT: Final = 128
"""The most steps of a short row, for which combining the lanes takes as long as all steps."""


def schedule(
    sch: Schedule,
    result: BlockRV,
    reductions: Sequence[BlockRV],
    others: Sequence[BlockRV],
    machine: Machine,
) -> bool:
    """Compute ``result`` row by row, with ``reductions`` and ``others``, which only it needs.

    ``others`` are spatial blocks. ``result`` may itself be a reduction. Returns False if there are
    no rows: the result does not read the reductions by its leading axes.
    """
    nest = Nest(sch, result)
    count = _leading(sch, nest, reductions)
    if count is None:
        return False
    summed = [*reductions, *([] if nest.is_spatial else [result])]
    groups = _groups_of(sch, nest, reductions, others, count, machine)
    group = decide(f"rows together of {nest.block.name_hint}", groups[0], lambda: groups)
    loops = sch.get_loops(result)
    depth = min(count, 1)
    if count:
        row, *inner = _row_loops(sch, nest, loops[:count], group.rows)
        depth += len(inner)
        for block in _consumers_first(sch, [*reductions, *others]):
            sch.compute_at(block, row)
            if not _is_computed_once(sch, block, row):
                return False
            if inner and not _fuse_rows(sch, block, group.rows):
                return False
        run_in_parallel(sch, [row], machine)
        if inner and nest.is_spatial and len(sch.get_loops(result)) == depth:
            sch.vectorize(inner[0])
    joined = _joined(sch, summed, others, depth) if count else []
    for block in summed:
        _accumulate(sch, block, depth, group)
    apart = [block for block in others if block not in joined]
    for block in [*apart, *([result] if nest.is_spatial else [])]:
        spatial = Nest(sch, block)
        vectorize_inside(sch, spatial, spatial.spatial[-1], depth, machine)
    return True


def _row_loops(sch: Schedule, nest: Nest, loops: Sequence[LoopRV], together: int) -> list[LoopRV]:
    """Fuse the loops over rows into one; split it if ``together`` rows run as a group.

    Returns the loop over rows, or the loop over groups and the loop over the rows of a group. The
    rows of a group lie along one axis in a spatial block.
    """
    if together == 1 or not nest.is_spatial:
        row = sch.fuse(*loops)
        return [row] if together == 1 else [*sch.split(row, [None, together])]
    last = [loop for loop in loops if extent_of(sch, loop) != 1][-1]
    others = [loop for loop in loops if loop is not last]
    outer, inner = sch.split(last, [None, together])
    sch.reorder(*others, outer, inner)
    return [sch.fuse(*others, outer), inner]


class _Group(NamedTuple):
    """How many rows run together, so that their lanes are combined at once."""

    rows: int
    lanes: int
    """The lanes of the vectors that accumulate."""
    is_unrolled: bool = False
    """Whether the loop over the rows of a group is unrolled."""


def _groups_of(
    sch: Schedule,
    nest: Nest,
    reductions: Sequence[BlockRV],
    others: Sequence[BlockRV],
    count: int,
    machine: Machine,
) -> list[_Group]:
    """How many short rows run together: the best number first, then fewer, then one.

    There are two cases. A single reduction (a sum of each row) combines the lanes of all rows of a
    group at the end. A result that waits for several reductions (a norm) runs rows together since
    the processor accumulates one row while it combines the lanes of another.
    """
    apart = _Group(1, machine.lanes())
    summed = [Nest(sch, block) for block in reductions] or [nest]
    around = [*summed, *[Nest(sch, block) for block in others]]
    rows = [size for axis in nest.spatial[:count] if (size := nest.extent(axis)) != 1]
    total, sizes = product(rows), [_steps_together(block) for block in summed]
    if not rows or total == 0 or not _LEAST <= min(sizes) <= max(sizes) <= _SHORT:
        return [apart]
    if total is None and (rows[-1] is None or not nest.is_spatial):
        return [apart]
    if any(_sizes(block)[: len(rows)] != rows for block in around) or not _all_read(nest, around):
        return [apart]
    bits = max([store.buffer.dtype.bits for block in summed for store in block.stores])
    most = min(machine.lanes(), fold_limit(bits), 1 << (min(sizes).bit_length() - 1))
    along = rows[-1]
    assert along is not None
    if len(around) == 1 and _sizes(nest) == rows:
        fits = along % most == 0 if nest.is_spatial else (total or 0) >= most
        return [*([_Group(rows, rows, True) for rows in _halves(most)] if fits else ()), apart]
    while most >= _LEAST and (along % most or (total or along) < most * machine.cores):
        most //= 2
    fits = nest.is_spatial and len(summed) > 1 and most >= _LEAST
    return [*([_Group(rows, machine.lanes()) for rows in _halves(most)] if fits else ()), apart]


def _halves(most: int) -> list[int]:
    """``most``, its half and so on, down to the fewest rows of a group; ``most`` in any case."""
    return [most, *(_halves(most // 2) if most // 2 >= _LEAST else ())]


def _steps_together(block: Nest) -> int:
    """The steps of a reduction whose axes are one run of memory; 0 if they are not."""
    steps = [axis for axis in block.reduced if block.extent(axis) != 1]
    size = product([block.extent(axis) for axis in steps])
    return size if size and steps and len(_contiguous(block, steps)) == len(steps) else 0


def _all_read(nest: Nest, around: Sequence[Nest]) -> bool:
    """Whether everything that ``around`` writes is read, and the result is one buffer.

    Then what is computed of a row is kept in memory, for each row of a group.
    """
    read = {load.buffer for block in (nest, *around) for load in block.loads}
    written = {store.buffer for block in around for store in block.stores if block is not nest}
    return written <= read and len({store.buffer for store in nest.stores}) == 1


def _sizes(block: Nest) -> list[int | None]:
    """The extents of a block's spatial axes, without those of extent 1."""
    return [size for axis in block.spatial if (size := block.extent(axis)) != 1]


def _fuse_rows(sch: Schedule, block: BlockRV, rows: int) -> bool:
    """Fuse the loops below the outermost one that run over ``rows`` rows; False: there are none."""
    loops = sch.get_loops(block)[1:]
    sizes = [extent_of(sch, loop) for loop in loops]
    counts = [product(sizes[:at]) for at in range(1, len(loops) + 1)]
    if rows not in counts:
        return False
    if counts.index(rows):
        sch.fuse(*loops[: counts.index(rows) + 1])
    return True


def _joined(
    sch: Schedule, summed: Sequence[BlockRV], others: Sequence[BlockRV], depth: int
) -> list[BlockRV]:
    """Accumulate sums in the loops that compute what they add, as the powers of a softmax.

    Returns the blocks whose loops now hold sums.
    """
    joined = []
    for block in summed:
        nest = Nest(sch, block)
        producers = [other for other in others if _is_all_that_is_read(sch, other, nest)]
        if len(producers) != 1 or producers[0] in joined:
            continue
        loops = sch.get_loops(producers[0])
        if len(loops) != depth + 1 or len(loops_of(sch, nest, depth)) != 1:
            continue
        if not decide(f"joining of {nest.block.name_hint}", True, lambda: [False]):
            continue
        sch.reverse_compute_at(block, loops[-1])
        joined.append(producers[0])
    return joined


def _is_all_that_is_read(sch: Schedule, block: BlockRV, reader: Nest) -> bool:
    """Whether ``reader`` reads only what ``block`` writes, element by element."""
    written = Nest(sch, block).stores[0].buffer
    axes = [axis.var for axis in reader.axes if reader.extent(axis.var) != 1]
    return bool(reader.loads) and all(
        load.buffer is written
        and [index for index in load.indices if not op.is_const_int(index, 0)] == axes
        for load in reader.loads
    )


def _is_computed_once(sch: Schedule, block: BlockRV, row: LoopRV) -> bool:
    """Whether all rows together compute each instance of a block once, none of them twice."""
    nest = Nest(sch, block)
    inside = [sch.get(loop).extent for loop in sch.get_loops(block)[1:]]
    whole = [axis.dom.extent for axis in nest.axes if axis.dom is not None]
    extents = [sch.get(row).extent, *inside]
    return equal(Analyzer(), _product(extents), _product(whole))


def _product(extents: Sequence[PrimExpr]) -> PrimExpr:
    return functools.reduce(op.multiply, extents, op.const(1, "int64"))


def _leading(sch: Schedule, nest: Nest, reductions: Sequence[BlockRV]) -> int | None:
    """How many leading loops of the result run over rows; None if it has no rows.

    If the result reads reductions of everything, its leading axes of extent 1 count as rows.
    """
    if not nest.is_spatial:
        return len(nest.spatial) if nest.reduced else None
    written = {region.buffer for block in reductions for region in Nest(sch, block).block.writes}
    used: set[Var] = set()
    for load in nest.loads:
        if load.buffer in written:
            used |= {var for index in load.indices for var in collect(index, Var)}
    axes = [axis.var for axis in nest.axes]
    ones = [nest.extent(axis) == 1 for axis in axes]
    alone = ones.index(False) if False in ones else 0
    count = max([place for place, axis in enumerate(axes, 1) if axis in used], default=alone)
    if any(axis not in used and nest.extent(axis) != 1 for axis in axes[:count]):
        return None
    return count if axes else None


def _consumers_first(sch: Schedule, blocks: Sequence[BlockRV]) -> list[BlockRV]:
    """The blocks in reverse order of the program: each comes before those that it reads."""
    known = {sch.get(block): block for block in blocks}
    listed = [sch.get(block) for block in blocks_of(sch)]
    return [known[block] for block in reversed(listed) if block in known]


def _accumulate(sch: Schedule, block: BlockRV, depth: int, group: _Group) -> None:
    """Let a reduction accumulate in the lanes of vectors if what it reads is contiguous."""
    nest = Nest(sch, block)
    loops = loops_of(sch, nest, depth)
    steps = [axis for axis in nest.reduced if axis in loops]
    if not steps:
        return
    flat = _contiguous(nest, steps)
    sch.reorder(*[loops[axis] for axis in steps])
    first = loops[steps[0]]
    inner = sch.fuse(*[loops[axis] for axis in flat]) if len(flat) > 1 else loops[steps[-1]]
    sch.decompose_reduction(block, inner if len(flat) == len(steps) > 1 else first)
    if flat:
        shapes = _vectors(extent_of(sch, inner), len(nest.stores), group.lanes)
        shape = decide(f"vectors of {nest.block.name_hint}", shapes[0], lambda: shapes)
        if shape[0] > 1:
            sch.annotate(inner, VECTOR_REDUCTION, shape)
    if group.rows > 1:
        row = sch.get_loops(block)[1]
        sch.annotate(row, ROWS_TOGETHER, 1)
        if group.is_unrolled:
            sch.unroll(row)


def _contiguous(nest: Nest, steps: Sequence[Var]) -> list[Var]:
    """The last axes of a reduction that together are one run of memory; none if the last is not."""
    using = [load for load in nest.loads if load.uses(steps[-1])]
    if not using or any(load.step(steps[-1]) not in (0, 1) for load in using):
        return []
    axes, size = [steps[-1]], nest.extent(steps[-1])
    for axis in reversed(steps[:-1]):
        is_next = all(
            load.step(axis) == size if size is not None else _is_around(nest, load, axis, axes[0])
            for load in using
        )
        if not is_next:
            break
        if any(load.uses(axis) for load in nest.loads if load not in using):
            break
        axes.insert(0, axis)
        size = product([size, nest.extent(axis)])
    return axes


def _is_around(nest: Nest, load: Access, outer: Var, inner: Var) -> bool:
    """Whether an axis goes on where another one of unknown extent ends: ``x[.., outer, inner]``."""
    place, behind = load.position(outer), load.position(inner)
    extent = next(axis.dom.extent for axis in nest.axes if axis.var is inner and axis.dom)
    if load.buffer.strides or place is None or behind != place + 1:
        return False
    return equal(Analyzer(), load.buffer.shape[behind], extent)


def _vectors(size: int | None, values: int, lanes: int) -> list[list[int]]:
    """``[lanes of a vector, vectors side by side]`` for a reduction of ``size`` steps.

    ``values`` is how many values are accumulated at once: two for an argmax. Short reductions have
    fewer lanes or vectors, down to ``[1, ..]``, which stands for scalars. The best comes first.
    """
    chains = _CHAINS
    while size is not None and lanes > 1 and lanes > size:
        lanes //= 2
    while size is not None and chains > 1 and 2 * chains * lanes > size:
        chains //= 2
    if size is not None and values > 1 and size >= 2 * _CHAINS * lanes * _LONG:
        chains = 2 * _CHAINS
    others = [count for count in (1, 2, 4, 8) if size is None or count * lanes <= size]
    return [[lanes, chains], *[[lanes, count] for count in others if lanes > 1]]
