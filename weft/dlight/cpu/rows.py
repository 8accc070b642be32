"""Reductions along the contiguous axis, and what is computed from them: sums, softmax, norms.

A result and the reductions that it needs run row by row: all of them stay in cache, and rows run
in parallel. A reduction accumulates in a vector, whose lanes are added at the end (Suriana,
Adams and Kamil, "Parallel Associative Reductions in Halide", 2017: rfactor).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.dlight.cpu.elementwise import extent_of, run_in_parallel, vectorize_inside
from weft.dlight.nest import Nest, blocks_of, loops_of
from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.tir import op
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_CHAINS: Final = 4
"""Vectors that a long reduction accumulates in, so that one addition need not wait for another."""
_LONG: Final = 64
"""Vectors from which on that gains more than adding up four times the lanes costs."""


def schedule(
    sch: Schedule, result: BlockRV, reductions: Sequence[BlockRV], others: Sequence[BlockRV],
    machine: Machine,
) -> bool:  # fmt: skip
    """Run ``result`` and the blocks that only it needs row by row.

    ``others`` are spatial blocks. ``result`` may be a reduction itself. False if there are no
    rows: the reductions do not agree on leading axes of the result.
    """
    nest = Nest(sch, result)
    count = _leading(sch, nest, reductions)
    if count is None:
        return False
    summed = [*reductions, *([] if nest.is_spatial else [result])]
    partial = [_partial(sch, block, machine) for block in summed]  # while each has its own nest
    loops = sch.get_loops(result)
    depth = min(count, 1)
    if count:
        row = sch.fuse(*loops[:count])
        inside = [*reductions, *others, *[block for block in partial if block is not None]]
        for block in _consumers_first(sch, inside):
            sch.compute_at(block, row)
            if not _is_computed_once(sch, block, row):
                return False
        run_in_parallel(sch, [row], machine)  # refused where two rows would write one place
    for lanes in partial:
        if lanes is not None:
            _accumulate(sch, lanes, depth)
    for block in [*others, *([result] if nest.is_spatial else [])]:
        spatial = Nest(sch, block)
        vectorize_inside(sch, spatial, spatial.spatial[-1], depth, machine)
    return True


def _is_computed_once(sch: Schedule, block: BlockRV, row: LoopRV) -> bool:
    """Whether the rows share the work of a block: none computes what another one does."""
    nest = Nest(sch, block)
    inside = [sch.get(loop).extent for loop in sch.get_loops(block)[1:]]
    whole = [axis.dom.extent for axis in nest.axes if axis.dom is not None]
    extents = [sch.get(row).extent, *inside]
    return Analyzer().can_prove_equal(_product(extents), _product(whole))


def _product(extents: Sequence[PrimExpr]) -> PrimExpr:
    return functools.reduce(op.multiply, extents, op.const(1, "int64"))


def _leading(sch: Schedule, nest: Nest, reductions: Sequence[BlockRV]) -> int | None:
    """How many leading loops of the result are rows."""
    if not nest.is_spatial:
        return len(nest.spatial) if nest.reduced else None
    written = {
        region.buffer for block in reductions for region in Nest(sch, block).block.writes
    }
    used: set[Var] = set()
    for load in nest.loads:
        if load.buffer in written:
            used |= {var for index in load.indices for var in collect(index, Var)}
    axes = [axis.var for axis in nest.axes]
    count = max([place for place, axis in enumerate(axes, 1) if axis in used], default=0)
    if any(axis not in used and nest.extent(axis) != 1 for axis in axes[:count]):
        return None
    return count if count < len(axes) else None


def _consumers_first(sch: Schedule, blocks: Sequence[BlockRV]) -> list[BlockRV]:
    """The blocks in an order in which each comes before what it reads."""
    known = {sch.get(block): block for block in blocks}
    listed = [sch.get(block) for block in blocks_of(sch)]
    return [known[block] for block in reversed(listed) if block in known]


def _partial(sch: Schedule, block: BlockRV, machine: Machine) -> BlockRV | None:
    """Let each lane of a few vectors accumulate its share; None where that is too short."""
    nest = Nest(sch, block)
    loop = loops_of(sch, nest).get(nest.reduced[-1])
    if loop is None:
        return None
    size, lanes = extent_of(sch, loop), machine.lanes()
    while size is not None and lanes > 1 and lanes > size // 2:
        lanes //= 2
    if lanes == 1:
        return None
    chains = _CHAINS if size is None or size >= lanes * _LONG else 1
    _, lane = sch.split(loop, [None, lanes * chains])
    partial = sch.rfactor(lane, 0)
    for position in range(len(Nest(sch, partial).stores)):
        sch.set_scope(partial, position, "local")
    return partial


def _accumulate(sch: Schedule, partial: BlockRV, depth: int) -> None:
    """The lanes innermost, as vectors; what is left of the reduction around them."""
    nest = Nest(sch, partial)
    loops = loops_of(sch, nest, depth)
    vector = loops[nest.spatial[0]]
    steps = [loops[axis] for axis in nest.reduced if axis in loops]
    sch.reorder(*steps, vector)
    sch.vectorize(vector)
    if steps:
        start = sch.decompose_reduction(partial, steps[0])
        sch.vectorize(sch.get_loops(start)[-1])
