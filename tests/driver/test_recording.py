"""Recordings: the passes as they ran, decisions, where code came from; nothing else changes."""

from __future__ import annotations

import itertools

import pytest

import weft
from tests.lib.picture_models import layered
from weft import relax
from weft.driver.recording import recording
from weft.ir.instrument import PassTimingInstrument
from weft.support.events import happened, observing
from weft.tir.function import PrimFunc
from weft.viz.schedules import attempts_of


def test_passes_are_those_that_an_instrument_sees():
    timing = PassTimingInstrument()
    with weft.transform.PassContext(instruments=[timing]):
        relax.get_pipeline("zero")(layered())
    with recording() as record:
        relax.get_pipeline("zero")(layered())
    assert [(run.depth, run.name) for run in record.passes] == [row[:2] for row in timing.rows]
    assert all(run.seconds >= 0 for run in record.passes)


def test_a_pass_begins_where_the_one_before_ended():
    with recording() as record:
        weft.compile(layered(), cache=False)
    inner = [run for run in record.passes if run.depth == 1]
    for first, second in itertools.pairwise(inner):
        assert first.after == second.before
    assert record.module is not None
    assert tuple(record.module.functions.items()) == record.passes[0].after


def test_kernels_are_those_that_code_was_made_of():
    with recording() as record:
        model = weft.compile(layered(), cache=False)
    assert set(record.kernels()) == set(model.kernels.functions)
    assert all(isinstance(func, PrimFunc) for func in record.kernels().values())
    coded = {name for code in record.codes for name in code.names}
    assert set(record.kernels()) <= coded


def test_each_schedule_is_recorded_where_processes_share_in_a_compilation(monkeypatch):
    monkeypatch.setenv("WEFT_COMPILE_WORKERS", "3")
    with recording() as record:
        weft.compile(layered(4), cache=False)
    assert len(record.kernels()) >= 2
    for name in record.kernels():
        [attempt] = attempts_of(name, record.attempts)
        assert attempt.schedule is not None


def test_constants_that_are_folded_are_no_kernels():
    with recording() as record:
        weft.compile(layered(200), cache=False)
    assert "folded" not in record.kernels()
    assert "folded" not in {name for code in record.codes for name in code.names}


def test_phases_add_up_to_no_more_than_the_whole():
    with recording() as record:
        weft.compile(layered(), cache=False)
    assert {"graph", "schedules", "cache"} <= set(record.phases)
    assert 0 < sum(record.phases.values()) <= record.seconds


def test_nothing_is_recorded_outside_and_an_error_ends_a_recording():
    with pytest.raises(ValueError, match="stop"), recording() as record:
        raise ValueError("stop")
    weft.compile(layered(), cache=False)
    assert record.passes == []


def test_observers_nest():
    seen = []
    with observing(lambda *event: seen.append(event)):
        happened("program", "a", "")
        with observing(None):
            happened("program", "b", "")
        happened("program", "c", "")
    assert [event[1] for event in seen] == ["a", "c"]
