"""A writer that notes on which line each statement of a program begins, for links between texts."""

from __future__ import annotations

from weft.script.printer.doc import Doc, Head
from weft.script.printer.doc_printer import DocWriter
from weft.tir.stmt import Stmt


class LineWriter(DocWriter):
    """Writes docs; ``lines`` is the line (from 1) of each statement, by the ``id`` of its node."""

    def __init__(self, indent_spaces: int) -> None:
        super().__init__(indent_spaces)
        self.lines: dict[int, int] = {}
        self._line, self._read = 1, 0

    def doc(self, doc: Doc) -> None:
        """Write a doc, and note its line if it is a statement's or the head of one."""
        heads = [path.node for path in doc._paths or () if isinstance(path, Head)]
        for node in (doc.source, *heads):
            if isinstance(node, Stmt):
                self.lines.setdefault(id(node), self._current())
        self.emit(doc)

    def _current(self) -> int:
        """The line that is written now."""
        for piece in self.out[self._read :]:
            self._line += piece.count("\n")
        self._read = len(self.out)
        return self._line
