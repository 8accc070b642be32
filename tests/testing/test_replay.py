"""What ``every_schedule_checked`` lies around: schedules, their copies, their traces."""

from __future__ import annotations

import pytest

import weft
from tests.lib.replay import every_schedule_checked
from weft import tir
from weft.script import tir as T
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.state import ScheduleDebugMask


@T.prim_func
def doubled(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)


def split(sch):
    return sch.split(sch.get_loops(sch.get_block("B"))[0], [None, 4])


def test_every_schedule_of_a_test_is_checked_unless_it_says_otherwise():
    """Here because ``conftest.py`` opens the context around each test."""
    assert tir.Schedule(doubled).state.debug_mask == ScheduleDebugMask.VERIFY_SREF_TREE | (
        ScheduleDebugMask.VERIFY_CACHED_FLAGS
    )
    assert tir.Schedule(doubled, debug_mask="none").state.debug_mask == 0


@pytest.mark.no_replay("the traces are wrong on purpose")
@pytest.mark.parametrize("of_a_copy", [False, True])
def test_a_trace_that_lacks_a_call_is_found(of_a_copy):
    def wrong():
        with every_schedule_checked():
            sch = tir.Schedule(doubled)
            made = sch.copy() if of_a_copy else sch
            split(made)
            made.trace.pop()

    with pytest.raises(weft.TVMError, match="StructuralEqual check failed"):
        wrong()


def test_schedules_are_as_before_when_it_closes():
    before = Schedule.__init__, Schedule.copy
    with every_schedule_checked():
        assert Schedule.__init__ is not before[0]
        split(tir.Schedule(doubled).copy())
    assert (Schedule.__init__, Schedule.copy) == before


@pytest.mark.no_replay("the trace is wrong on purpose")
def test_replays_can_be_left_out():
    with every_schedule_checked(replay=False):
        sch = tir.Schedule(doubled)
        split(sch)
        sch.trace.pop()
