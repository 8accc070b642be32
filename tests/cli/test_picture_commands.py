"""``weft viz``, ``profile``, ``diff`` and the stages of ``show``, on small models and programs."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

import weft
from tests.lib.picture_models import convolutional, layered
from tests.lib.picture_schema import check_picture
from weft.cli import main
from weft.cli.tables import aligned

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = """
from tvm.script import tir as T

SIZE = 64

@T.prim_func
def doubled(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in T.parallel(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)
"""
NETWORK = """
import torch

def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 9))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a program and a network, where the command runs."""
    (tmp_path / "prog.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "vizuals.py").write_text(NETWORK, encoding="utf-8")
    (tmp_path / "empty.py").write_text("number = 3\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("vizuals", None)


def weft_command(*arguments):
    return main.main([str(item) for item in arguments])


def test_viz_writes_a_page_its_data_and_a_trace(folder, capsys):
    outputs = ["-o", "page.html", "--json", "data.json", "--trace", "trace.json"]
    assert weft_command("viz", "vizuals:net", "--input", "nx256", "--size", "n=12", *outputs) == 0
    assert capsys.readouterr().out.count("vizuals:net -> ") == 3
    data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    check_picture(data)
    assert data["profile"]["calls"]
    assert (folder / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    events = json.loads((folder / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    kernels = [event["name"] for event in events if event.get("cat") == "kernel"]
    assert set(kernels) == {call["kernel"] for call in data["profile"]["calls"]}
    passes = [event for event in events if event.get("cat") == "pass"]
    assert len(passes) == len(data["passes"])
    assert all(event["dur"] >= 0 for event in passes)


def test_viz_shows_a_program_and_a_file(folder, capsys):
    assert weft_command("viz", "prog.py", "--json", "data.json") == 0
    data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    check_picture(data)
    assert [kernel["name"] for kernel in data["kernels"]] == ["doubled"]
    weft.compile(convolutional()).save("m.weft")
    assert weft_command("viz", "m.weft", "--json", "file.json") == 0
    check_picture(json.loads((folder / "file.json").read_text(encoding="utf-8")))
    capsys.readouterr()


def test_viz_without_times_does_not_run_the_model(folder, capsys):
    arguments = ["viz", "vizuals:net", "--input", "5x256", "--json", "data.json", "--no-times"]
    assert weft_command(*arguments) == 0
    data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    assert data["profile"] is None
    assert data["summary"]["call_us"] is None
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["viz", "prog.py"], "expected -o page.html, --json FILE or --trace FILE"),
        (["viz", "prog.py", "--json", "d.json", "--open"], "--open needs -o page.html"),
        (["viz", "empty.py", "--json", "d.json"], "expected a module or functions in TVMScript"),
        (["viz", "none.py", "--json", "d.json"], "there is no such file"),
        (["viz", "prog.py", "--trace", "t.json"], "no run was measured"),
        (["profile", "prog.py"], "is no model"),
        (["show", "prog.py", "--stage", "host"], "there is no host function"),
        (["show", "prog.py", "--stage", "asm", "--function", "x"], "there are doubled"),
    ],
)
def test_what_cannot_be_shown_is_refused(folder, capsys, arguments, message):
    assert weft_command(*arguments) == 2
    assert message in capsys.readouterr().err


def test_profile_lists_the_kernels_by_the_time_that_they_waste(folder, capsys):
    assert weft_command("profile", "vizuals:net", "--input", "12x256") == 0
    out = capsys.readouterr().out
    assert "of peak" in out
    assert "fused_matmul_add_relu" in out
    assert "GFLOP/s" in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("imported", "T.parallel(64)"), ("scheduled", "T.axis.spatial"),
        ("lowered", "B[i] = A[i] * T.float32(2.0)"), ("llvm", "fmul"), ("opt", "fmul"),
        ("asm", "doubled"),
    ],
)  # fmt: skip
def test_show_prints_each_stage_of_a_program(folder, capsys, stage, text):
    assert weft_command("show", "prog.py", "--stage", stage, "--function", "doubled") == 0
    assert text in capsys.readouterr().out


def test_show_prints_the_parallel_part_of_a_kernel(folder, capsys):
    arguments = ["show", "vizuals:net", "--input", "200x256", "--target", TARGET, "--stage"]
    assert weft_command(*arguments, "scheduled") == 0
    out = capsys.readouterr().out
    name = next(
        line.split("def ")[1].split("(")[0] for line in out.split("\n") if "def fused_" in line
    )
    for stage in ("llvm", "opt", "asm"):
        assert weft_command(*arguments, stage, "--function", name) == 0
        assert f"weft.parallel.{name}.0" in capsys.readouterr().out


TARGET = "llvm -num-cores=4"


def test_show_prints_the_host_function(folder, capsys):
    arguments = ["show", "vizuals:net", "--input", "5x256", "--stage", "host"]
    assert weft_command(*arguments) == 0
    out = capsys.readouterr().out
    assert "main__host" in out
    assert "arena" in out


def test_show_prints_the_program_of_a_file(folder, capsys):
    weft.compile(layered()).save("m.weft")
    assert weft_command("show", "m.weft") == 0
    assert "R.matmul" in capsys.readouterr().out
    assert weft_command("show", "m.weft", "--stage", "llvm") == 2
    assert "--stage imported and asm are all" in capsys.readouterr().err


def test_show_disassembles_a_file(folder, capsys):
    if shutil.which("objdump") is None:
        pytest.skip("needs the program objdump (Debian's package binutils)")
    weft.compile(layered()).save("m.weft")
    assert weft_command("show", "m.weft", "--stage", "asm") == 0
    assert "weft__main__host:" in capsys.readouterr().out
    assert weft_command("show", "m.weft", "--stage", "asm", "--function", "main__host") == 0
    out = capsys.readouterr().out
    assert out.startswith("weft__main__host:\n\t")
    assert out.count("weft__") > out.count("weft__main__host")  # it calls the kernels
    assert weft_command("show", "m.weft", "--stage", "asm", "--function", "other") == 2
    assert "there is no function 'other' at this stage" in capsys.readouterr().err


def test_diff_tells_what_differs(folder, capsys):
    weft.compile(layered(20)).save("a.weft")
    weft.compile(layered(24)).save("b.weft")
    assert weft_command("diff", "a.weft", "a.weft") == 0
    assert "hold the same model" in capsys.readouterr().out
    assert weft_command("diff", "a.weft", "b.weft", "--text") == 1
    out = capsys.readouterr().out
    assert "x: (20, 256) float32" in out
    assert "x: (24, 256) float32" in out
    assert "kernel weft__main__host" in out
    assert "+def main(x: R.Tensor((24, 256)" in out.replace("    ", "")


def test_a_table_without_rich_is_aligned():
    assert aligned(["a", "b"], [["x", "10"], ["long", "2"]]).split("\n") == [
        "a      b", "x     10", "long   2",
    ]  # fmt: skip
