"""Pipelines: which passes run, in which order, and why there."""

from __future__ import annotations

from weft.ir.transform import Pass, Sequential
from weft.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from weft.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque
from weft.tir.transform.flatten_buffer import FlattenBuffer
from weft.tir.transform.lower_init_block import LowerInitBlock
from weft.tir.transform.lower_match_buffer import LowerMatchBuffer
from weft.tir.transform.lower_opaque_block import LowerOpaqueBlock
from weft.tir.transform.plan_buffer_allocation import PlanAndUpdateBufferAllocationLocation
from weft.tir.transform.remove_no_op import RemoveNoOp
from weft.tir.transform.simplify import Simplify
from weft.tir.transform.unroll_loop import UnrollLoop
from weft.tir.transform.vectorize_loop import VectorizeLoop

LOWER_TIR: tuple[Pass, ...] = (
    PlanAndUpdateBufferAllocationLocation(),  # while blocks still say what is a reduction
    LowerInitBlock(),  # needs the reduction axes, which the next pass removes
    ConvertBlocksToOpaque(),
    LowerMatchBuffer(),  # needs axes replaced, so that regions speak of loops only
    CompactBufferAllocation(),  # last user of block scopes
    LowerOpaqueBlock(),  # blocks end here: plain loops, branches, allocations
    FlattenBuffer(),
    Simplify(),  # before vectorising: fewer, simpler indices to widen
    VectorizeLoop(),
    UnrollLoop(),  # after vectorising: an unrolled loop may hold vector statements
    Simplify(),  # unrolling leaves constants to fold
    RemoveNoOp(),
)
"""From a PrimFunc with blocks to what code generation takes."""


def lower_tir() -> Pass:
    """``LOWER_TIR`` as one pass."""
    return Sequential(LOWER_TIR, name="tir.lower")
