"""What is to be underlined, and the text with carets below, numbers, and without far lines."""

from __future__ import annotations

from collections.abc import Sequence

from weft.script.printer.doc import Doc
from weft.support.object_path import ObjectPath


class Target:
    """What to underline: an object, a path or another key of ``source_paths``, or a chain.

    A chain is the list of objects that a path leads through. The docs of the last of them that has
    any are underlined, as there may be none for the end of the path.
    """

    __slots__ = ("best", "depths", "given", "marks")

    def __init__(self, given: object) -> None:
        self.given, self.best = given, 0
        self.marks: list[tuple[int, int]] = []
        chain = given.objects if isinstance(given, Chain) else [given]
        self.depths = {id(item): number for number, item in enumerate(chain, 1)}

    def depth(self, doc: Doc) -> int:
        """How far along the chain or path the object of a doc is; 0 if it is not on it."""
        depth = 0
        if doc.source is not None and not isinstance(doc.source, str | int):
            depth = self.depths.get(id(doc.source), 0)
        for path in doc._paths or ():
            if isinstance(path, ObjectPath) and isinstance(self.given, ObjectPath):
                if path.is_prefix_of(self.given):
                    depth = max(depth, len(path))
            elif path is self.given or path == self.given:
                depth = max(depth, 1)
        return depth

    def mark(self, depth: int, span: tuple[int, int]) -> None:
        """Note the text range of a doc of that depth, and forget those of less deep docs."""
        if depth > self.best:
            self.best, self.marks = depth, []
        if depth == self.best:
            self.marks.append(span)


class Chain:
    """The objects from the root to what a path leads to."""

    __slots__ = ("objects",)

    def __init__(self, objects: Sequence[object]) -> None:
        self.objects = list(objects)


def decorate(
    text: str, marks: Sequence[tuple[int, int]], line_numbers: bool, context: int | None
) -> str:
    """``text`` with carets below the marked ranges, numbers, and without lines far from them."""
    lines = text.split("\n")
    carets = _caret_rows(lines, marks)
    shown = set(range(len(lines)))
    if context is not None and carets:
        shown = {k for row in carets for k in range(row - context, row + context + 1)}
        shown &= set(range(len(lines)))
    width = len(str(len(lines)))
    margin = " " * (width + 1) if line_numbers else ""
    result: list[str] = []
    skipped = 0
    for number, line in enumerate(lines):
        if number not in shown:
            skipped += 1
            continue
        if skipped:
            result.append(_skipped(skipped, width, line_numbers))
            skipped = 0
        prefix = f"{number + 1:>{width}} " if line_numbers else ""
        result.append((prefix + line).rstrip())
        if number in carets:
            result.append(margin + carets[number])
    if skipped:
        result.append(_skipped(skipped, width, line_numbers))
    return "\n".join(result)


def _skipped(count: int, width: int, line_numbers: bool) -> str:
    margin = " " * (width + 1) if line_numbers else ""
    return f"{margin}(... {count} line{'s' if count > 1 else ''} skipped ...)"


def _caret_rows(lines: Sequence[str], marks: Sequence[tuple[int, int]]) -> dict[int, str]:
    rows: dict[int, list[str]] = {}
    start = 0
    for number, line in enumerate(lines):
        end = start + len(line)
        for low, high in marks:
            first, last = max(low, start), min(high, end)
            indent = len(line) - len(line.lstrip())
            first = max(first, start + indent)
            if first < last:
                row = rows.setdefault(number, [" "] * len(line))
                for column in range(first - start, last - start):
                    row[column] = "^"
        start = end + 1
    return {number: "".join(row).rstrip() for number, row in rows.items()}
