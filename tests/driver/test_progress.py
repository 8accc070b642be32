"""What a compilation shows: at a terminal and when it takes long, nothing else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from weft.driver.progress import Progress

PROGRAM = """
import sys, time
import numpy as np, weft
from weft.driver import progress
from weft import relax
if "hide" in sys.argv:
    sys.modules["rich"] = sys.modules["rich.console"] = None
progress.DELAY = float(sys.argv[2])
x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
builder = relax.BlockBuilder()
with builder.function("main", [x]):
    builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))

def slow(module):
    time.sleep(float(sys.argv[1]))
    return weft.relax.get_pipeline("weft")(module)

model = weft.compile(builder.get(), relax_pipeline=slow)
print(model(np.array([-1, 1], "float32")))
"""


def run_at_terminal(*arguments):
    """Standard error of the program, whose standard error is a terminal."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # how a terminal says that nobody writes any more
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    out = done.communicate(timeout=600)[0].decode()
    assert done.returncode == 0, shown.decode()
    assert out == "[0. 1.]\n"
    return shown.decode()


def test_long_work_is_shown_at_a_terminal():
    pytest.importorskip("rich")
    shown = run_at_terminal("2.5", "0.3")
    assert "weft: IRModule: passes on the graph" in shown
    assert "\x1b[2K" in shown  # the line goes away


@pytest.mark.parametrize("arguments", [("0", "60"), ("2.5", "0.3", "hide")])
def test_quick_work_and_work_without_rich_are_silent(arguments):
    assert run_at_terminal(*arguments) == ""


def test_no_terminal_no_text():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "2", "0.3"], capture_output=True, text=True, check=True,
        timeout=600,
    )  # fmt: skip
    assert done.stderr == ""


def test_the_stages_of_a_compilation(monkeypatch):
    import weft
    from weft.script import ir as I
    from weft.script import relax as R

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y = R.nn.relu(x)
            return y

    stages = []
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    monkeypatch.setattr(Progress, "stage", lambda self, *told: stages.append(told))
    weft.compile(Module)
    kernels = 2  # relu, and the native host function of main
    assert stages == [
        ("looking it up",), ("importing", None, None), ("passes on the graph", None, None),
        ("compiling kernels", 1, kernels), ("compiling kernels", 2, kernels),
        ("optimising kernels", None, None),
    ]  # fmt: skip


def test_parts_that_are_done_are_shown():
    shown = []

    class Display:
        def update(self, task, **values):
            shown.append(values)

    with Progress("x", delay=60) as progress:
        progress._display, progress._task = Display(), 0
        progress.stage("compiling kernels", 12, 53)
        progress.stage("optimising")
        progress._display = None
    assert shown == [
        {"description": "weft: x: compiling kernels 12 of 53"},
        {"description": "weft: x: optimising"},
    ]


def test_an_error_takes_the_line_away():
    with pytest.raises(ValueError, match="no"), Progress("x", delay=0) as progress:
        progress.stage("y")
        raise ValueError("no")
    assert progress._display is None
    assert progress._timer is None
