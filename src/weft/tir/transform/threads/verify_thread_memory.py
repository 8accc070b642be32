"""VerifyThreadMemory: no thread reads memory that only threads with another copy of it write.

The functions stay as they are; what ``tir.analysis.find_thread_memory_fault`` reports is an error.
Runs first of all lowering, while blocks still have names.
"""

from __future__ import annotations

from weft.ir.transform import Pass
from weft.tir.analysis.thread_memory import verify_thread_memory
from weft.tir.function import PrimFunc
from weft.tir.transform.prim_func_pass import make_pass


def _verified(func: PrimFunc) -> PrimFunc:
    verify_thread_memory(func)
    return func


def VerifyThreadMemory() -> Pass:  # noqa: N802 - in the style of pass names
    """The pass ``tir.VerifyThreadMemory``, our own."""
    return make_pass("VerifyThreadMemory", _verified)
