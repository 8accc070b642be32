"""Debug locations of instructions: the lines of the printed functions that they come from.

LLVM carries them through its passes to the assembly (``.loc``), which so can be read beside the
program, and to the object code, in which debuggers and profilers find them. They are written only
where somebody wants them: line tables for texts that are shown; under ``WEFT_PERF=1`` also the
functions, so that debuggers show them by name, and their texts, so that whoever loads the code can
write them to files.

Sources: LLVM, "Source Level Debugging with LLVM"; DWARF 5, section 6.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

FIRST: Final = 1_000_000
"""The number of the first metadata of this kind; others have small numbers."""


class PrintedText(NamedTuple):
    """A printed function, and the name of the file in which debuggers look for it."""

    path: str
    text: str | None = None
    """What the line table shall have of it; None: nothing."""
    line: int = 0
    """The line on which the function begins; 0: its first instructions have none."""


_SYMBOL: Final = re.compile(r'@"?([^"(]+)')
NOWHERE: Final = PrintedText("lowered")
"""Stands for a function whose text is no file."""


class DebugLines:
    """The metadata of the functions and lines of one module; ``texts`` are its printed functions
    by name.
    """

    def __init__(self, texts: Mapping[str, PrintedText] | None = None) -> None:
        self._texts = texts or {}
        self._entries: list[str] = []
        self._next = FIRST + 5
        self._files: dict[PrintedText, int] = {}

    def text(self) -> str:
        """All metadata, as lines of an LLVM module."""
        first = next(iter(self._files.values()), None)
        file = self._file(NOWHERE) if first is None else first
        kind = "FullDebug" if self._texts else "LineTablesOnly"
        return "\n".join([_head(file, kind), *self._entries])

    def _entry(self, content: str) -> int:
        number, self._next = self._next, self._next + 1
        self._entries.append(f"!{number} = {content}")
        return number

    def _file(self, printed: PrintedText) -> int:
        if printed not in self._files:
            text = "" if printed.text is None else f", source: {_quoted(printed.text)}"
            path = _quoted(printed.path)
            self._files[printed] = self._entry(f'!DIFile(filename: {path}, directory: ""{text})')
        return self._files[printed]

    def located(
        self, name: str, header: str, lines: Sequence[str], marks: Sequence[tuple[int, int]]
    ) -> tuple[str, list[str]]:
        """A function's header and its lines, each instruction with a location.

        ``name`` is that of the printed function. ``marks`` says from which of ``lines`` on the text
        is that of which line of it.
        """
        printed = self._texts.get(name, NOWHERE)
        file, begin = self._file(printed), printed.line
        match = _SYMBOL.search(header)
        symbol = match[1] if match else ""
        scope = self._entry(
            f'distinct !DISubprogram(name: "{symbol}", file: !{file}, line: {begin}, '
            f"scopeLine: {begin}, type: !{FIRST + 3}, unit: !{FIRST}, "
            "spFlags: DISPFlagDefinition | DISPFlagOptimized)"
        )
        locations: dict[int, int] = {}
        result, following, current = [], list(marks)[::-1], 0
        for index, line in enumerate(lines):
            while following and following[-1][0] <= index:
                current = following.pop()[1]
            if not line.startswith("  "):  # a label
                result.append(line)
                continue
            if current not in locations:
                locations[current] = self._entry(f"!DILocation(line: {current}, scope: !{scope})")
            result.append(f"{line}, !dbg !{locations[current]}")
        return f"{header} !dbg !{scope}", result


def _head(file: int, kind: str) -> str:
    """The metadata of the module, whose first function is in the file of that number."""
    return f"""!llvm.dbg.cu = !{{!{FIRST}}}
!llvm.module.flags = !{{!{FIRST + 1}, !{FIRST + 2}}}
!{FIRST} = distinct !DICompileUnit(language: DW_LANG_C11, file: !{file}, producer: "weft", \
isOptimized: true, runtimeVersion: 0, emissionKind: {kind}, nameTableKind: None)
!{FIRST + 1} = !{{i32 2, !"Debug Info Version", i32 3}}
!{FIRST + 2} = !{{i32 7, !"Dwarf Version", i32 5}}
!{FIRST + 3} = !DISubroutineType(types: !{FIRST + 4})
!{FIRST + 4} = !{{}}"""


def _quoted(text: str) -> str:
    r"""A text as a string of LLVM IR.

    >>> _quoted('a "b"\n')
    '"a \\22b\\22\\0A"'
    """
    plain = [
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
        for byte in text.encode()
    ]
    return f'"{"".join(plain)}"'
