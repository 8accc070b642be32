"""``weft compare`` and ``weft ops``: inputs by name, files of programs, what cannot be compared."""

from __future__ import annotations

import pytest

from weft.cli import main
from weft.cli.arguments import Sizes, parse_input, parse_sizes, random_array
from weft.support.errors import IRValueError

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
pytestmark = [pytest.mark.torch, pytest.mark.onnx]

SOURCE = """
import torch

class Half(torch.nn.Module):
    def forward(self, x, factor=2):
        return (torch.relu(x) * factor).bfloat16()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "cmpnets.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def weft_command(*arguments):
    return main.main([str(item) for item in arguments])


def model(name, shape, **options):
    from tests.lib.onnx_models import info, node
    from tests.lib.onnx_models import model as made

    onnx.save(made([node(name, "x", "y", **options)], [info("x", shape=shape)], ["y"]), "m.onnx")


def test_inputs_by_name_and_results_of_other_types(folder, capsys):
    assert weft_command("compare", "cmpnets:Half", "--input", "x:2x3") == 0
    assert capsys.readouterr().out.count("all within") == 2


def test_code_generation_is_a_row_that_names_the_kernel(folder, capsys, monkeypatch):
    from weft.codegen.llvm import expr
    from weft.tir.expr import Mul

    assert weft_command("compare", "cmpnets:Half", "--input", "x:2x3") == 0
    told = capsys.readouterr().out
    assert "code generation: 1 kernels interpreted and native, 0 cut short\n  all agree" in told
    monkeypatch.setitem(expr.EXPRESSIONS, Mul, expr._arithmetic("mul", "fadd"))
    assert weft_command("compare", "cmpnets:Half", "--input", "x:2x3") == 1
    told = capsys.readouterr().out
    assert "  first to differ: fused_relu_multiply_cast" in told
    assert "the interpreter gives" in told


def test_a_saved_program(folder, capsys):
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2, 3),))
    torch.export.save(program, "relu.pt2")
    assert weft_command("compare", "relu.pt2") == 0
    assert "relu = aten.relu.default" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["compare", "ops"])
@pytest.mark.parametrize(
    ("file", "message"),
    [("bad.onnx", "expected an ONNX model"), ("bad.pt2", "no program that torch.export.save")],
)
def test_damaged_files(folder, capsys, command, file, message):
    (folder / file).write_bytes(b"\x08\x01garbage")
    assert weft_command(command, file) == 2
    assert message in capsys.readouterr().err


def test_what_the_reference_of_onnx_cannot_run(folder, capsys):
    model("Gelu", ["n", 3], domain="com.microsoft")
    assert weft_command("compare", "m.onnx") == 2
    assert "ONNX's reference implementation cannot run it" in capsys.readouterr().err


def test_extents_that_the_model_does_not_name(folder, capsys):
    model("Relu", [None, 3])
    assert weft_command("compare", "m.onnx") == 0
    assert "all within" in capsys.readouterr().out


def batch_norm(opset):
    import numpy as np

    from tests.lib.onnx_models import info, node
    from tests.lib.onnx_models import model as made

    values = {"s": 2, "b": 1, "m": 3, "v": 4}
    numbers = {name: np.full(3, value, "float32") for name, value in values.items()}
    calls = [node("BatchNormalization", "x s b m v", "y"), node("Relu", "y", "z")]
    proto = made(calls, [info("x", shape=[2, 3, 4])], ["z"], constants=numbers, opset=opset)
    onnx.save(proto, "m.onnx")


@pytest.mark.parametrize("opset", [9, 13, 15])
def test_batch_normalization_of_old_opsets_is_compared_with_onnxruntime(folder, capsys, opset):
    pytest.importorskip("onnxruntime")
    batch_norm(opset)
    assert weft_command("compare", "m.onnx") == 0
    assert capsys.readouterr().out.count("all within") == 2


def test_without_onnxruntime_it_says_what_old_opsets_suffer_from(folder, capsys, monkeypatch):
    from weft.cli import compare_onnx

    found = compare_onnx.importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "onnxruntime" else found(name)
    )
    batch_norm(9)
    assert weft_command("compare", "m.onnx") == 1
    assert "install onnxruntime to compare with that" in capsys.readouterr().out


def test_sizes_of_a_file(folder, capsys, monkeypatch):
    shapes = []
    monkeypatch.setattr(
        "weft.cli.compare_onnx.random_array",
        lambda shape, dtype, rng: shapes.append(shape) or random_array(shape, dtype, rng),
    )
    model("Relu", ["n", 3])
    assert weft_command("compare", "m.onnx", "--size", "n=7") == 0
    assert weft_command("compare", "m.onnx", "--input", "x:mx3:float32", "--size", "m=5") == 0
    assert shapes == [(7, 3), (5, 3)]
    assert weft_command("compare", "m.onnx", "--size", "n") == 2
    assert "--size n: expected name=number" in capsys.readouterr().err


def test_bench_of_bfloat16(folder, capsys):
    arguments = ["--input", "x:2x3:bfloat16", "--rounds", 1, "--engine", "weft"]
    assert weft_command("bench", "cmpnets:Half", *arguments, "--engine", "torch eager") == 0
    table = capsys.readouterr().out.splitlines()[2:]
    assert [line.split("  ")[0] for line in table] == ["weft", "torch eager"]
    assert all(line.split()[-1].replace(".", "").isdigit() for line in table)


def test_sizes_of_expressions():
    sizes = Sizes({"n": 5})
    assert sizes.shape(("n", "n + 1", "2*n", "a-b")) == (5, 6, 10, 4)


@pytest.mark.parametrize("text", ["x:2:handle", "x:2:float32x4", "x:2:int4", "x:2:void", "x:²"])
def test_inputs_that_no_array_has(text):
    with pytest.raises(IRValueError, match="--input"):
        parse_input(text)


def test_numbers_in_other_scripts_are_none():
    with pytest.raises(IRValueError, match="--size n=²: expected name=number"):
        parse_sizes(["n=²"])


def test_an_input_larger_than_memory():
    import numpy as np

    with pytest.raises(IRValueError, match="does not fit into memory"):
        random_array((1 << 40, 1 << 40), "float32", np.random.default_rng(0))


def test_files_that_are_no_arrays_and_places_that_are_none(folder, capsys):
    model("Relu", [2, 3])
    assert weft_command("compile", "m.onnx", "-o", "m.weft") == 0
    (folder / "bad.npz").write_bytes(b"PK\x03\x04xxxx")
    assert weft_command("run", "m.weft", "--input", "bad.npz") == 2
    assert "bad.npz: expected a .npy or .npz file" in capsys.readouterr().err
    assert weft_command("ops", "x" * 5000 + ".onnx") == 2
    assert "there is no such file" in capsys.readouterr().err


def test_inputs_of_bfloat16(folder, capsys):
    arguments = ["cmpnets:Half", "--input", "x:2x3:bfloat16"]
    assert weft_command("compile", *arguments, "-o", "m.weft") == 0
    assert "x: (2, 3) bfloat16" in capsys.readouterr().out
    assert weft_command("compile", *arguments, "-o", "m.weft", "--dynamic", "x:²=n") == 2
    assert "expected input:axis=name" in capsys.readouterr().err
