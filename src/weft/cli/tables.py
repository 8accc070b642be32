"""Tables on the command line: by rich at a terminal where it is installed, else aligned text."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Collection, Sequence


def print_table(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    text: Collection[int] = (0,),
) -> None:
    """Print a table.

    Args:
        title: a line above it; empty: none.
        headings: of the columns; all empty: no line of headings.
        text: which columns are text, and stand left; the others are numbers.
    """
    if not sys.stdout.isatty() or importlib.util.find_spec("rich") is None:
        if title:
            print(title)
        print(aligned(headings, rows, text))
        return
    tables, consoles = (
        importlib.import_module("rich.table"),
        importlib.import_module("rich.console"),
    )
    table = tables.Table(
        title=title or None, title_justify="left", box=None, pad_edge=False,
        show_header=any(headings),
    )  # fmt: skip
    for at, heading in enumerate(headings):
        is_long = at in text and at > 0
        table.add_column(
            heading,
            justify="left" if at in text else "right",
            no_wrap=not is_long,
            overflow="fold" if is_long else "ellipsis",
        )
    for row in rows:
        table.add_row(*row)
    consoles.Console(markup=False, highlight=False).print(table)


def aligned(
    headings: Sequence[str], rows: Sequence[Sequence[str]], text: Collection[int] = (0,)
) -> str:
    """The table as lines of text.

    >>> print(aligned(["name", "us"], [["softmax", "12.5"]]))
    name       us
    softmax  12.5
    """
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = [
        "  ".join(
            [
                cell.ljust(width) if at in text else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
        ).rstrip()
        for row in (headings, *rows)
    ]
    return "\n".join(lines if any(headings) else lines[1:])
