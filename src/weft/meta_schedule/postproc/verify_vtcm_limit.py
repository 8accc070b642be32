"""Refusing programs that need more of Hexagon's fast memory than there is."""

from __future__ import annotations

from weft.ir.transform import Sequential
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.target_facts import number, target_of
from weft.support.errors import IRValueError
from weft.tir import transform
from weft.tir.analysis.resources import calculate_allocated_bytes
from weft.tir.schedule.schedule import Schedule

_MEMORY = "global.vtcm"


class VerifyVTCMLimit(Postproc):
    """Refuses a schedule whose buffers in ``global.vtcm`` are larger than ``-vtcm-capacity``.

    A target that says 0, or nothing, has no limit.
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
        lowered = Sequential(
            [
                transform.LowerInitBlock(),
                transform.PlanAndUpdateBufferAllocationLocation(),
                transform.ConvertBlocksToOpaque(),
                transform.CompactBufferAllocation(),
                transform.LowerMatchBuffer(),
                transform.LowerOpaqueBlock(),
                transform.FlattenBuffer(),
                transform.Simplify(),
                transform.StorageRewrite(),
            ]
        )(sch.mod)
        sizes = calculate_allocated_bytes(lowered)
        return all(size.get(_MEMORY, 0) <= self.vtcm_capacity for size in sizes.values())
