"""The working folder of the course's programs, and two ways to run one: as a script, as a notebook.

A program is a file of ``tests/course/programs``; ``# %%`` begins a cell. Each runs once a session
and way; what it printed, showed and left in its namespace is then looked at by the tests.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import importlib.util
import io
import re
import runpy
import sys
import types
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.data import fashion_mnist
from weft.runtime.registry import list_global_func_names

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
TEST_IMAGES = 200  # of the real test set; the texts go through all of theirs

collect_ignore_glob = ["programs/*"]


@dataclass
class Cell:
    """One executed cell: its source, the value of its last expression, what it printed."""

    source: str
    value: Any
    printed: str
    result: Any = None  # a copy of nd_res as the cell left it, if it assigned one


@dataclass
class Run:
    """One program run: namespace, printed text, objects whose ``show()`` was called, cells."""

    namespace: dict[str, Any]
    printed: str = ""
    shown: list[Any] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)

    def cell(self, start: str) -> Cell:
        """The first cell whose source begins with ``start``, or ends with it."""
        for cell in self.cells:
            if cell.source.startswith(start) or cell.source.endswith(start):
                return cell
        raise LookupError(start)


def example(name: str) -> types.ModuleType:
    """A program of ``examples/`` as a module."""
    path = HERE.parents[1] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def course_files(tmp_path_factory) -> Path:
    """A folder with everything that the texts open, and torchvision ready to read it."""
    pytest.importorskip("torch")
    preparation = example("prepare_course_folder")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            preparation.import_torchvision()
        except ImportError:
            pytest.skip("torchvision is not installed")
    folder = tmp_path_factory.mktemp("course")
    preparation.prepare(folder, fashion_mnist.load_subset().first(TEST_IMAGES))
    return folder


@pytest.fixture
def course_folder(course_files, monkeypatch) -> Path:
    """The folder of ``course_files`` as the working folder."""
    monkeypatch.chdir(course_files)
    return course_files


def cells_of(program: str) -> list[str]:
    """The cells of a program, without the comment that heads the file."""
    text = (PROGRAMS / f"{program}.py").read_text(encoding="utf-8")
    return [cell.strip("\n") for cell in re.split(r"^# %%\n", text, flags=re.MULTILINE)[1:]]


def record_shown(shown: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Append to ``shown`` every module and function whose ``show`` is called."""
    weft = importlib.import_module("weft")
    for owner in (weft.ir.IRModule, weft.tir.PrimFunc, weft.relax.Function):
        original = owner.show

        @functools.wraps(original)
        def show(self, *args, _original=original, **kwargs):
            shown.append(self)
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(owner, "show", show)


def run_script(program: str, folder: Path, shown: list[Any]) -> Run:
    """Run the program as a file of the working folder, as ``python program.py`` does."""
    path = folder / f"{program}.py"
    path.write_text((PROGRAMS / path.name).read_text(encoding="utf-8"), encoding="utf-8")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        namespace = runpy.run_path(str(path), run_name="__main__")
    return Run(namespace, printed.getvalue(), shown)


def run_notebook(program: str, folder: Path, shown: list[Any]) -> Run:
    """Run the program cell by cell in IPython, as a notebook does."""
    interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
    config = importlib.import_module("traitlets.config").Config()
    config.HistoryManager.enabled = False
    kept = sys.modules["__main__"], sys.displayhook, sys.excepthook
    shell = interactiveshell.InteractiveShell(config=config, ipython_dir=str(folder / ".ipython"))
    run = Run(shell.user_ns, shown=shown)
    try:
        for source in cells_of(program):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                outcome = shell.run_cell(source, store_history=True)
            outcome.raise_error()
            result = shell.user_ns["nd_res"].numpy().copy() if "nd_res = " in source else None
            run.cells.append(Cell(source, outcome.result, printed.getvalue(), result))
        run.namespace = dict(shell.user_ns)
    finally:
        sys.modules["__main__"], sys.displayhook, sys.excepthook = kept
        atexit.unregister(shell.atexit_operations)
        shell.atexit_operations()
    run.printed = "".join(cell.printed for cell in run.cells)
    return run


@pytest.fixture(scope="session")
def runs_so_far() -> dict[tuple[str, str], Run]:
    return {}


