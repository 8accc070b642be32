"""Reads LLVM IR and assembly: the part of a kernel, the line that each instruction comes from.

Both texts come from LLVM with debug locations (``weft.codegen.llvm.debug_lines``), which are taken
out of what is shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.backends.cpu.isa import architecture_of


class Located(NamedTuple):
    """A text, and for each of its lines the line of the lowered program; 0: unknown."""

    text: str
    lines: tuple[int, ...]


_LOCATION: Final = re.compile(r"^!(\d+) = !DILocation\(line: (\d+)", re.M)
_DEBUG: Final = re.compile(r", !dbg !(\d+)")
_DEFINED: Final = re.compile(r" !dbg !\d+(?= (?:align \d+ )?\{)")


def read_llvm(text: str) -> Located:
    r"""The functions of LLVM IR without their metadata.

    >>> read_llvm('''define i32 @f() !dbg !4 {
    ...   ret i32 0, !dbg !7
    ... }
    ... !7 = !DILocation(line: 3, scope: !4)''')
    Located(text='define i32 @f() {\n  ret i32 0\n}', lines=(0, 3, 0))
    """
    line_of = {number: int(line) for number, line in _LOCATION.findall(text)}
    kept: list[str] = []
    lines: list[int] = []
    inside = False
    for line in text.split("\n"):
        inside = inside or line.startswith("define ")
        if not inside:
            continue
        match = _DEBUG.search(line)
        lines.append(line_of.get(match[1], 0) if match else 0)
        kept.append(_DEBUG.sub("", _DEFINED.sub("", line)))
        if line == "}":
            inside = False
    return Located("\n".join(kept), tuple(lines))


_LOC: Final = re.compile(r"^\s+\.loc\s+\d+\s+(\d+)")
_KEPT: Final = re.compile(r"^(?:\"?[\w.$]+\"?:|\s+[a-z])")
_HIDDEN: Final = re.compile(r"^(?:\.L(?:tmp|func_|debug_|info_|line_|str|section_)|\s+\.)")
_SECTION: Final = re.compile(r"^\s+\.(?:section\s+\.?(\w+)|text\b)")


def read_assembly(text: str) -> Located:
    r"""The instructions and labels of assembly, without directives and constants.

    >>> read_assembly("\t.text\nf:\n\t.loc\t1 3 0\n\tret\n\t.section .debug_info\n\t.byte 1")
    Located(text='f:\n\tret', lines=(0, 3))
    """
    kept: list[str] = []
    lines: list[int] = []
    current, is_code = 0, True
    for line in text.split("\n"):
        section = _SECTION.match(line)
        if section:
            is_code = section[1] in (None, "text")
        location = _LOC.match(line)
        if location:
            current = int(location[1])
        if not is_code or not _KEPT.match(line) or _HIDDEN.match(line):
            continue
        is_label = not line[0].isspace()
        if is_label and not line.startswith("."):
            current = 0  # another function
        kept.append(line.split("#")[0].rstrip())
        lines.append(0 if is_label else current)
    return Located("\n".join(kept), tuple(lines))


@dataclass(frozen=True)
class Facts:
    """What assembly tells of its vectors."""

    vector_bits: int | None
    """The widest registers in it; None where it has no vector registers."""
    registers: int | None
    """How many vector registers it uses."""
    spills: int
    """Instructions that store a vector register in the stack frame."""


def facts_of(assembly: str, triple: str) -> Facts:
    """Read the vectors of assembly for a system, named by its triple."""
    row = architecture_of(triple)
    used: set[int] = set()
    widest = None
    for pattern, bits in row.register_names.items():
        numbers = {int(number) for number in re.findall(pattern, assembly)}
        if numbers and widest is None:
            widest = bits
        used |= numbers
    spills = len(re.findall(row.spill, assembly)) if row.spill else 0
    return Facts(widest, len(used) or None, spills)
