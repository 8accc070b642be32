"""Diagnostics: a message with the user's file, line and a caret under the text at fault.

``render`` makes the text of at most ten lines, ``Source`` has the lines of the user's text.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from weft.support.span import SourceName, Span

MAX_LINES = 10
MAX_WIDTH = 160


@dataclass(frozen=True)
class Source:
    """A text that the user wrote: its name (a path, a cell) and its lines."""

    name: str
    lines: tuple[str, ...]

    @staticmethod
    def from_text(name: str, text: str) -> Source:
        """The source of that name and content."""
        return Source(name, tuple(text.splitlines()))

    def line(self, number: int) -> str:
        """The line of that number, from 1; empty if there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def span(self, line: int, end_line: int, byte: int, end_byte: int) -> Span:
        """A span from 0-based UTF-8 offsets, which is how Python's ``ast`` counts columns."""
        column, end_column = self._column(line, byte), self._column(end_line, end_byte)
        return Span(SourceName(self.name), line, end_line, column, end_column)

    def _column(self, line: int, offset: int) -> int:
        text = self.line(line)
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="ignore")) + 1


def render(message: str, source: Source, span: Span | None) -> str:
    """The message, then place, line and caret; cut to ten lines."""
    head = [f"error: {message}".splitlines()[0], *message.splitlines()[1:]]
    if span is None:
        return "\n".join(_cut(head, MAX_LINES - 1) + [f"  --> {shown_name(source.name)}"])
    text = source.line(span.line).expandtabs(1)
    start = span.column - 1
    one_line = span.end_line == span.line
    end = max(span.end_column - 1 if one_line else len(text), start + 1)
    shift = max(0, start - MAX_WIDTH // 2) if len(text) > MAX_WIDTH else 0
    text, start, end = text[shift : shift + MAX_WIDTH], start - shift, end - shift
    number = str(span.line)
    margin = " " * len(number)
    place = [
        f"{margin}--> {shown_name(source.name)}:{span.line}:{span.column}",
        f"{margin} |",
        f"{number} | {text}",
        f"{margin} | {' ' * start}{'^' * (min(end, MAX_WIDTH) - start)}",
    ]
    return "\n".join(_cut(head, MAX_LINES - len(place)) + place)


def shown_name(name: str) -> str:
    """``Cell In[2]`` for the text of a notebook's cell, which IPython keeps under another name."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    known = None if shell is None else shell.compile.format_code_name(name)
    return name if known is None else " ".join(known)


def _cut(lines: list[str], limit: int) -> list[str]:
    return lines if len(lines) <= limit else [*lines[: limit - 1], "..."]
