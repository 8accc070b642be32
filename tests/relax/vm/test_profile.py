"""``vm.profile``: each operator's time, count, speed, bytes, and share of the whole."""

import csv
import io
import json

import numpy as np
import pytest

import weft
from weft import relax
from weft.runtime.profiling import Count, Duration, Percent, Ratio, Report
from weft.script import ir as I
from weft.script import relax as R


@I.ir_module
class Layers:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 16), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.matmul(b, w)
            R.output(c)
        return Layers.last(c)

    @R.function
    def last(x: R.Tensor(("n", 16), "float32")):
        y = R.exp(x)
        return (y, (y,))


@pytest.fixture(scope="module")
def report():
    machine = relax.VirtualMachine(relax.build(Layers), weft.cpu(), profile=True)
    return machine.profile("main", np.ones((8, 16), "float32"), np.ones((16, 16), "float32"))


def test_each_call_is_a_row_with_its_metrics(report):
    products = [call for call in report.calls if call["Name"] == "matmul"]
    assert len(products) == 2
    for call in products:
        time = call["Duration (us)"]
        assert time.microseconds > 0
        assert call["Count"] == Count(1)
        assert call["Bytes"] == Count(4 * (8 * 16 + 16 * 16 + 8 * 16))
        assert call["Argument Shapes"] == "float32[8, 16], float32[16, 16], float32[8, 16]"
        # 8 * 16 * 16 multiplications and as many additions
        assert call["GFLOP/s"].ratio * time.microseconds * 1e3 == pytest.approx(2 * 8 * 16 * 16)
    names = {call["Name"] for call in report.calls}
    assert {"matmul", "relu", "tir_exp", "vm.builtin.alloc_tensor"} <= names


def test_shares_are_of_the_whole_run(report):
    whole = report.device_metrics["cpu0"]["Duration (us)"].microseconds
    parts = sum(call["Duration (us)"].microseconds for call in report.calls)
    assert 0 < parts <= whole
    shares = sum(call["Percent"].percent for call in report.calls)
    assert shares == pytest.approx(100 * parts / whole)


def test_the_table_joins_calls_of_one_name(report):
    table = report.table()
    assert table.count("matmul") == 1
    assert table.splitlines()[0].split()[0] == "Name"
    line = next(line for line in table.splitlines() if line.startswith("matmul"))
    assert " 2 " in line
    assert report.table(aggregate=False).count("matmul") == 2
    assert "Total" in table
    assert "Total" not in report.table(col_sums=False)
    assert "Number of threads" in str(report)


def test_csv_and_json_hold_every_call(report):
    rows = list(csv.DictReader(io.StringIO(report.csv())))
    assert [row["Name"] for row in rows] == [call["Name"] for call in report.calls]
    assert float(rows[0]["Duration (us)"]) == report.calls[0]["Duration (us)"].microseconds
    again = Report.from_json(report.json())
    assert again.calls == report.calls
    assert again.device_metrics == report.device_metrics
    assert json.loads(report.json())["calls"][0]["Count"] == {"count": 1}
    with pytest.raises(ValueError, match=r"Report.from_json: expected what json\(\) writes"):
        Report.from_json("[]")


def test_sorted_sums():
    rows = [
        {"Name": name, "Duration (us)": Duration(time), "GFLOP/s": Ratio(speed)}
        for name, time, speed in [("a", 1.0, 4.0), ("b", 10.0, 1.0), ("a", 3.0, 8.0)]
    ]
    table = Report(rows, {"cpu0": {"Percent": Percent(100)}}, {}).table()
    lines = [line.split() for line in table.splitlines()]
    assert lines[1:3] == [["b", "10.00", "1"], ["a", "4.00", "7"]]
    assert lines[4] == ["Sum", "14.00", "2.71"]


def test_inputs_that_were_set_are_profiled():
    machine = relax.VirtualMachine(relax.build(Layers), weft.cpu(), profile=True)
    machine.set_input("last", np.ones((2, 16), "float32"))
    assert "exp" in str(machine.profile("last"))
    with pytest.raises(TypeError, match="expected 2 arguments"):
        machine.profile("main")


def test_an_instrument_may_leave_calls_out():
    machine = relax.VirtualMachine(relax.build(Layers), weft.cpu())
    seen = []

    def instrument(function, name, before, result, *_arguments):
        seen.append((name, before))
        assert callable(function)
        assert not (before and result is not None)
        if name == "matmul":
            return relax.VMInstrumentReturnKind.SKIP_RUN
        return relax.VMInstrumentReturnKind.NO_OP

    machine.set_instrument(instrument)
    machine["main"](np.ones((8, 16), "float32"), np.ones((16, 16), "float32"))
    assert seen.count(("matmul", True)) == 2
    assert ("matmul", False) not in seen
    assert seen.count(("relu", False)) == seen.count(("relu", True)) == 1
