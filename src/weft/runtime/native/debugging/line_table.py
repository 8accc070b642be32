"""Reads line tables: which line of which file each address of the code comes from.

Source: DWARF 5, section 6.2. A table is a program for a small machine, whose registers are an
address, a file and a line; some of its instructions append a row of them to the table. The text of
a file in the table is LLVM's extension of it (DW_LNCT_LLVM_source).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path("/tmp/weft-lowered")  # noqa: S108 - the same for everyone who loads the code
"""Where the texts of lowered functions are, as files."""
_LONGEST: Final = 80
_VERSION: Final = 5
_PATH, _DIRECTORY, _SOURCE = 1, 2, 0x2001
_STRING, _UDATA, _LINE_STRP, _STRP, _DATA16 = 0x08, 0x0F, 0x1F, 0x0E, 0x1E
_FIXED: Final = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, _DATA16: 16}
_END, _SET_ADDRESS = 1, 2


def lowered_path(name: str, text: str) -> str:
    """The file in which a debugger finds the text of a lowered function.

    >>> lowered_path("main", "pass").startswith("/tmp/weft-lowered/main-")
    True
    """
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=6).hexdigest()
    return str(FOLDER / f"{re.sub(r'[^A-Za-z0-9_.]', '_', name)[:_LONGEST]}-{digest}.py")


@dataclass(frozen=True)
class SourceFile:
    """A file of a line table, with its text if the table has it."""

    path: str
    text: str | None


class Row(NamedTuple):
    """From this address on the code comes from that line; a file of None ends a run of code."""

    address: int
    file: SourceFile | None
    line: int


def line_rows(sections: Mapping[str, bytes]) -> list[Row]:
    """All rows, by address. Tables of other versions than 5 have none.

    Raises ValueError or IndexError where a table contradicts itself.
    """
    rows: list[Row] = []
    data, at = sections.get(".debug_line", b""), 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "little")
        rows += _Program(data[at + 4 : at + 4 + length], sections).rows()
        at += 4 + length
    return sorted(rows, key=lambda row: (row.address, row.file is not None))


class _Reader:
    """Numbers and texts from bytes, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, size: int) -> int:
        """An unsigned number of so many bytes."""
        self.at += size
        if self.at > len(self.data):
            raise ValueError("a line table ends too early")
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def variable(self, *, is_signed: bool = False) -> int:
        """A number in as many bytes as it needs (LEB128)."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if is_signed and byte & 64 else value

    def text(self) -> str:
        """A text that ends in NUL."""
        begin, self.at = self.at, self.data.index(b"\0", self.at) + 1
        return self.data[begin : self.at - 1].decode(errors="replace")


class _Program:
    """One table, without its length."""

    def __init__(self, data: bytes, sections: Mapping[str, bytes]) -> None:
        self.sections = sections
        self.reader = reader = _Reader(data)
        self.version = reader.number(2)
        if self.version != _VERSION:
            return
        self.address_size, _ = reader.number(1), reader.number(1)
        begin = reader.number(4) + reader.at
        self.step, _, _ = reader.number(1), reader.number(1), reader.number(1)
        base = reader.number(1)
        self.line_base = base - 256 if base > 127 else base
        self.line_range, count = reader.number(1), reader.number(1)
        self.operands = [0, *[reader.number(1) for _ in range(count - 1)]]
        folders = [str(entry.get(_PATH, "")) for entry in self._entries()]
        self.files = [self._file(entry, folders) for entry in self._entries()]
        reader.at = begin

    def _entries(self) -> list[dict[int, int | str]]:
        """The folders, or the files."""
        reader = self.reader
        form = [(reader.variable(), reader.variable()) for _ in range(reader.number(1))]
        return [
            {content: self._value(kind) for content, kind in form} for _ in range(reader.variable())
        ]

    def _value(self, form: int) -> int | str:
        if form == _STRING:
            return self.reader.text()
        if form == _UDATA:
            return self.reader.variable()
        if form in (_LINE_STRP, _STRP):
            name = ".debug_line_str" if form == _LINE_STRP else ".debug_str"
            texts = _Reader(self.sections.get(name, b""))
            texts.at = self.reader.number(4)
            return texts.text()
        if form not in _FIXED:
            raise ValueError(f"a line table has a field of form {form}")
        return self.reader.number(_FIXED[form])

    @staticmethod
    def _file(entry: Mapping[int, int | str], folders: list[str]) -> SourceFile:
        folder = Path(folders[int(entry.get(_DIRECTORY, 0))])
        text = str(entry.get(_SOURCE, ""))
        return SourceFile(str(folder / str(entry[_PATH])), text or None)

    def rows(self) -> Iterator[Row]:
        """The rows, in the program's order."""
        if self.version != _VERSION:
            return
        reader = self.reader
        address, file, line = 0, 1, 1
        while reader.at < len(reader.data):
            code = reader.number(1)
            if code >= len(self.operands):
                advance, more = divmod(code - len(self.operands), self.line_range)
                address += advance * self.step
                line += more + self.line_base
                yield Row(address, self.files[file], line)
            elif code == 0:
                end = reader.variable() + reader.at
                kind = reader.number(1)
                if kind == _END:
                    yield Row(address, None, 0)
                    address, file, line = 0, 1, 1
                elif kind == _SET_ADDRESS:
                    address = reader.number(self.address_size)
                reader.at = end
            elif code == 1:
                yield Row(address, self.files[file], line)
            else:
                address, file, line = self._standard(code, address, file, line)

    def _standard(self, code: int, address: int, file: int, line: int) -> tuple[int, int, int]:
        """The registers after an instruction that appends no row."""
        reader = self.reader
        if code == 2:
            address += reader.variable() * self.step
        elif code == 3:
            line += reader.variable(is_signed=True)
        elif code == 4:
            file = reader.variable()
        elif code == 8:
            address += (255 - len(self.operands)) // self.line_range * self.step
        elif code == 9:
            address += reader.number(2)
        else:  # column, flags
            for _ in range(self.operands[code]):
                reader.variable()
        return address, file, line