@pytest.fixture(scope="session")
def registered_by():
    """The functions of the programs (``env.…``) as each run left them registered."""
    return {}


@pytest.fixture
def run_program(course_folder, runs_so_far, registered_by, monkeypatch):
    """``run_program(program, way)``: the program's run, executed at the first call of a session."""
    monkeypatch.setenv("MPLBACKEND", "Agg")

    def run(program: str, way: str) -> Run:
        found = runs_so_far.get((program, way))
        if found is not None:
            for name, function in registered_by[program, way].items():
                weft.register_func(name, function, override=True)  # another run had it after this
            return found
        torch = importlib.import_module("torch")
        torch.manual_seed(7)
        shown: list[Any] = []
        record_shown(shown, monkeypatch)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")
            execute = run_script if way == "script" else run_notebook
            runs_so_far[program, way] = execute(program, course_folder, shown)
        names = [name for name in list_global_func_names() if name.startswith("env.")]
        registered_by[program, way] = {name: weft.get_global_func(name) for name in names}
        importlib.import_module("matplotlib.pyplot").close("all")
        return runs_so_far[program, way]

    return run


@pytest.fixture
def expected_text():
    """``expected_text(name)``: a module's text as a course text prints it."""
    return lambda name: (HERE / "expected" / f"{name}.txt").read_text(encoding="utf-8")


CONSTANT = re.compile(r'(?:meta\[relay\.Constant\]|metadata\["relax\.expr\.Constant"\])\[(\d+)\]')
RETURNS_UNKNOWN = re.compile(r" -> (?:R\.)?Tensor\([^:]*\):$", re.MULTILINE)
INT64 = re.compile(r"T\.int64\((-?\d+)\)")
OUTPUT = re.compile(r"R\.output\((\w+)\)(\s+return )(\w+)$", re.MULTILINE)
HEAD = re.compile(r"^@T\.prim_func(\(private=True\))?\ndef \w+\(", re.MULTILINE)


def normalise(text: str) -> str:
    """The text without what the years changed: widths, return annotations, a function's name.

    Constants become the free names ``constant_0`` …; a dataflow variable that is returned without
    being an output becomes one.
    """
    text = CONSTANT.sub(r"constant_\1", text)
    text = RETURNS_UNKNOWN.sub(":", text)
    text = INT64.sub(r"\1", text)
    text = OUTPUT.sub(
        lambda m: m[0] if m[1] == m[3] else f"R.output({m[3]}, {m[1]}){m[2]}{m[3]}", text
    )
    return HEAD.sub("@T.prim_func\ndef shown(", text)


@pytest.fixture
def comparable():
    """``comparable(text, constants)``: the parsed, normalised text, without naming attributes."""
    weft = importlib.import_module("weft")

    def strip(function):
        for name in ("global_symbol", "Primitive"):
            if function.attrs is not None and name in function.attrs.keys():
                function = function.without_attr(name)
        return function

    def parse(text: str, constants: list[Any]):
        known = {f"constant_{index}": value for index, value in enumerate(constants)}
        known.update(tvm=weft, relax=weft.relax)
        parsed = weft.script.from_source(normalise(text), known, check_well_formed=False)
        if not isinstance(parsed, weft.ir.IRModule):
            return strip(parsed)
        functions = {variable: strip(f) for variable, f in parsed.functions.items()}
        return weft.ir.IRModule(functions)

    return parse


@pytest.fixture
def constants_of():
    """``constants_of(x)``: the constants of a module or function in the order of its text."""
    weft = importlib.import_module("weft")

    def constants(shown) -> list[Any]:
        functions = shown.functions.values() if hasattr(shown, "functions") else [shown]
        found: list[Any] = []
        for function in functions:
            if isinstance(function, weft.relax.Function):
                collect(function, found)
        return found

    def collect(function, found: list[Any]) -> None:
        def note(node) -> None:
            if isinstance(node, weft.relax.Constant) and all(node is not old for old in found):
                found.append(node)

        for block in function.body.blocks:
            for binding in block.bindings:
                for argument in getattr(binding.value, "args", ()):
                    weft.relax.analysis.post_order_visit(argument, note)

    return constants
