"""The subcommands on small models: what they print, what they write, how they refuse."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.cli import main
from weft.cli.arguments import parse_input
from weft.cli.engines import ENGINES
from weft.cli.models import find_model
from weft.cli.run_model import read_arrays
from weft.support.errors import TVMError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SOURCE = """
import torch

def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))

class Airy(torch.nn.Module):
    def forward(self, x):
        return torch.special.airy_ai(x) + 1.0

def broken():
    raise RuntimeError("no weights here")

number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module of models, where the command runs."""
    (tmp_path / "clinets.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "clibroken.py").write_text("1 / 0", encoding="utf-8")
    (tmp_path / "bad.pt2").write_bytes(b"no zip file")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("clinets", None)


def weft_command(*arguments):
    return main.main([str(item) for item in arguments])


def test_compile_then_run_equals_torch(folder, capsys):
    assert weft_command("compile", "clinets:net", "--input", "nx3", "-o", "m.weft") == 0
    out = capsys.readouterr().out
    assert "m.weft" in out
    assert "kernels" in out
    assert "(n, 3) float32" in out
    x = np.random.default_rng(0).standard_normal((7, 3)).astype("float32")
    np.save("x.npy", x)
    assert weft_command("run", "m.weft", "--input", "x.npy", "--output", "y.npz") == 0
    with np.load("y.npz") as stored:
        found = stored["output"]
    expected = sys.modules["clinets"].net()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert "output: float32 (7, 2)" in capsys.readouterr().out


def test_compile_to_a_folder_for_browsers(folder, capsys):
    arguments = ["compile", "clinets:net", "--input", "nx3", "--target", "wasm", "-o", "web"]
    assert weft_command(*arguments) == 0
    assert "clinets:net -> web: " in capsys.readouterr().out
    assert {"model.js", "model.wasm"} <= {path.name for path in (folder / "web").iterdir()}


def test_compile_with_narrow_weights(folder, capsys):
    arguments = ["compile", "clinets:net", "--input", "5x3", "-o", "m.weft"]
    assert weft_command(*arguments, "--dtype", "bfloat16") == 0
    assert "kernels" in capsys.readouterr().out
    types = {str(array.dtype) for array in weft.load("m.weft").program.constants}
    assert "bfloat16" in types
    with pytest.raises(SystemExit):
        weft_command(*arguments, "--dtype", "int4")
    assert "invalid choice: 'int4'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stage", "told"),
    [
        ("imported", "R.matmul"), ("legalized", "R.call_tir"), ("fused", "@T.prim_func"),
        ("scheduled", "T.vectorized"), ("llvm", "define"), ("asm", ".globl"),
    ],
)  # fmt: skip
def test_show_prints_each_stage(folder, capsys, stage, told):
    assert weft_command("show", "clinets:net", "--input", "5x3", "--stage", stage) == 0
    assert told in capsys.readouterr().out


def test_show_one_function_or_say_which_there_are(folder, capsys):
    arguments = ["show", "clinets:net", "--input", "5x3", "--stage", "fused"]
    assert weft_command(*arguments, "--function", "main") == 0
    assert "def main" in capsys.readouterr().out
    assert weft_command(*arguments, "--function", "nothing") == 2
    assert "there are main" in capsys.readouterr().err


def test_ops_lists_the_operators_and_what_is_missing(folder, capsys):
    assert weft_command("ops", "clinets:net", "--input", "5x3") == 0
    out = capsys.readouterr().out
    assert "2  aten.linear.default" in out
    assert "0 missing" in out
    assert weft_command("ops", "clinets:Airy", "--input", "5x3") == 1
    assert "aten.special_airy_ai.default  missing" in capsys.readouterr().out


def test_compare_finds_no_difference_and_names_one(folder, capsys, monkeypatch):
    arguments = ["compare", "clinets:net", "--input", "5x3"]
    assert weft_command(*arguments) == 0
    out = capsys.readouterr().out
    assert out.count("all within 0.0001 of their scale") == 2
    from weft.relax import op
    from weft.relax.frontend.torch.operators import CONVERTERS

    wrong = "aten.relu.default", lambda context, self: op.nn.gelu(self)
    monkeypatch.setitem(CONVERTERS, *wrong)
    assert weft_command(*arguments) == 1
    out = capsys.readouterr().out
    assert "first to differ: relu = aten.relu.default" in out
    assert "first to differ: as imported" in out


def test_bench_times_weft_and_torch_in_processes_of_their_own(folder, capsys):
    arguments = [
        "bench", "clinets:net", "--input", "5x3", "--rounds", 2, "--json", "f.json",
        "--engine", "weft", "--engine", "torch eager",
    ]  # fmt: skip
    assert weft_command(*arguments) == 0
    out = capsys.readouterr().out
    assert "weft" in out
    assert "torch eager" in out
    figures = json.loads((folder / "f.json").read_text(encoding="utf-8"))["engines"]
    assert len(figures["weft"]["seconds"]) == len(figures["torch eager"]["seconds"]) == 2
    assert all(value >= 0 for engine in figures.values() for value in engine["seconds"])


def test_a_file_of_models_is_named_by_its_path(folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "neighbour.py").write_text("size = 4", encoding="utf-8")
    (folder / "deep" / "json.py").write_text(
        "import torch, neighbour\nnet = torch.nn.Linear(neighbour.size, 2)", encoding="utf-8"
    )
    assert find_model("deep/json.py:net").in_features == 4  # not the json that is loaded
    sys.modules.pop("neighbour")


def test_notes_of_an_error_are_told(folder, capsys, monkeypatch):
    from weft.relax.frontend.torch.operators import CONVERTERS

    def refuse(context, self):
        raise TVMError("no such thing")

    monkeypatch.setitem(CONVERTERS, "aten.relu.default", refuse)
    assert weft_command("ops", "clinets:net", "--input", "5x3") == 0
    assert weft_command("show", "clinets:net", "--input", "5x3") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "weft: no such thing"
    assert "while importing" in lines[1]


def test_doctor_tells_versions_features_and_threads(capsys):
    assert weft_command("doctor") == 0
    out = capsys.readouterr().out
    assert f"numpy          {np.__version__}"[:6] in out
    assert np.__version__ in out
    for word in ("LLVM", "features", "threads", "cache", "C compiler"):
        assert word in out


BAD = [
    (["compile", "nothing.onnx", "-o", "m.weft"], "there is no such file"),
    (["compile", "nothing", "-o", "m.weft"], "names no model; expected"),
    (["compile", "clinets:net", "-o", "m.weft"], "needs example inputs: --input"),
    (["compile", "clinets:net", "--input", "5x3", "-o", "m.txt"], r"ends in .weft or .so"),
    (["compile", "clinets:net", "--input", "5x3", "--target", "wasm", "-o", "m.weft"],
     "expected the name of a folder: models for this target are folders"),
    (["compile", "clinets:net", "--input", "5x4", "-o", "m.weft"], "torch.export cannot capture"),
    (["compile", "clinets:other", "--input", "5x3", "-o", "m.weft"], "has no attribute 'other'"),
    (["compile", "nomodule:x", "--input", "5x3", "-o", "m.weft"], "No module named 'nomodule'"),
    (["compile", "clinets:number", "--input", "5x3", "-o", "m.weft"], "is int, not a torch.nn"),
    (["compile", "clinets:broken", "--input", "5x3", "-o", "m.weft"], "no weights here"),
    (["compile", "clinets:Airy", "--input", "5x3", "-o", "m.weft"], "aten.special_airy_ai"),
    (["compile", "clinets:net", "--input", "5x3", "-o", "no/such/m.weft"], "no/such"),
    (["compile", "clinets:net", "--input", "5x3", "--dynamic", "y:0=n", "-o", "m.weft"],
     "there is no axis 0 of an --input named 'y'"),
    (["compile", "clinets:net", "--input", "5x3", "--dynamic", "nonsense", "-o", "m.weft"],
     "expected input:axis=name"),
    (["compile", "clinets:net", "--input", "nx3", "--size", "n", "-o", "m.weft"],
     "expected name=number"),
    (["compile", "clinets:net", "--input", "5x3", "--target", "nonsense", "-o", "m.weft"],
     "nonsense"),
    (["compile", "nothing.py:net", "--input", "5x3", "-o", "m.weft"], "there is no such file"),
    (["compile", "clibroken.py:net", "--input", "5x3", "-o", "m.weft"],
     "importing clibroken.py failed: ZeroDivisionError: division by zero"),
    (["run", "nothing.weft"], "nothing.weft"),
    (["run", "clinets.py"], "clinets.py"),
    (["run", "nothing.weft", "--output", "y.txt"], "ends in .npz or .npy"),
    (["show", "nothing.onnx"], "there is no such file"),
    (["ops", "m.weft"], "there is no such file"),
    (["bench", "clinets:net"], "expected --input"),
    (["bench", "clinets:net", "--input", "5x3", "--rounds", "0"], "expected a positive number"),
    (["bench", "clinets:net", "--input", "5x3", "--timeout", "0"], "expected a positive number"),
    (["bench", "bad.pt2"], "bad.pt2 is no program that torch.export.save wrote"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "told"), BAD, ids=[" ".join(row[0]) for row in BAD])
def test_bad_uses_end_with_status_2_and_one_paragraph(folder, capsys, arguments, told):
    assert weft_command(*arguments) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.err.startswith("weft: ")
    assert len(captured.err.strip().splitlines()) <= 10
    assert "Traceback" not in captured.err


def test_inputs_that_do_not_fit_a_compiled_model_are_told_by_name(folder, capsys):
    assert weft_command("compile", "clinets:net", "--input", "5x3", "-o", "m.weft") == 0
    np.save("bad.npy", np.zeros((5, 4), "float32"))
    (folder / "no.npy").write_bytes(b"nonsense")
    for arguments, told in [
        (["run", "m.weft", "--input", "bad.npy"], "expected shape (5, 3), got (5, 4)"),
        (["run", "m.weft"], "  the model's inputs: input: (5, 3) float32; each is given as --in"),
        (["run", "m.weft", "--input", "no.npy"], "expected a .npy or .npz file"),
        (["run", "m.weft", "--input", "missing.npy"], "there is no such file"),
    ]:
        capsys.readouterr()
        assert weft_command(*arguments) == 2
        assert told in capsys.readouterr().err


def test_arrays_of_another_byte_order_are_read(tmp_path):
    values = np.arange(3, dtype="float32")
    np.save(tmp_path / "x.npy", values.astype(">f4"))
    np.savez(tmp_path / "x.npz", x=values.astype(">f4"))
    for array in (read_arrays(tmp_path / "x.npy"), read_arrays(tmp_path / "x.npz")["x"]):
        assert array.dtype == "float32"
        assert array.dtype.isnative
        np.testing.assert_array_equal(array, values)


def test_a_models_file_has_the_end_of_its_kind(folder, capsys):
    (folder / "noext").write_bytes(b"")
    assert weft_command("compile", "noext", "-o", "m.weft") == 2
    expected = "weft: noext: the names of models end in .onnx, .pt2, or .weft; rename the file"
    assert capsys.readouterr().err.strip() == expected


def test_pipes_and_wrong_arrays_of_run_are_refused_at_once(folder, capsys):
    os.mkfifo("pipe.npy")
    os.mkfifo("pipe.npz")
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824, 1048576)}"
    size = len(header).to_bytes(2, "little")
    (folder / "huge.npy").write_bytes(b"\x93NUMPY\x01\0" + size + header)
    with zipfile.ZipFile("odd.npz", "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x09\x09 what is this")
    for path, told in [
        ("pipe.npy", "expected a regular file, found a pipe"), ("huge.npy", "--input huge.npy: "),
        ("odd.npz", "--input odd.npz: expected a .npy or .npz file"), (".", "Is a directory"),
    ]:  # fmt: skip
        with pytest.raises(TVMError, match=re.escape(told)):
            read_arrays(Path(path))
    assert weft_command("compile", "clinets:net", "--input", "5x3", "-o", "m.weft") == 0
    np.save("x.npy", np.zeros((5, 3), "float32"))
    capsys.readouterr()
    assert weft_command("run", "m.weft", "--input", "x.npy", "--output", "pipe.npz") == 2
    assert "cannot write 'pipe.npz': expected a regular file" in capsys.readouterr().err
    assert weft_command("run", "pipe.npz") == 2
    assert "found a pipe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [("x:", "expected a shape"), ("x:1x-3", "between x"), ("x:2:foo", "no data type"),
     ("a:2:float32:b", "got 4 parts"), ("x:1xx2", "between x")],
)  # fmt: skip
def test_inputs_are_read_strictly(text, told):
    with pytest.raises(TVMError, match=told):
        parse_input(text)


@pytest.mark.parametrize(
    ("path", "told"),
    [("no/such/f.json", "cannot write 'no/such/f.json': there is no folder 'no/such'"),
     (".", "expected the path of a file, got '.'"), ("", "expected the path of a file, got ''"),
     ("results", "cannot write 'results': it is a folder"),
     ("x" * 300, "expected a shorter name of a file")],
)  # fmt: skip
def test_a_file_that_cannot_be_written_is_told_before_the_work(folder, capsys, path, told):
    (folder / "results").mkdir()
    assert weft_command("bench", "clinets:net", "--input", "5x3", "--json", path) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.out == ""


def test_compile_tells_of_a_missing_folder_before_the_work(folder, capsys):
    assert weft_command("compile", "clinets:broken", "-o", "no/m.weft") == 2
    assert "cannot write 'no/m.weft': there is no folder 'no'" in capsys.readouterr().err


@pytest.mark.slow  # torch.compile and torch.onnx take half a minute
def test_bench_runs_every_engine_that_is_installed_on_a_program(folder, capsys):
    example = (torch.ones(5, 3),)
    torch.export.save(torch.export.export(find_model("clinets.py:net"), example), "net.pt2")
    assert weft_command("bench", "net.pt2", "--rounds", 1, "--json", "f.json") == 0
    figures = json.loads((folder / "f.json").read_text(encoding="utf-8"))["engines"]
    installed = [name for name, row in ENGINES.items() if importlib.util.find_spec(row[1])]
    assert list(figures) == installed
    assert [name for name, figure in figures.items() if figure["error"]] == []
