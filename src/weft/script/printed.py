"""Printed functions whose statements know their lines, so that code can be linked to the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.script.printer import text_and_lines
from weft.tir.function import PrimFunc
from weft.tir.printed_lines import with_lines


@dataclass(frozen=True)
class Printed:
    """A function, its text, and the line of each statement in it, by ``id``."""

    func: PrimFunc
    text: str
    lines: Mapping[int, int]

    @staticmethod
    def of(func: PrimFunc, name: str) -> Printed:
        """Print a function."""
        whole, lines = text_and_lines(func, name=name)
        text = without_header(whole)
        skipped = whole[: whole.index(text)].count("\n")
        return Printed(func, text, {key: line - skipped for key, line in lines.items()})

    def marked(self) -> PrimFunc:
        """The function, whose statements know their lines."""
        return with_lines(self.func, self.lines)


def without_header(text: str) -> str:
    r"""A script without the comments that explain its prefixes and those at its end.

    >>> without_header("# from tvm.script import tir as T\n\n@T.prim_func\ndef f():\n    pass")
    '@T.prim_func\ndef f():\n    pass'
    """
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if line and line[0] != "#"), 0)
    end = len(lines)
    while end > start and (not lines[end - 1] or lines[end - 1][0] == "#"):
        end -= 1
    return "\n".join(lines[start:end])
