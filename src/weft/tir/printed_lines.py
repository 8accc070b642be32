"""Statements that know on which line of a printed text they stand, so that texts can be linked.

``with_lines`` gives each statement of a function a span in the text ``PRINTED``. Passes keep the
spans of what they rewrite, so that ``line_of`` tells of a later form's statements where they come
from; a statement that a pass made anew has no line, and is taken to come from the one around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from weft.ir.functor import Mutator
from weft.ir.node import Node
from weft.support.recursion import deep_recursion
from weft.support.span import SourceName, Span
from weft.tir.function import PrimFunc
from weft.tir.stmt import Stmt

S = TypeVar("S", bound=Stmt)
PRINTED: Final = SourceName("<printed>")
"""The text that the lines are those of."""


def line_of(stmt: Stmt) -> int:
    """The line that ``with_lines`` gave a statement, or the one it was made of; 0: none."""
    span = stmt.span
    return 0 if span is None or span.source_name is not PRINTED else span.line


def with_line_of(origin: Stmt, result: S) -> S:
    """What a pass made of a statement; parts without a line get that of the statement, if any."""
    line = line_of(origin)
    if line:
        fill_lines(result, line)
    return result


@deep_recursion
def fill_lines(stmt: Stmt, line: int = 0) -> None:
    """Give each statement without a line that of the statement around it (``line`` outside)."""
    here = line_of(stmt)
    if not here and line:
        stmt.span = Span(PRINTED, line, line, 1, 1)
    for name in stmt.CHILDREN:
        value = getattr(stmt, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Stmt):
                fill_lines(item, here or line)


@deep_recursion
def with_lines(func: PrimFunc, lines: Mapping[int, int]) -> PrimFunc:
    """The function with a line for each statement.

    Args:
        func: the function.
        lines: the ``id`` of a statement -> its line, as ``text_and_lines`` of the printer has them.
            Other statements have the line of the statement around them.
    """
    body: Stmt = _Marker(lines).visit(func.body)
    return func.with_(body=body)


class _Marker(Mutator):
    """Rebuilds statements with spans."""

    def __init__(self, lines: Mapping[int, int]) -> None:
        super().__init__()
        self.lines, self.line = lines, 1

    def visit_default(self, node: Node) -> Any:
        """Give a statement its line; expressions stay as they are."""
        if not isinstance(node, Stmt):
            return node
        outer = self.line
        self.line = line = self.lines.get(id(node), outer)
        rebuilt = super().visit_default(node)
        self.line = outer
        fields = [getattr(rebuilt, name) for name in rebuilt.INIT_FIELDS]
        copy = type(rebuilt)(*fields, span=Span(PRINTED, line, line, 1, 1))
        rebuilt._carry_(copy)
        return copy
