"""The schedule walk-through runs, and its page and notebook are what its program says."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

from tests.lib.python_process import output_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CHECKED = """
import runpy, sys
from tests.lib.replay import every_schedule_checked
with every_schedule_checked():
    runpy.run_path(sys.argv[1], run_name="__main__")
"""
SMALL = {"WALKTHROUGH_SIZE": "96", "WALKTHROUGH_ROUNDS": "100", "WALKTHROUGH_REPEATS": "1"}


def renderer():
    spec = importlib.util.spec_from_file_location(
        "render_walkthrough", EXAMPLES / "render_walkthrough.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


def without_outputs(text):
    return re.sub(r"\n```text\n.*?^```\n", "", text, flags=re.DOTALL | re.MULTILINE)


def test_every_step_gives_the_product():
    """The program compares the result of every step with numpy; here at a small size.

    Its schedules are checked after every edit and replayed, as those of tests.
    """
    printed = output_of(
        CHECKED, str(EXAMPLES / "schedule_walkthrough.py"), env={**SMALL, "WEFT_NUM_THREADS": "2"}
    )
    steps = re.findall(r"^\| (\d) .* \| (\d) \| .*%", printed, re.MULTILINE)
    assert steps == [*[(step, "1") for step in "12345678"], ("9", "2")]  # steps and their cores


def test_page_and_notebook_are_in_step_with_the_program():
    """What the page prints is held by the test of the documents; its text and code here.

    ``python examples/render_walkthrough.py`` writes both anew.
    """
    render = renderer()
    page = render.PAGE.read_text(encoding="utf-8")
    assert without_outputs(page) == render.page({})
    notebook = render.NOTEBOOK.read_text(encoding="utf-8")
    assert notebook == render.notebook()
    cells = json.loads(notebook)["cells"]
    assert len(cells) == len(render.cells())
    assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code")


def test_page_shows_what_cells_print():
    render = renderer()
    cell = next(cell for cell in render.cells() if cell.is_code)
    text = render.page({cell.line: "hello\n"})
    assert "```text\nhello\n```\n" in text
    assert without_outputs(text) == render.page({})
