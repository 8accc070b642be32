"""Tables on the command line: by rich where it is installed, else aligned text."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose others are numbers."""
    if importlib.util.find_spec("rich") is None:
        print(title)
        print(aligned(headings, rows))
        return
    tables, consoles = (
        importlib.import_module("rich.table"),
        importlib.import_module("rich.console"),
    )
    table = tables.Table(title=title, title_justify="left", box=None, pad_edge=False)
    for at, heading in enumerate(headings):
        table.add_column(
            heading, justify="right" if at else "left", no_wrap=True, overflow="ellipsis"
        )
    for row in rows:
        table.add_row(*row)
    console = consoles.Console(markup=False, highlight=False)
    widths = [max(map(len, column)) + 2 for column in zip(headings, *rows, strict=True)]
    console.width = max(console.width, sum(widths)) if not console.is_terminal else console.width
    console.print(table)


def aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table as lines of text.

    >>> print(aligned(["name", "us"], [["softmax", "12.5"]]))
    name       us
    softmax  12.5
    """
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = [
        "  ".join(
            [
                cell.rjust(width) if at else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
        )
        for row in (headings, *rows)
    ]
    return "\n".join(lines)
