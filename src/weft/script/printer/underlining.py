"""Adds carets below ranges of a text, line numbers, and leaves out lines far from the carets."""

from __future__ import annotations

from collections.abc import Sequence


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
