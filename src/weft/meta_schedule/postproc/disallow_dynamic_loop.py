"""Refusing loops whose extent is not constant."""

from __future__ import annotations

from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.postproc.scheduled_functions import functions
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import For


class DisallowDynamicLoop(Postproc):
    """Refuses a schedule that has a loop whose extent is not constant."""

    def apply(self, sch: Schedule) -> bool:
        """Whether all extents are constant; nothing changes."""
        return all(
            isinstance(loop.extent, IntImm)
            for _, func in functions(sch)
            for loop in collect(func.body, For)
        )
