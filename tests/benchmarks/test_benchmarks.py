"""``python -m benchmarks``: its tables, its processes, what it prints and writes."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("rich")
pytestmark = pytest.mark.torch

NETWORKS = (
    "ResNet-50", "MobileNetV2", "EfficientNet-B0", "BERT", "GPT-2", "Llama", "ViT-B/16",
    "wav2vec 2.0", "Whisper", "EnCodec", "spectrum", "NSNet2", "LSTM",
)  # fmt: skip


def test_the_table_has_operators_of_every_network():
    from benchmarks.operators import OPERATORS

    rows = Counter(operator.network for operator in OPERATORS)
    assert set(rows) == set(NETWORKS)
    assert rows.total() >= 60
    assert len({operator.slug for operator in OPERATORS}) == rows.total()


def test_every_operator_can_be_made_and_called():
    from benchmarks.operators import OPERATORS
    from weft.cli.models import find_model

    for operator in OPERATORS:
        with torch.device("meta"):
            model = find_model(operator.row.model)
        arrays = [
            torch.empty(item.shape, dtype=torch.int64 if item.below else None, device="meta")
            for item in operator.inputs
        ]
        assert model(*arrays).numel() > 0, operator.name


def test_rows_give_the_same_arrays_every_time():
    from benchmarks.networks import NETWORKS as networks

    assert len(networks) == 12
    bert = next(row for row in networks if row.name.startswith("BERT"))
    first, second = bert.arrays()["x0"], bert.arrays()["x0"]
    assert first.dtype == np.int64
    assert first.max() > 1
    np.testing.assert_array_equal(first, second)


SCRIPTS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_each_script_can_be_imported(path):
    """What a script takes from weft may have moved; nothing else runs most of them."""
    try:
        importlib.import_module(f"benchmarks.{path.stem}")
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in ("weft", "benchmarks", "tests"):
            raise
        pytest.skip(f"needs {error.name}")


@pytest.mark.parametrize("name", ["__main__", "limits", "scaling", "work"])
def test_examples_in_docstrings(name):
    found = doctest.testmod(importlib.import_module(f"benchmarks.{name}"))
    assert found.attempted > 0
    assert found.failed == 0


def test_scaling_prints_a_line_for_each_network(root):
    command = [sys.executable, "-m", "benchmarks.scaling", "--only", "MLP", "--rounds", "1"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    title, row, mean = done.stdout.splitlines()
    assert title.split()[-4:] == ["times", "peak", "memory", "both"]
    assert row.startswith("MLP 784-128-10")
    assert mean.startswith("geometric mean")


def test_busy_prints_a_line_for_each_number_of_other_processes(root):
    command = [sys.executable, "-m", "benchmarks.busy", "--only", "MLP", "--rounds", "1",
               "--engines", "weft", "--threads", "2"]  # fmt: skip
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    title, *rows = done.stdout.splitlines()
    assert title.split() == ["milliseconds", "others", "weft"]
    assert [row.split()[2] for row in rows] == ["0", "1", "2"]
    assert all(float(row.split()[3]) > 0 for row in rows)


def test_trees_prints_the_ratio_of_two_checkouts(root):
    command = [sys.executable, "-m", "benchmarks.trees", ".", str(root), "--only", "MLP",
               "--rounds", "2", "--seconds", "0.01"]  # fmt: skip
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    title, row, mean = done.stdout.splitlines()
    assert title.split() == ["ms", "least", "old", "new", "ratio", "median", "old", "new", "ratio"]
    least_old, least_new, ratio = [float(text) for text in row.split()[2:5]]
    assert 0 < ratio == pytest.approx(least_new / least_old, rel=0.2)
    assert mean.split()[:2] == ["geometric", "mean"]


def test_ops_times_weft_beside_torch_and_writes_figures(root, tmp_path):
    figures = tmp_path / "figures.json"
    command = [
        sys.executable, "-m", "benchmarks", "ops", "--only", "bert: heads APART", "--rounds", "1",
        "--engines", "weft,torch eager", "--threads", "1", "--no-limits", "--profile",
        "--json", str(figures),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "BERT: heads apart 128 x 768" in done.stdout
    assert "best peer / weft: geometric mean" in done.stdout
    assert "Duration (us)" in done.stdout
    (row,) = json.loads(figures.read_text(encoding="utf-8"))["rows"]
    assert list(row["engines"]) == ["weft", "torch eager"]
    for engine in row["engines"].values():
        assert engine["error"] == ""
        assert len(engine["seconds"]) == 1
        assert engine["median"] >= 0
        assert engine["apart"] == 0


def test_a_memory_bound_operator_has_a_share_of_a_copy(monkeypatch):
    from benchmarks import bandwidth
    from weft import topi

    monkeypatch.setattr(bandwidth, "SECONDS", 0.0)
    monkeypatch.setattr(bandwidth, "TURNS", 1)
    case = bandwidth.Case("sum", ((8, 16), (16,)), topi.add)
    call, nbytes = bandwidth.kernel_of(case, "llvm -num-cores=1")
    call()
    assert nbytes == 4 * (8 * 16 + 16 + 8 * 16)
    times = iter([3.0, 1.0, 2.0, 1.0, 2.0, 1.0])  # of a call and of one without work, three times
    monkeypatch.setattr(bandwidth, "lowest", lambda timed: (timed(), next(times))[1])
    assert bandwidth.share_of(case, "llvm -num-cores=1") == 0.5
    names = [one.name for one in bandwidth.CASES]
    assert len(set(names)) == len(names)


def test_layers_of_any_batch_stand_beside_those_of_one(monkeypatch, capsys):
    from benchmarks import layers

    names = [layer.name for layer in layers.LAYERS]
    assert len(set(names)) == len(names)
    for layer in layers.LAYERS:
        assert layer.make()(*layer.inputs(1)).shape[0] == layer.rows
    monkeypatch.setattr(
        "sys.argv", ["layers", "--only", "columns", "--batch", "1", "--rounds", "1"]
    )
    monkeypatch.setattr(layers, "LAYERS", [*layers.LAYERS[:1], *layers.LAYERS[5:6]])
    layers.main()
    head, *rows, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[-3:] == ["fix/dyn", "torch/dyn", "apart"]
    assert [row.split("  ")[0] for row in rows] == [
        "linear, 10 columns",
        "linear of rows, 10 columns",
    ]
    assert all(float(row.split()[-1]) < 1e-4 for row in rows)
    assert first.startswith("fixed / dynamic: geometric mean")
    assert second.startswith("PyTorch / dynamic: geometric mean")


def test_every_element_wise_operator_is_a_row_beside_torch(monkeypatch, capsys):
    from benchmarks import elementwise
    from benchmarks.elementwise_rows import LEFT_OUT, ROWS
    from weft.ir.op import Op
    from weft.ir.traits import Trait, has
    from weft.relax.op.definition import FUNCTIONS

    operators = {name: Op.get(f"relax.{name}") for name in FUNCTIONS if name != "call_packed"}
    names = {name for name, operator in operators.items() if has(operator, Trait.ELEMENTWISE)}
    assert names - LEFT_OUT == {row.name for row in ROWS}
    assert LEFT_OUT < names
    for row in ROWS:
        given = elementwise.arguments(row, "bool" if "logical" in row.name else "float32", 8)
        assert len(given) == row.arity
    monkeypatch.setattr(elementwise, "SECONDS", 0.0)
    monkeypatch.setattr(elementwise, "ROUNDS", 1)
    arguments = ["elementwise", "--only", "acosh,erfcx", "--size", "64"]
    monkeypatch.setattr("sys.argv", [*arguments, "--dtypes", "float32,bfloat16,int32"])
    elementwise.main()
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["float32", "bfloat16", "int32"]
    assert [line.split()[0] for line in lines] == ["acosh", "erfcx", "geometric", "least"]
    assert lines[1].split()[3] == "-", "torch has no erfcx of bfloat16"


def test_products_of_integers_have_times_and_a_share_of_a_peak(monkeypatch):
    pytest.importorskip("onnxruntime")
    from benchmarks import integer_products, kernels
    from weft.target.machine import machine_of

    target = "llvm -num-cores=1"
    if not machine_of(target).dot_products:
        pytest.skip("dot products are x86's")
    monkeypatch.setattr(kernels, "SECONDS", 0.0)
    monkeypatch.setattr(integer_products, "TURNS", 1)
    assert integer_products.peak_of(target) > 0
    case = integer_products.Case("MatMul", (2, 8), (8, 16))
    assert case.products == 2 * 8 * 16
    times = integer_products.times_of(case, "uint8", target)
    assert tuple(times) == integer_products.FORMS
    assert all(second >= 0 for pair in times.values() for second in pair)
    names = [one.name for one in integer_products.CASES]
    assert len(set(names)) == len(names)


def test_symbolic_sizes_are_measured_beside_fixed_ones(monkeypatch, capsys):
    pytest.importorskip("onnxruntime")
    from benchmarks import dynamic, turns

    [mlp] = [item for item in dynamic.DYNAMIC_NETWORKS if item.make == "mlp"]
    row = dataclasses.replace(mlp, sizes=mlp.sizes[1:2])
    monkeypatch.setattr(dynamic, "DYNAMIC_NETWORKS", (row,))
    monkeypatch.setattr(turns, "SECONDS", 0.01)
    monkeypatch.setattr(sys, "argv", ["dynamic", "--rounds", "1"])
    dynamic.main()
    _, row, *means = capsys.readouterr().out.splitlines()
    assert row.split()[2] == "16x784"
    fixed, hot, symbolic, peer, *ratios, apart = [float(text) for text in row.split()[3:]]
    assert min(fixed, hot, symbolic, peer) > 0
    wanted = fixed / symbolic, fixed / hot, peer / symbolic, peer / hot
    assert ratios == pytest.approx(wanted, rel=0.1)
    assert apart < 1e-5
    titles = "fixed / dynamic", "fixed / hot", "ONNX Runtime / dynamic", "ONNX Runtime / hot"
    for title, mean in zip(titles, means, strict=True):
        assert mean.startswith(f"{title}: geometric mean")


def test_kernels_are_measured_alone_and_with_their_activation(monkeypatch, capsys):
    from benchmarks import kernels

    monkeypatch.setattr(kernels, "SECONDS", 0.0)
    monkeypatch.setattr(kernels, "TURNS", 1)
    monkeypatch.setattr("sys.argv", ["kernels", "--only", "conv 1x1 40 to 240"])
    kernels.main()
    _, row, mean, least = capsys.readouterr().out.splitlines()
    assert row.endswith("15.1 MFLOP  EfficientNet-B0: conv 1x1 40 to 240, 28, silu")
    alone, whole = row.split()[:2]
    assert alone != whole, "the same kernel was measured twice"
    assert mean.split()[:2] == least.split()[:2] == [alone, whole]


def test_the_limits_answer_like_engines():
    from benchmarks.limits import COPY, LIMITS, PEAK
    from weft.cli.engines import Server

    server = Server(LIMITS)
    for name in (PEAK, COPY):
        server({"engine": name, "threads": 2, "bytes": 1 << 20})
        assert server({"run": 1})["seconds"] >= 0


def test_an_engine_that_dies_or_hangs_is_a_row_that_says_so(monkeypatch, capsys, tmp_path):
    from benchmarks import measure
    from benchmarks.operators import OPERATORS
    from benchmarks.report import Table, figures

    (tmp_path / "hanging.py").write_text("import time; time.sleep(600)", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(measure, "HELPERS", {"weft": "no_such_module", "OpenVINO": "hanging"})
    row = OPERATORS[-1].row
    plan = measure.Plan(("weft", "OpenVINO"), threads=1, rounds=1, timeout=0.5, limits=False)
    before = os.sched_getaffinity(0)
    results = list(measure.measure([row, row], plan))
    assert os.sched_getaffinity(0) == before
    table = Table("", plan)
    for result in results:
        table.add(result)
        assert result.engines["weft"].error
        assert result.engines["OpenVINO"].error == "no answer within 0.5 s; stopped (--timeout)"
        assert result.ratio is None
    table.print(results)
    out = capsys.readouterr().out
    assert "failed (1)" in out
    assert f"(4) {row.name}, OpenVINO: " in out
    assert figures("ops", plan, results)["rows"][0]["engines"]["weft"]["median"] is None


def result_of(times, **limits):
    from benchmarks.measure import Result, Timing
    from benchmarks.operators import OPERATORS

    engines = {name: Timing(seconds) for name, seconds in times.items()}
    return Result(OPERATORS[0].row, engines, **limits)


def test_medians_shares_and_the_best_peer():
    found = result_of(
        {"weft": [3.0, 2.0, 1.0], "torch eager": [8.0], "TVM": [5.0]},
        flops=10.0, nbytes=8.0, peak=10.0, bandwidth=16.0,
    )  # fmt: skip
    assert found.limit == 1.0  # of arithmetic; memory would allow half of it
    assert found.ratio == 2.5
    assert found.engines["weft"].median == 2.0
    assert found.engines["weft"].spread == 0.25  # quartiles 1.5 and 2.5
    assert result_of({"weft": [1.0]}).limit is None
    assert result_of({"weft": [1.0]}).ratio is None


def test_a_result_that_differs_is_marked(capsys):
    from benchmarks.measure import Plan
    from benchmarks.report import Table

    found = result_of({"weft": [1.0], "TVM": [1.0]})
    found.engines["weft"].apart, found.engines["TVM"].apart = 1e-6, float("nan")
    table = Table("", Plan(("weft", "TVM"), 1, limits=False))
    table.add(found)
    table.print([found])
    out = capsys.readouterr().out
    assert "TVM: differs from the reference by nan" in out
    assert "weft: differs" not in out


def test_a_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.picture import draw

    rows = [result_of({"weft": [1.0], "TVM": [3.0]}, flops=1.0, peak=2.0, bandwidth=1.0)]
    draw(rows, ("weft", "TVM"), tmp_path / "picture.svg", "a title")
    assert (tmp_path / "picture.svg").stat().st_size > 1000


BAD = [
    (["ops", "--only", "no such operator"], "no row has that in its name; there are 'ResNet-50"),
    (["ops", "--engines", "weft,tvn"], "'tvn' is no engine; there are weft, torch eager"),
    (["models", "--json", "no/such/folder.json"], "there is no such folder"),
]


@pytest.mark.parametrize(("arguments", "told"), BAD, ids=[row[1] for row in BAD])
def test_bad_uses_end_with_status_2(capsys, arguments, told):
    from benchmarks.__main__ import main

    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("benchmarks: ")
    assert told in error
    assert error.count("\n") == 1


def test_a_number_of_rounds_is_positive(capsys):
    from benchmarks.__main__ import main

    with pytest.raises(SystemExit, match="2"):
        main(["models", "--rounds", "0"])
    assert "argument --rounds: expected a positive number, got 0" in capsys.readouterr().err


def test_list_prints_names_only(capsys):
    from benchmarks.__main__ import main

    assert main(["models", "--list", "--only", "resnet"]) == 0
    assert capsys.readouterr().out == "ResNet-18\nResNet-50\n"
