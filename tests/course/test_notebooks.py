"""``weft course``: the folder, its notebooks run as they are, and the checks of their exercises.

``solutions.txt`` has a solution of each exercise; learners do not get it.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import re
import sys
from pathlib import Path

import pytest

from weft.cli import course, main
from weft.cli.notebooks import cells_of

CHAPTERS = [path.stem for path in sorted(course.CHAPTERS.glob("chapter_*.py"))]
SOLUTIONS = {
    cell.head: cell.text for cell in cells_of((Path(__file__).parent / "solutions.txt").read_text())
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("learner") / "course"
    course.make_folder(directory)
    return directory


@pytest.fixture
def shell(folder, monkeypatch, tmp_path):
    """A notebook's shell that works in the folder."""
    interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    monkeypatch.chdir(folder)
    kept = sys.modules["__main__"], sys.displayhook, sys.excepthook
    shell = interactiveshell.InteractiveShell(config=config, ipython_dir=str(tmp_path))
    yield shell
    sys.modules["__main__"], sys.displayhook, sys.excepthook = kept
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()


def printed_by(shell, text):
    """What a cell prints; its error is raised."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        outcome = shell.run_cell(text, store_history=True)
    outcome.raise_error()
    return printed.getvalue()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_notebook_runs_and_its_checks_tell_right_from_wrong(chapter, folder, shell):
    stored = json.loads((folder / f"{chapter}.ipynb").read_text())["cells"]
    codes = ["".join(cell["source"]) for cell in stored if cell["cell_type"] == "code"]
    source = (course.CHAPTERS / f"{chapter}.py").read_text()
    cells = [cell for cell in cells_of(source) if not cell.is_markdown]
    assert codes == [cell.text for cell in cells]
    exercises = 0
    for cell in cells:
        printed = printed_by(shell, cell.text)
        if cell.head.startswith("check: "):
            assert printed.startswith("not yet: "), cell.head
            name = cell.head.removeprefix("check: ")
            printed_by(shell, SOLUTIONS[name])
            assert printed_by(shell, cell.text) == "right\n", name
            exercises += 1
    assert exercises
    assert exercises == sum(cell.head.startswith("exercise: ") for cell in cells)


def test_there_is_a_notebook_for_each_chapter_on_a_cpu(folder):
    numbers = [int(re.match(r"chapter_(\d)_", name)[1]) for name in CHAPTERS]
    assert numbers == list(range(2, 10))
    assert {path.stem for path in folder.glob("*.ipynb")} == set(CHAPTERS)
    for path in folder.glob("*.ipynb"):
        notebook = json.loads(path.read_text())
        assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
        assert notebook["cells"][0]["source"][0].startswith(f"# Chapter {path.stem[8]}: ")
        assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


def test_the_work_of_a_learner_is_kept(tmp_path, capsys):
    folder = tmp_path / "course"
    folder.mkdir()
    mine = folder / "chapter_3_tensorir.ipynb"
    mine.write_text("mine")
    assert main.main(["course", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "kept, since they were there: chapter_3_tensorir.ipynb" in printed
    assert mine.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main.main(["course", str(tmp_path / "file")]) == 2
    assert "weft course: expected a folder to write to, got " in capsys.readouterr().err
