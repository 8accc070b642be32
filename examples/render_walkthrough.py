"""Write the page and the notebook of the schedule walk-through from its program.

    python examples/render_walkthrough.py

``schedule_walkthrough.py`` is a program in cells (``# %%``), as editors and jupytext know them. The
cells run; the page shows what each prints, except where a cell says ``[no output]``.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "schedule_walkthrough.py"
NOTEBOOK = HERE / "schedule_walkthrough.ipynb"
PAGE = HERE.parent / "docs" / "tutorials" / "schedule-walkthrough.md"
MARK = "# %%"


@dataclass(frozen=True)
class Cell:
    """One cell: its first line in the source, what follows the mark, its text."""

    line: int
    mark: str
    text: str

    @property
    def is_code(self) -> bool:
        """Whether the cell is code, not text."""
        return "[markdown]" not in self.mark

    @property
    def is_shown(self) -> bool:
        """Whether the page shows what the cell prints."""
        return "[no output]" not in self.mark


def cells(source: Path = SOURCE) -> list[Cell]:
    """The cells of the program."""
    found: list[Cell] = []
    mark, start, lines = "", 0, list[str]()
    for number, line in enumerate([*source.read_text(encoding="utf-8").splitlines(), MARK], 1):
        if not line.startswith(MARK):
            lines.append(line)
            continue
        if mark:
            if "[markdown]" in mark:
                lines = [text[2:] for text in lines]
            found.append(Cell(start, mark, "\n".join(lines).strip("\n")))
        mark, start, lines = line, number + 1, []
    return found


def printed(source: Path = SOURCE) -> dict[int, str]:
    """What each code cell prints, by its line."""
    namespace: dict[str, object] = {"__name__": "__walkthrough__"}
    found = {}
    for cell in cells(source):
        if not cell.is_code:
            continue
        # Blank lines put the cell at its place in the file: TVMScript looks its source up there.
        code = compile("\n" * (cell.line - 1) + cell.text + "\n", str(source), "exec")
        linecache.checkcache(str(source))
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(code, namespace)  # noqa: S102 - the cells are this repository's
        found[cell.line] = output.getvalue() if cell.is_shown else ""
    return found


def page(outputs: dict[int, str]) -> str:
    """The page; ``outputs`` are shown below their cells."""
    parts = []
    for cell in cells():
        if not cell.is_code:
            parts.append(cell.text)
            continue
        parts.append(f"```python\n{cell.text}\n```")
        if outputs.get(cell.line):
            parts.append(f"```text\n{outputs[cell.line]}```")
    return "\n\n".join(parts) + "\n"


def notebook() -> str:
    """The notebook, without outputs."""
    made = []
    for index, cell in enumerate(cells()):
        entry = {
            "cell_type": "code" if cell.is_code else "markdown",
            "id": f"cell-{index}",
            "metadata": {},
            "source": cell.text.splitlines(keepends=True),
        }
        if cell.is_code:
            entry |= {"execution_count": None, "outputs": []}
        made.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(), encoding="utf-8")
    PAGE.write_text(page(printed()), encoding="utf-8")
