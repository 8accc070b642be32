"""Writes ELF files: a header, segments, sections with their names.

Layouts are those of the System V ABI (Tool Interface Standard, 1995).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from weft.runtime.native.elf import HEADER_BYTES, MAGIC, NOBITS, SECTION

PROGBITS: Final = 1
STRTAB: Final = 3
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")


class Section(NamedTuple):
    """A part of a file; one with content and an address stands at that place of the file, too."""

    name: str
    kind: int
    content: bytes = b""
    flags: int = 0
    address: int = 0
    link: int = 0
    info: int = 0
    entry: int = 0
    size: int = 0
    """The size of one without content."""


class Segment(NamedTuple):
    """A part of a file that is mapped to the address that is its place in the file."""

    kind: int
    flags: int
    place: int
    size: int
    alignment: int = 8


def elf_file(
    kind: int, machine: int, sections: Sequence[Section], segments: Sequence[Segment] = ()
) -> bytes:
    """The bytes of a file; ``kind`` and ``machine`` are numbers of its header.

    The first of ``sections`` has the number 1; the names of all are in one more behind them.
    """
    names = bytearray(b"\0")
    result = bytearray(HEADER_BYTES)
    for part in segments:
        place, size = part.place, part.size
        result += _SEGMENT.pack(
            part.kind, part.flags, place, place, place, size, size, part.alignment
        )
    table = np.zeros(len(sections) + 2, SECTION)
    for number, section in enumerate([*sections, Section(".shstrtab", STRTAB)], 1):
        begin = len(names)
        names += section.name.encode() + b"\0"
        content = section.content if section.name != ".shstrtab" else bytes(names)
        wanted = section.address if section.address and section.kind != NOBITS else len(result)
        result += bytes(max(wanted, len(result) + -len(result) % 8) - len(result))
        table[number] = (
            begin, section.kind, section.flags, section.address, len(result),
            len(content) or section.size, section.link, section.info, 8, section.entry,
        )  # fmt: skip
        result += content
    result += bytes(-len(result) % 8)
    result[:HEADER_BYTES] = _HEADER.pack(
        MAGIC + b"\1", kind, machine, 1, 0, HEADER_BYTES if segments else 0, len(result), 0,
        HEADER_BYTES, _SEGMENT.size, len(segments), SECTION.itemsize, len(table), len(table) - 1,
    )  # fmt: skip
    return bytes(result) + table.tobytes()
