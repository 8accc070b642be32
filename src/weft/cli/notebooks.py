"""Notebooks from plain text: a file of Python in which ``# %%`` begins a cell becomes ``.ipynb``.

The format is Jupyter's nbformat 4.5, plain JSON.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

_HEAD: Final = re.compile(r"^# %%(?: (.*))?$")
MARKDOWN: Final = "[markdown]"


class Cell(NamedTuple):
    """One cell: what stands behind its ``# %%`` (``[markdown]``, ``exercise: name``), its text."""

    head: str
    text: str

    @property
    def is_markdown(self) -> bool:
        """Whether it is text for the reader, not a program."""
        return self.head == MARKDOWN


def cells_of(source: str) -> list[Cell]:
    r"""The cells of a text; what stands before the first ``# %%`` is none.

    >>> cells_of("# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nx = 1\n")
    [Cell(head='[markdown]', text='# Title\n\nWords.'), Cell(head='', text='x = 1')]
    """
    heads: list[str] = []
    bodies: list[list[str]] = []
    for line in source.splitlines():
        match = _HEAD.match(line)
        if match is not None:
            heads.append(match[1] or "")
            bodies.append([])
        elif bodies:
            bodies[-1].append(line)
    cells = []
    for head, lines in zip(heads, bodies, strict=True):
        shown = [re.sub(r"^# ?", "", line) for line in lines] if head == MARKDOWN else lines
        cells.append(Cell(head, "\n".join(shown).strip("\n")))
    return cells


def notebook_text(source: str) -> str:
    """The ``.ipynb`` file of a text with cells.

    A cell's head (``exercise: relu``) becomes its first tag's word, ``exercise``.
    """
    cells = [_as_json(number, cell) for number, cell in enumerate(cells_of(source))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _as_json(number: int, cell: Cell) -> dict[str, object]:
    lines = cell.text.splitlines(keepends=True)
    shared = {"id": f"cell-{number}", "source": lines}
    if cell.is_markdown:
        return {"cell_type": "markdown", "metadata": {}, **shared}
    tags = [cell.head.partition(":")[0]] if cell.head else []
    metadata = {"tags": tags} if tags else {}
    empty: dict[str, object] = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "metadata": metadata, **empty, **shared}
