"""Every schedule of every test here is checked as it is edited, and its trace is replayed."""

from __future__ import annotations

import pytest

from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.testing import verify_trace_roundtrip


@pytest.fixture(autouse=True)
def every_schedule_replays(monkeypatch, request):
    """``debug_mask`` is on unless given; after the test each trace gives its module again.

    The marker ``no_replay(reason)`` exempts tests that edit the state by hand.
    """
    made = []
    construct = Schedule.__init__

    def checked(self, mod, **options):
        construct(self, mod, **{"debug_mask": "all", **options})
        made.append((self, mod))

    monkeypatch.setattr(Schedule, "__init__", checked)
    yield
    monkeypatch.undo()
    if request.node.get_closest_marker("no_replay") is None:
        for sch, mod in made:
            if sch.trace is not None:
                verify_trace_roundtrip(sch, mod)
