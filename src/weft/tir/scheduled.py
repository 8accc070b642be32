"""The mark of functions whose loops have a schedule: by a rule, a search or their author."""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import IntImm
from weft.tir.function import PrimFunc

SCHEDULED: Final = "tir.is_scheduled"
"""The attribute of such functions: default schedules leave them as they are, and of LLVM's passes
those that look for vectors do not run (``weft.codegen.llvm.compile.passes_for``)."""


def is_scheduled(func: PrimFunc) -> bool:
    """Whether a function has the attribute ``tir.is_scheduled``."""
    value: Any = func.attrs.get(SCHEDULED)
    return bool(value.value if isinstance(value, IntImm) else value)
