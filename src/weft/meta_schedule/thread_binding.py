"""Binding the loops of a block to blocks of threads and threads of a GPU.

The outer spatial loops are fused and split: one part for each block of threads, one for each
thread, and for more work than these can do at once a serial rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from weft.meta_schedule.block_questions import (
    constant_extent,
    has_single_body,
    is_root,
    is_thread,
    is_tiled,
    loops_around,
)
from weft.tir.expr import IterType
from weft.tir.schedule.analysis.block_kinds import loop_kind
from weft.tir.schedule.random_variable import BlockRV, ExprRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import For, ForKind
from weft.tir.transform.threads.thread_scope import binding_of

ThreadCount: TypeAlias = Callable[[int], ExprRV | int]
"""From the most threads that there is work for to the number of threads."""


class Limits(NamedTuple):
    """How many blocks of threads a kernel has at most, and how many threads such a block."""

    blocks: int
    threads: int


def sampled_count(sch: Schedule, extents: Sequence[int]) -> ThreadCount:
    """A choice among the extents that there is work for; all the work if it is less than each."""

    def count(most: int) -> ExprRV | int:
        fitting = [extent for extent in extents if extent <= most]
        if len(fitting) > 1:
            return sch.sample_categorical(fitting, [1.0 / len(fitting)] * len(fitting))
        return fitting[0] if fitting else most

    return count


def bind_block(sch: Schedule, block: BlockRV, limits: Limits, count: ThreadCount) -> None:
    """Bind the outer spatial loops of a block; nothing changes where they are bound or tiled."""
    if is_root(sch, block) or is_tiled(sch.get(block)):
        return
    loops = loops_around(sch, block)
    bound_to_blocks = any(_is_block_of_threads(loop) for loop in loops)
    thread = next((place for place, loop in enumerate(loops) if is_thread(loop)), None)
    if bound_to_blocks:
        return
    shared = _only_of_this(loops)
    spatial = _leading_spatial(loops)
    loop_rvs = sch.get_loops(block)
    if spatial == 0:
        unit = sch.add_unit_loop(loop_rvs[0] if loop_rvs else block)
        loop_rvs, spatial, shared = [unit, *loop_rvs], 1, shared + 1
        thread = None if thread is None else thread + 1
    if thread is not None:
        outer = sch.get_loops(block)[: min(shared, thread, spatial)]
        sch.bind(sch.fuse(*outer), "blockIdx.x")
        return
    bind_spatial_loop(sch, sch.fuse(*loop_rvs[: min(shared, spatial)]), limits, count)


def bind_spatial_loop(
    sch: Schedule, loop: LoopRV, limits: Limits, count: ThreadCount
) -> list[LoopRV]:
    """Split a spatial loop and bind its parts; the loops that are left, outermost first."""
    extent = constant_extent(sch.get(loop))
    if extent is not None and extent <= limits.blocks * limits.threads:
        outer, inner = sch.split(loop, [None, count(min(extent, limits.threads))])
        sch.bind(outer, "blockIdx.x")
        sch.bind(inner, "threadIdx.x")
        return [outer, inner]
    serial, outer, inner = sch.split(loop, [None, limits.blocks, limits.threads])
    sch.reorder(outer, inner, serial)
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    return [outer, inner, serial]


def _is_block_of_threads(loop: For) -> bool:
    binding = binding_of(loop)
    return binding is not None and binding.is_block


def _only_of_this(loops: Sequence[For]) -> int:
    """How many of the outer loops are serial and may be fused: up to one with several children."""
    for place, loop in enumerate(loops):
        if loop.kind is not ForKind.SERIAL:
            return place
        if not has_single_body(loop):
            return place + 1
    return len(loops)


def _leading_spatial(loops: Sequence[For]) -> int:
    """How many of the outer loops run spatial axes, before the first that does not."""
    kinds = [loop_kind(loop) for loop in loops]
    return next((place for place, kind in enumerate(kinds) if kind != IterType.DataPar), len(kinds))
