"""The functions of a schedule, and their blocks by name."""

from __future__ import annotations

from collections.abc import Iterator

from weft.ir.expr import GlobalVar
from weft.tir.function import PrimFunc
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.tree import StmtSRef, block_of


def functions(sch: Schedule) -> Iterator[tuple[GlobalVar, PrimFunc]]:
    """The functions of loops in a schedule's module."""
    for var, func in sch.mod.functions.items():
        if isinstance(func, PrimFunc):
            yield var, func


def block_variable(sch: Schedule, sref: StmtSRef) -> BlockRV:
    """A random variable of a block, looked up by name so that a trace can replay it."""
    return sch.get_block(block_of(sref).name_hint, sch.state.function_of(sref)[0].name_hint)
