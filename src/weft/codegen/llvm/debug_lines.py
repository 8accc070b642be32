"""Debug locations of instructions: the lines of the printed functions that they come from.

LLVM carries them through its passes to the assembly (``.loc``), which so can be read beside the
program. Only line tables are written (DWARF ``LineTablesOnly``), and only for texts that are shown:
code that runs is compiled without. Source: LLVM, "Source Level Debugging with LLVM".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

FIRST: Final = 1_000_000
"""The number of the first metadata of this kind; others have small numbers."""
_HEAD: Final = f"""!llvm.dbg.cu = !{{!{FIRST}}}
!llvm.module.flags = !{{!{FIRST + 1}}}
!{FIRST} = distinct !DICompileUnit(language: DW_LANG_C11, file: !{FIRST + 2}, producer: "weft", \
isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)
!{FIRST + 1} = !{{i32 2, !"Debug Info Version", i32 3}}
!{FIRST + 2} = !DIFile(filename: "lowered", directory: "")
!{FIRST + 3} = !DISubroutineType(types: !{FIRST + 4})
!{FIRST + 4} = !{{}}"""


class DebugLines:
    """The metadata of the functions and lines of one module."""

    def __init__(self) -> None:
        self._entries: list[str] = [_HEAD]
        self._next = FIRST + 5

    def text(self) -> str:
        """All metadata, as lines of an LLVM module."""
        return "\n".join(self._entries)

    def _entry(self, content: str) -> int:
        number, self._next = self._next, self._next + 1
        self._entries.append(f"!{number} = {content}")
        return number

    def located(
        self, header: str, lines: Sequence[str], marks: Sequence[tuple[int, int]]
    ) -> tuple[str, list[str]]:
        """A function's header and its lines, each instruction with a location.

        ``marks`` says from which of ``lines`` on the text is that of which line of the program.
        """
        scope = self._entry(
            f'distinct !DISubprogram(name: "f{self._next}", file: !{FIRST + 2}, line: 1, '
            f"type: !{FIRST + 3}, unit: !{FIRST}, "
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
