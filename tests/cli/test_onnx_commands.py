"""The subcommands on an ONNX file."""

from __future__ import annotations

import numpy as np
import pytest

from weft.cli import main

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.onnx


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model of two layers, ``net.onnx``, whose batch has the name ``n``."""
    monkeypatch.chdir(tmp_path)
    helper = onnx.helper
    rng = np.random.default_rng(0)
    weights = [
        onnx.numpy_helper.from_array(rng.standard_normal(shape).astype("float32"), name)
        for name, shape in (("w", (3, 4)), ("b", (4,)))
    ]
    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="dense"),
            helper.make_node("HardSwish", ["h"], ["y"], name="swish"),
        ],
        "net",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 4])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, "net.onnx")
    return tmp_path


def weft_command(*arguments):
    return main.main([str(item) for item in arguments])


def test_compile_and_run(folder, capsys):
    assert weft_command("compile", "net.onnx", "-o", "m.weft") == 0
    assert "x: (n, 3) float32" in capsys.readouterr().out
    x = np.random.default_rng(1).standard_normal((5, 3)).astype("float32")
    np.save("x.npy", x)
    assert weft_command("run", "m.weft", "--input", "x=x.npy", "--output", "y.npy") == 0
    reference = pytest.importorskip("onnx.reference")
    expected = reference.ReferenceEvaluator("net.onnx").run(None, {"x": x})[0]
    np.testing.assert_allclose(np.load("y.npy"), expected, rtol=1e-5, atol=1e-6)


def test_ops_tells_why_a_model_without_missing_operators_does_not_import(folder, capsys):
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("ReduceSum", ["x", "axes"], ["y"])], "net",
        [onnx.helper.make_tensor_value_info("x", 1, ["n", 3]),
         onnx.helper.make_tensor_value_info("axes", 7, [1])],
        [onnx.helper.make_tensor_value_info("y", 1, None)],
    )  # fmt: skip
    onnx.save(onnx.helper.make_model(graph), "sum.onnx")
    assert weft_command("ops", "sum.onnx") == 1
    out = capsys.readouterr().out
    assert "1 operators, 0 missing\nnot imported: ReduceSum node" in out


def test_ops_and_compare(folder, capsys):
    assert weft_command("ops", "net.onnx") == 0
    out = capsys.readouterr().out
    assert "Gemm" in out
    assert "2 operators, 0 missing" in out
    assert weft_command("compare", "net.onnx") == 0
    out = capsys.readouterr().out
    assert "y = HardSwish swish" in out
    assert out.count("all within") == 2


def test_what_is_missing_is_told_before_and_at_compiling(folder, capsys):
    model = onnx.load("net.onnx")
    model.graph.node[1].op_type = "HardSwich"
    onnx.save(model, "bad.onnx")
    assert weft_command("ops", "bad.onnx") == 1
    assert "HardSwich  missing  (nearest: HardSwish)" in capsys.readouterr().out
    assert weft_command("compile", "bad.onnx", "-o", "m.weft") == 2
    assert "HardSwich, once, first at node 'swish'; nearest: HardSwish" in capsys.readouterr().err


def test_bench_runs_weft_on_a_file(folder, capsys):
    assert weft_command("bench", "net.onnx", "--rounds", 1, "--engine", "weft") == 0
    assert "weft" in capsys.readouterr().out
