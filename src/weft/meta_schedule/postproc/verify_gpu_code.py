"""Refusing programs that a GPU cannot run: too many threads, too much memory."""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir.expr import GlobalVar, IntImm
from weft.ir.module import IRModule
from weft.ir.transform import Sequential
from weft.meta_schedule.annotations import (
    FEWEST_THREADS,
    MOST_THREADS,
    WARP_EXECUTION,
    annotation,
)
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.postproc.scheduled_functions import functions
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.target_facts import needed_number, target_of, warp_size
from weft.support.errors import TVMError
from weft.tir import transform
from weft.tir.analysis.gpu_limits import verify_gpu_code
from weft.tir.function import PrimFunc
from weft.tir.schedule import tree
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import Block, BlockRealize, For, Stmt
from weft.tir.transform.threads.thread_scope import binding_of

_OF_TARGET = ("max_shared_memory_per_block", "max_threads_per_block")
_OF_ALL = {"max_vthread": 8, "max_vector_bytes": 16}


class VerifyGPUCode(Postproc):
    """Refuses a schedule whose kernels exceed what the target has, or that cannot be lowered.

    Tiled blocks also say how many threads they want at least.
    """

    def __init__(self) -> None:
        self.limits: dict[str, int] = dict(_OF_ALL)
        self._warp_size = 1

    def _initialize_with_tune_context(self, context: Context) -> None:
        target = target_of(context, "VerifyGPUCode")
        for name in _OF_TARGET:
            self.limits[name] = needed_number(target, name, "VerifyGPUCode")
        self._warp_size = warp_size(target) or 1

    def apply(self, sch: Schedule) -> bool:
        """Whether the kernels can run; nothing changes."""
        return all(
            _threads_fit(func.body, {}, self._warp_size) and self._fits(var.name_hint, func)
            for var, func in functions(sch)
        )

    def _fits(self, name: str, func: PrimFunc) -> bool:
        named = func.with_attr("global_symbol", name)
        try:
            lowered = _lowering()(IRModule({GlobalVar(name): named}))
        except TVMError:  # what the passes refuse, code generation would refuse too
            return False
        return all(
            verify_gpu_code(item, self.limits)
            for item in lowered.functions.values()
            if isinstance(item, PrimFunc)
        )


def _lowering() -> Sequential:
    """From blocks to the loops, threads and allocations that code generation sees."""
    return Sequential(
        [
            transform.LowerCrossThreadReduction(),
            transform.LowerInitBlock(),
            transform.PlanAndUpdateBufferAllocationLocation(),
            transform.ConvertBlocksToOpaque(),
            transform.CompactBufferAllocation(),
            transform.Simplify(),
            transform.UnifyThreadBinding(),
            transform.LowerMatchBuffer(),
            transform.LowerOpaqueBlock(),
            transform.FlattenBuffer(),
            transform.NarrowDataType(32),
            transform.Simplify(),
            transform.VectorizeLoop(True),
            transform.InjectVirtualThread(),
            transform.InjectDoubleBuffer(),
            transform.StorageRewrite(),
            transform.MergeSharedMemoryAllocations(),
        ]
    )


def _threads_fit(stmt: Stmt, threads: Mapping[str, int], warp: int) -> bool:
    """Whether each block has as many threads around it as its marks ask for."""
    if isinstance(stmt, For):
        binding = binding_of(stmt)
        if binding is not None and not binding.is_block and not binding.is_virtual:
            if not isinstance(stmt.extent, IntImm):
                return False
            threads = {**threads, binding.tag: stmt.extent.value}
    if isinstance(stmt, BlockRealize):
        if WARP_EXECUTION in stmt.block.annotations:
            threads = {**threads, "threadIdx.x": warp}
        if not _count_fits(stmt.block, threads):
            return False
    return all(_threads_fit(inner, threads, warp) for inner in tree.substatements(stmt))


def _count_fits(block: Block, threads: Mapping[str, int]) -> bool:
    low, high = annotation(block, FEWEST_THREADS), annotation(block, MOST_THREADS)
    if not isinstance(low, int) or not isinstance(high, int):
        return True
    count = 1
    for extent in threads.values():
        count *= extent
    return low <= count <= high
