"""Reports of profiles: metrics, tables, CSV and JSON, and what a recorder keeps of each call."""

from __future__ import annotations

import json

import numpy as np
import pytest

from weft.runtime.model.flops import FlopCount
from weft.runtime.ndarray import array
from weft.runtime.profiling import (
    COUNT,
    NAME,
    SHAPES,
    SPEED,
    TIME,
    Count,
    Duration,
    Percent,
    Ratio,
    Recorder,
    Report,
)
from weft.support.errors import IRValueError


def row(name, took, shapes="float32[2]", **more):
    return {NAME: name, TIME: Duration(took), "Percent": Percent(took / 10), COUNT: Count(1),
            "Device": "cpu0", SHAPES: shapes, **more}  # fmt: skip


CALLS = [row("add", 10.0), row("mul", 200.0), row("add", 30.0, "float32[4]")]
REPORT = Report(CALLS, {"cpu0": {TIME: Duration(1000.0), COUNT: Count(1)}}, {"Executor": "VM"})


@pytest.mark.parametrize(("metric", "text", "value"), [
    (Duration(1234.5), "1,234.50", 1234.5), (Count(12345), "12,345", 12345),
    (Percent(12.345), "12.35", 12.345), (Ratio(0.00012345), "0.000123", 0.00012345),
])  # fmt: skip
def test_metrics(metric, text, value):
    assert (str(metric), metric.value) == (text, value)


def test_a_report_survives_json():
    again = Report.from_json(REPORT.json())
    assert again.calls == REPORT.calls
    assert again.device_metrics == REPORT.device_metrics
    assert again.configuration == REPORT.configuration
    assert again.json() == REPORT.json()


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"calls": 3}', '{"calls": [{"Name": 3}], "device_metrics": {}}',
    '{"calls": [{"Name": {"parsecs": 3}}], "device_metrics": {}}',
])  # fmt: skip
def test_what_is_no_report(text):
    with pytest.raises(IRValueError, match=r"Report.from_json: expected what json\(\) writes"):
        Report.from_json(text)


def test_metrics_in_json_say_their_unit():
    (first, *_) = json.loads(REPORT.json())["calls"]
    assert first[TIME] == {"microseconds": 10.0}
    assert first[COUNT] == {"count": 1}
    assert first[NAME] == {"string": "add"}


def test_csv_has_a_line_for_each_call():
    lines = REPORT.csv().splitlines()
    assert lines[0] == "Name,Duration (us),Percent,Count,Device,Argument Shapes"
    assert lines[1] == "add,10.0,1.0,1,cpu0,float32[2]"
    assert len(lines) == 4


def names_in(table):
    return [line.split()[0] for line in table.splitlines()]


def test_a_table_joins_sorts_and_adds_up():
    table = REPORT.table()
    assert names_in(table) == ["Name", "mul", "add", "----------", "Sum", "Total"]
    add = table.splitlines()[2].split()
    assert add[1:4] == ["40.00", "4.00", "2"]
    assert "float32" not in table.splitlines()[2]  # the shapes of both calls differ
    assert table.splitlines()[4].split()[1] == "240.00"
    assert table.splitlines()[5].split()[1] == "1,000.00"


def test_a_table_of_single_calls_in_the_order_of_the_run():
    table = REPORT.table(sort=False, aggregate=False, col_sums=False)
    assert names_in(table) == ["Name", "add", "mul", "add"]
    assert names_in(REPORT.table(aggregate=False, col_sums=False)) == ["Name", "mul", "add", "add"]


def test_a_column_of_one_row_only_stands_behind():
    report = Report([row("add", 1.0), row("mul", 2.0, extra=Count(7))], {}, {})
    header, *rows = report.table(sort=False, col_sums=False).splitlines()
    assert header.split()[-1] == "extra"
    assert rows[1].endswith("7")


def test_the_speed_of_several_calls_is_that_of_their_work():
    calls = [row("f", 100.0, **{SPEED: Ratio(2.0)}), row("f", 300.0, **{SPEED: Ratio(6.0)})]
    (joined,) = Report(calls, {}, {}).table(col_sums=False).splitlines()[1:]
    assert "5" in joined.split()  # (2 * 100 + 6 * 300) / 400


def test_a_report_prints_its_configuration():
    assert str(REPORT).endswith("Configuration\n-------------\nExecutor: VM")
    assert repr(REPORT) == str(REPORT)


def test_an_empty_report_is_a_table_too():
    report = Report([], {}, {})
    assert Report.from_json(report.json()).calls == []
    assert report.csv() == "\n"


def test_a_recorder_calls_and_keeps_what_it_saw():
    recorder = Recorder()
    x = array(np.zeros((2, 3), "float32"))
    assert recorder.timed("kernel", "f", lambda a, n: n + 1, (x, 4)) == 5
    assert recorder.timed("builtin", "shape_of", lambda a: a.shape, (x,)) == (2, 3)
    report = recorder.report(50.0)
    kernel, builtin = report.calls
    assert (kernel[NAME], kernel[SHAPES], kernel["Bytes"].value) == ("f", "float32[2, 3]", 24)
    assert kernel[TIME].value >= 0
    assert kernel["Percent"].value == pytest.approx(100 * kernel[TIME].value / 50)
    assert builtin[NAME] == "vm.builtin.shape_of"
    assert SHAPES not in builtin
    assert report.device_metrics["cpu0"][TIME].value == 50.0
    assert report.configuration["Executor"] == "VM"


def test_functions_of_the_machine_are_their_calls():
    recorder = Recorder()
    recorder.timed("function", "main", lambda: recorder.timed("kernel", "f", lambda: 1, ()), ())
    assert [call[NAME] for call in recorder.report(1.0).calls] == ["f"]


def test_a_value_that_moves_is_no_call_and_a_tuple_is():
    recorder = Recorder()
    recorder.timed("builtin", "identity", lambda x: x, (3,))
    recorder.timed("builtin", "identity", lambda x: x, ((3, 4),))
    assert [call[NAME] for call in recorder.report(1.0).calls] == ["vm.builtin.make_tuple"]


def test_an_error_of_the_call_is_the_callers():
    recorder = Recorder()
    with pytest.raises(ZeroDivisionError):
        recorder.timed("kernel", "f", lambda: 1 // 0, ())
    assert recorder.report(1.0).calls == []


def test_speeds_are_of_kernels_whose_work_is_known():
    recorder = Recorder({"f": FlopCount(2_000_000)})
    recorder.timed("kernel", "f", lambda: None, ())
    recorder.timed("kernel", "g", lambda: None, ())
    known, unknown = recorder.report(1.0).calls
    assert known[SPEED].ratio == pytest.approx(2_000_000 / known[TIME].value / 1e3)
    assert SPEED not in unknown
