"""Schedules under test: each is checked after every edit, and its trace makes its module again.

``every_schedule_checked`` is what this repository's tests, documents and examples run under. It
lies around ``Schedule.__init__`` and ``Schedule.copy`` for as long as it is open, so that a program
need not know of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from weft.ir.module import IRModule
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.testing import verify_trace_roundtrip


@contextmanager
def every_schedule_checked(*, replay: bool = True) -> Iterator[None]:
    """Schedules made inside have ``debug_mask="all"``; their traces are replayed.

    One that is made with a debug mask of its own, as compiled models make them, is left alone.
    The replays come at the end, from the text and from the JSON of each trace (copies too), and
    raise IRValueError with the first difference. ``replay=False`` leaves them out.
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

    with mock.patch.object(Schedule, "__init__", checked), mock.patch.object(
        Schedule, "copy", copied
    ):
        yield
    for sch, mod in made:
        if sch.trace is not None:
            verify_trace_roundtrip(sch, mod)
