"""Refusing programs that need more of Hexagon's fast memory than there is."""

from __future__ import annotations

import math

from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.transform import Sequential
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.target_facts import number, target_of
from weft.support.errors import IRValueError
from weft.tir import transform
from weft.tir.analysis.resources import calculate_allocated_bytes
from weft.tir.analysis.software_pipeline import buffer_versions
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import For

_MEMORY = "global.vtcm"
_COMPACT = Sequential([
    transform.LowerInitBlock(),
    transform.PlanAndUpdateBufferAllocationLocation(),
    transform.ConvertBlocksToOpaque(),
    transform.CompactBufferAllocation(),
    transform.LowerMatchBuffer(),
])  # fmt: skip
_FLAT = Sequential([
    transform.LowerOpaqueBlock(),
    transform.FlattenBuffer(),
    transform.Simplify(),
    transform.StorageRewrite(),
])  # fmt: skip


class VerifyVTCMLimit(Postproc):
    """Refuses a schedule whose buffers in ``global.vtcm`` are larger than ``-vtcm-capacity``.

    Software pipelines keep a buffer for several iterations, which counts as often. A target that
    says 0, or nothing, has no limit.
    """

    def __init__(self) -> None:
        self.vtcm_capacity = 0

    def _initialize_with_tune_context(self, context: Context) -> None:
        target = target_of(context, "VerifyVTCMLimit")
        if target.kind.name != "hexagon":
            raise IRValueError(f"VerifyVTCMLimit: expected a target of hexagon, got {target}")
        self.vtcm_capacity = number(target, "vtcm-capacity") or 0

    def apply(self, sch: Schedule) -> bool:
        """Whether the memory is enough; nothing changes."""
        if self.vtcm_capacity == 0:
            return True
        compact = _COMPACT(sch.mod)
        sizes = calculate_allocated_bytes(_FLAT(compact))
        more = _bytes_of_pipelines(compact)
        return all(size.get(_MEMORY, 0) + more <= self.vtcm_capacity for size in sizes.values())


def _bytes_of_pipelines(mod: IRModule) -> int:
    """The bytes of fast memory for iterations of software pipelines beside the current one."""
    return sum(
        (count - 1) * math.prod([dim.value for dim in buffer.shape if isinstance(dim, IntImm)])
        * buffer.dtype.itemsize
        for func in mod.functions.values()
        for loop in collect(func, For)
        for buffer, count in buffer_versions(loop).items()
        if buffer.scope() == _MEMORY
    )  # fmt: skip
