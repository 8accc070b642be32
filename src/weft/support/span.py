"""Where a node came from in the user's text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceName:
    """The name of a text: a file's path, ``<string>`` or a notebook cell."""

    name: str


@dataclass(frozen=True, slots=True)
class Span:
    """A region of a text; lines and columns count from 1, the end is exclusive."""

    source_name: SourceName
    line: int
    end_line: int
    column: int
    end_column: int
