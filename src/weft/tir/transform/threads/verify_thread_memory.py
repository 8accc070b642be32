"""VerifyThreadMemory: no thread reads memory that only threads with another copy of it write.

The functions stay as they are; what ``tir.analysis.find_thread_memory_fault`` reports is an error.
Runs first of all lowering, while blocks still have names.
"""

from __future__ import annotations

from weft.tir.analysis.thread_memory import verify_thread_memory
from weft.tir.function import PrimFunc
from weft.tir.transform.prim_func_pass import define_pass


def _verified(func: PrimFunc) -> PrimFunc:
    """The function itself, if its threads share memory as they may."""
    verify_thread_memory(func)
    return func


VerifyThreadMemory = define_pass("VerifyThreadMemory", _verified)
