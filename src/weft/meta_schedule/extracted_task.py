"""A kernel of a model that can be tuned by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.module import IRModule
from weft.target import Target


@dataclass(frozen=True, eq=False)
class ExtractedTask:
    """A kernel, and how often the model calls it."""

    task_name: str
    mod: IRModule
    """The module with the kernel as the model has it."""
    target: Target
    dispatched: Sequence[IRModule]
    """What is tuned: one module with one PrimFunc named main."""
    weight: int
    """How many calls of the model have this kernel."""
