"""Blocks that default schedules leave as they are written: plain loops around single elements."""

from __future__ import annotations

import math

from weft.ir.expr import IntImm
from weft.ir.functor import Visitor
from weft.ir.module import IRModule
from weft.tir.function import PrimFunc
from weft.tir.stmt import BlockRealize, For, ForKind

SMALL = 2000
"""Iterations that no program needs to schedule."""
_ANY = 100
"""What an extent that only a call knows counts for."""


class _Plain(Visitor):
    def __init__(self) -> None:
        self.loops: list[For] = []
        self.names: list[str] = []

    def visit_For(self, loop: For) -> None:
        self.loops.append(loop)
        self.visit_default(loop)
        self.loops.pop()

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        extents = [loop.extent for loop in self.loops]
        work = math.prod([e.value if isinstance(e, IntImm) else _ANY for e in extents])
        is_plain = all(loop.kind is ForKind.SERIAL and not loop.annotations for loop in self.loops)
        if is_plain and work > SMALL:
            self.names.append(realize.block.name_hint)
        self.visit_default(realize)


def left_as_written(module: IRModule) -> list[str]:
    """The blocks of much work in no vector and no parallel loop, as ``function: block``."""
    names = []
    for var, func in module.functions.items():
        if isinstance(func, PrimFunc):
            visitor = _Plain()
            visitor.visit(func.body)
            names += [f"{var.name_hint}: {name}" for name in visitor.names]
    return names
