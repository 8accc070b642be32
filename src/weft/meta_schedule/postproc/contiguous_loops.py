"""How many inner loops of a block run over memory element by element, as vectors do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import substitute
from weft.meta_schedule.block_questions import constant_extent
from weft.tir import op
from weft.tir.buffer import BufferRegion
from weft.tir.expr import Var
from weft.tir.linear_difference import constant_difference
from weft.tir.schedule import tree
from weft.tir.stmt import BlockRealize, For


def contiguous_loops(realize: BlockRealize, loops: Sequence[For]) -> int:
    """The number of innermost loops that every access of the block goes through without gaps.

    A loop that does not move along a buffer leaves no gap. The innermost loop always counts: its
    elements may be gathered.
    """
    bindings = tree.bindings_of(realize)
    regions = [*realize.block.reads, *realize.block.writes]
    return min([_of_region(region, bindings, loops) for region in regions], default=len(loops))


def _of_region(region: BufferRegion, bindings: Mapping[Var, PrimExpr], loops: Sequence[For]) -> int:
    analyzer = Analyzer()
    indices = [analyzer.simplify(substitute(item.min, bindings)) for item in region.region]
    run: int | None = None
    """The elements that the loops so far go through; None before the first that moves."""
    for count, loop in enumerate(reversed(loops)):
        step = _stride(region, indices, loop.loop_var)
        if step == 0:
            continue
        if (step != 1 and count != 0) if run is None else step != run:
            return count
        extent = constant_extent(loop)
        if extent is None or step is None:
            return count + 1
        run = step * extent
    return len(loops)


def _stride(region: BufferRegion, indices: Sequence[PrimExpr], var: Var) -> int | None:
    """The elements between two iterations of a loop: 0 if it does not move, None if not known."""
    size = 1
    for index, extent in reversed(list(zip(indices, region.buffer.shape, strict=True))):
        after = substitute(index, {var: op.add(var, op.const(1, var.dtype))})
        step = constant_difference(after, index)
        if step:
            return step * size
        if not isinstance(extent, IntImm):
            return None
        size *= extent.value
    return 0
