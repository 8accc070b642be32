"""Schedules under test: each is checked after every edit, and its trace makes its module again.

``every_schedule_checked`` is what this repository's tests, documents and examples run under. It
lies around ``Schedule.__init__`` and ``Schedule.copy`` for as long as it is open, so that a program
need not know of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from weft.ir.module import IRModule
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.state import ScheduleDebugMask
from weft.tir.schedule.testing import (
    assert_structural_equal_ignore_global_symbol,
    verify_trace_roundtrip,
)


@contextmanager
def every_schedule_checked(*, replay: bool = True) -> Iterator[None]:
    """Schedules made inside have ``debug_mask="all"``; their traces are replayed.

    One that is made with a debug mask of its own, as compiled models make them, is left alone.
    The replays come at the end, from the text and from the JSON of each trace (copies too, a trace
    that several have once), and raise IRValueError with the first difference. ``replay=False``
    leaves them out.
    """
    made: list[tuple[Schedule, PrimFunc | IRModule]] = []
    construct, copy = Schedule.__init__, Schedule.copy

    def checked(self: Schedule, mod: PrimFunc | IRModule, **options: Any) -> None:
        given = options.setdefault("debug_mask", "all")
        construct(self, mod, **options)
        if replay and given == "all":
            made.append((self, mod))

    def copied(self: Schedule) -> Schedule:
        twin = copy(self)
        made.extend([(twin, mod) for sch, mod in made if sch is self])
        return twin

    with (
        mock.patch.object(Schedule, "__init__", checked),
        mock.patch.object(Schedule, "copy", copied),
    ):
        yield
    _replay(made)


def _replay(made: Sequence[tuple[Schedule, PrimFunc | IRModule]]) -> None:
    """Each trace makes the module of its schedule from the one that this began with.

    What is kept with blocks is not checked again after every edit: it was when the edits were made,
    and costs ten times as much as they do.
    """
    replayed: dict[tuple[int, str], IRModule] = {}
    for sch, mod in made:
        if sch.trace is None:
            continue
        key = id(mod), str(sch.trace)
        if key in replayed:
            assert_structural_equal_ignore_global_symbol(replayed[key], sch.mod)
        else:
            again = verify_trace_roundtrip(sch, mod, debug_mask=ScheduleDebugMask.VERIFY_SREF_TREE)
            replayed[key] = again.mod
