"""What IPython shows of weft: values in a cell, errors, names that tab completes."""

from __future__ import annotations

import atexit
import re
import sys

import pytest

import weft
from weft.support.errors import InternalError

pytest.importorskip("IPython")


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    folder = tmp_path_factory.mktemp("ipython")
    kept = sys.modules["__main__"], sys.displayhook, sys.excepthook
    shell = InteractiveShell.instance(config=config, ipython_dir=str(folder), colors="nocolor")
    shell.Completer.use_jedi = False
    shell.run_cell(
        "import weft as tvm\nimport numpy as np\nfrom weft import relax, te, tir, topi\n"
        "from weft.script import ir as I, relax as R, tir as T"
    )
    yield shell
    sys.modules["__main__"], sys.displayhook, sys.excepthook = kept
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
    InteractiveShell.clear_instance()


@pytest.fixture
def cell(shell, capsys):
    """``cell(text)``: the result of a cell and what it prints."""

    def run(text):
        capsys.readouterr()
        result = shell.run_cell(text, store_history=True)
        return result, capsys.readouterr().out

    return run


SCRIPT = """
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            B[vi] = {value}
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("te.placeholder((4, 8), name='A')", "A: float32[4, 8]"),
        ("te.compute((4,), lambda i: i + 1, name='B')", "B: int32[4]\nB[i] = i + 1"),
        ("[topi.nn.relu(te.placeholder((4,)))]", "[compute: float32[4]\ncompute[i0] = T.max("),
    ],
)
def test_a_value_alone_in_a_cell(cell, text, shown):
    _, printed = cell(text)
    assert shown in printed
    assert "Traceback" not in printed


def test_nn_modules_show_their_tree(cell):
    result, _ = cell(
        "from weft.relax.frontend import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        self.layers = nn.ModuleList([nn.Linear(4, 8), nn.ReLU()])\n"
        "        self.scale = nn.Parameter((8,))\n"
        "Net()"
    )
    assert repr(result.result) == (
        "Net(\n  scale: [8]\n  (layers): ModuleList(\n    (0): Linear(weight: [8, 4], bias: [8])\n"
        "    (1): ReLU()\n  )\n)"
    )


def test_a_parse_error_is_short_and_names_the_cell(cell, shell):
    number = shell.execution_count
    result, printed = cell(SCRIPT.format(value="C[vi]"))
    assert isinstance(result.error_in_exec, RuntimeError)
    assert f"--> Cell In[{number}]:6:21" in printed
    assert printed.startswith("DiagnosticError: error: ")
    assert len(printed.splitlines()) <= 10


def test_a_wrong_type_in_an_annotation_names_the_cell(cell, shell):
    number = shell.execution_count
    _, printed = cell('def f(A: T.Buffer((4,), "flaot32")): pass')
    assert f"--> Cell In[{number}]:1:10" in printed
    assert "did you mean 'float32'?" in printed


def test_a_full_traceback_on_request(cell, monkeypatch):
    monkeypatch.setenv("WEFT_FULL_TRACEBACK", "1")
    _, printed = cell(SCRIPT.format(value="C[vi]"))
    assert "Traceback (most recent call last)" in printed


OWN_FRAME = re.compile(r"File .*weft/\w+/")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "x = te.placeholder((4, 5), name='x')\ntopi.matmul(x, x)",
            "----> 2 topi.matmul(x, x)",
            "matmul: the shapes (4, 5) and (4, 5) do not multiply",
        ),
        (
            "def at(i):\n    return x[i, 0, 0]\nx = te.placeholder((4, 5), name='x')\n"
            "te.compute((4,), at)",
            "----> 2     return x[i, 0, 0]",
            "tensor x has 2 dimensions, got 3 indices",
        ),
        (
            "x = te.placeholder((4,), name='x')\n"
            "f = te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0)])\n"
            "tvm.build(f, 'llvm')(tvm.nd.array([1.0]), tvm.nd.array([2.0]))",
            "----> 3 tvm.build(f, 'llvm')(tvm.nd.array([1.0]), tvm.nd.array([2.0]))",
            "argument 0 (x): expected dtype float32, got float64",
        ),
    ],
)
def test_an_error_shows_the_users_lines_and_no_frame_of_weft(cell, text, line, message):
    result, printed = cell(text)
    assert isinstance(result.error_in_exec, weft.TVMError)
    assert line in printed
    assert message in printed
    assert not OWN_FRAME.search(printed), printed


def test_all_frames_of_an_error_show_on_request_and_of_a_bug_of_weft(cell, monkeypatch):
    broken = "x = te.placeholder((4, 5), name='x')\ntopi.matmul(x, x)"
    monkeypatch.setenv("WEFT_FULL_TRACEBACK", "1")
    assert OWN_FRAME.search(cell(broken)[1])
    monkeypatch.delenv("WEFT_FULL_TRACEBACK")

    def bug(*args, **kwargs):
        raise InternalError("an invariant does not hold")

    monkeypatch.setattr("weft.topi.linear.may_be_equal", bug)
    assert OWN_FRAME.search(cell(broken)[1])


def test_a_cause_of_the_user_shows_and_one_inside_of_weft_does_not(cell):
    _, printed = cell(
        "try:\n    {}['missing']\nexcept KeyError as error:\n"
        "    raise tvm.TVMError('no such row') from error"
    )
    assert "KeyError: 'missing'" in printed
    assert "TVMError: no such row" in printed
    _, printed = cell("tvm.target.Target('llvm -mcpu')")
    assert not OWN_FRAME.search(printed), printed
    assert "direct cause" not in printed


def test_a_long_text_says_how_to_see_all(cell):
    cell(SCRIPT.format(value="A[vi] + 1.0"))
    _, printed = cell("print(tvm.IRModule({'f': f}))")
    assert re.search(r"\d+ more lines; show\(\) prints all\)", printed)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tvm.ir.instrument.", "PassTimingInstrument"),
        ("topi.nn.", "relu"),
        ("R.nn.", "softmax"),
        ("T.", "prim_func"),
        ("T.axis.", "remap"),
        ("te.", "placeholder"),
        ("relax.op.", "matmul"),
        ("relax.transform.", "FuseOps"),
        ("tir.Schedule.", "get_block"),
    ],
)
def test_tab_completion(shell, text, name):
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        offered = {item.text.lstrip(".") for item in shell.Completer.completions(text, len(text))}
    assert name in offered
    assert not {"annotations", "difflib", "functools", "Any", "Final", "importlib"} & offered


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("relax.op.addd", "relax.op.add"),
        ("topi.relux", "topi.nn.relu"),
        ("te.computee", "te.compute"),
        ("T.axis.spacial", "T.axis.spatial"),
        ("T.parallell", "T.parallel"),
        ("R.matmull", "R.matmul"),
        ("tvm.nd.arrray", "nd.array"),
        ("relax.transform.FuseOpss", "FuseOps"),
    ],
)
def test_a_misspelt_name_gives_the_nearest(cell, text, meant):
    _, printed = cell(text)
    last = printed.strip().splitlines()[-1]
    assert re.search(rf"did you mean .*{re.escape(meant)}", last)
