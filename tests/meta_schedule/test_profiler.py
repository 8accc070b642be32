"""The profiler of a search, and its log files."""

from __future__ import annotations

import logging

import pytest

from weft import meta_schedule as ms
from weft.meta_schedule import profiler as profiler_module
from weft.meta_schedule.logging import NAME, get_loggers_from_work_dir
from weft.support.errors import IRValueError


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    now = [0.0]
    monkeypatch.setattr(profiler_module.time, "perf_counter", lambda: now[0])
    return now


def test_parts_add_up(clock):
    with ms.Profiler() as profiler:
        clock[0] += 30
        for _ in range(2):
            with ms.Profiler.timeit("outer"):
                clock[0] += 10
                with ms.Profiler.timeit("inner"):
                    clock[0] += 5
    assert profiler.get() == {"inner": 10.0, "outer": 30.0, "Total": 60.0}
    assert profiler.get()["Total"].value == 60.0


def test_a_table_has_the_longest_first(clock):
    with ms.Profiler() as profiler:
        for name, seconds in (("short", 6), ("long", 54)):
            with ms.Profiler.timeit(name):
                clock[0] += seconds
    rows = [[cell.strip() for cell in line.split("|")] for line in profiler.table().splitlines()]
    assert rows[0] == ["ID", "Name", "Time (min)", "Percentage"]
    assert rows[2:5] == [
        ["", "Total", "1.0000", "100.0000"],
        ["1", "long", "0.9000", "90.0000"],
        ["2", "short", "0.1000", "10.0000"],
    ]


def test_a_table_needs_a_total():
    with pytest.raises(IRValueError, match="whose with-block has ended"):
        ms.Profiler().table()


def test_without_a_profiler_nothing_is_measured():
    assert ms.Profiler.current() is None
    with ms.Profiler.timeit("part"):
        pass
    with ms.Profiler() as outer:
        with ms.Profiler() as inner, ms.Profiler.timeit("part"):
            assert ms.Profiler.current() is inner
        assert ms.Profiler.current() is outer
    assert "part" in inner.get()
    assert "part" not in outer.get()


def test_an_error_ends_the_part(clock):
    with pytest.raises(KeyError), ms.Profiler() as profiler, ms.Profiler.timeit("part"):
        clock[0] += 1
        raise KeyError
    assert profiler.get() == {"part": 1.0, "Total": 1.0}
    assert ms.Profiler.current() is None


@pytest.fixture
def closed_logs():
    yield
    for logger in (logging.getLogger(NAME), *logging.Logger.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger) and logger.name.startswith(NAME):
            for handler in list(logger.handlers):
                logger.removeHandler(handler)
                handler.close()


@pytest.mark.usefixtures("closed_logs")
def test_each_task_has_a_log_file(tmp_path):
    names = ["main", "fused/conv2d", *[f"task{i}" for i in range(9)]]
    loggers = get_loggers_from_work_dir(str(tmp_path), names)
    loggers[1].info("measured %d", 3)
    logging.getLogger(f"{NAME}.task_scheduler").warning("round 1")
    logs = tmp_path / "logs"
    assert (logs / "task_01_fused_conv2d.log").read_text().endswith("[INFO] measured 3\n")
    assert (logs / "task_scheduler.log").read_text().endswith("[WARNING] round 1\n")
    assert len(loggers) == 11
    [again, *_] = get_loggers_from_work_dir(str(tmp_path / "next"), names)
    again.info("once")
    assert (tmp_path / "next/logs/task_00_main.log").read_text().count("once") == 1
    assert not (logs / "task_00_main.log").exists()
