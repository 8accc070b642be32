"""Bringing the reduction loops of a block together, for rules that split a reduction."""

from __future__ import annotations

from weft.tir.expr import IterType
from weft.tir.schedule.analysis.block_kinds import get_loop_iter_type
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule


def fused_reduction(sch: Schedule, block: BlockRV) -> tuple[int, LoopRV]:
    """Reorder the loops, spatial ones first, and fuse those of the reduction.

    Returns the number of spatial loops and the fused loop. The loops are all spatial or reducing.
    """
    loops = sch.get_loops(block)
    kinds = [get_loop_iter_type(sch, loop) for loop in loops]
    spatial, reduced = (
        [loop for loop, kind in zip(loops, kinds, strict=True) if kind == wanted]
        for wanted in (IterType.DataPar, IterType.CommReduce)
    )
    if [*spatial, *reduced] != loops:
        sch.reorder(*spatial, *reduced)
    return len(spatial), sch.fuse(*reduced) if len(reduced) > 1 else reduced[0]
