"""Several relocatable ELF objects become one, as ``ld -r`` makes it, without a linker.

Sections are kept apart, each with its own contents: they only get new numbers. The symbols become
one table: a name that one object defines and another one asks for is one symbol, and so calls
between the objects find their functions. The layout is that of the System V ABI (1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from weft.runtime.native.elf import (
    HEADER_BYTES,
    LOCAL,
    NOBITS,
    RELA,
    RELOCATION,
    SECTION,
    SYMBOL,
    SYMTAB,
    UNDEFINED,
    ObjectFile,
    read_object,
)
from weft.support.errors import InternalError

_STRTAB: Final = 3
_ADDRESS_SIGNIFICANCE: Final = 0x6FFF4C03
"""LLVM's section that lists symbols by their numbers, for linkers that fold equal functions."""
_FIRST_RESERVED: Final = 0xFF00
"""Numbers of sections from here on have meanings of their own: absolute, common."""
_WEAK: Final = 2
MOST_OBJECTS: Final = 2000
"""So many objects have fewer sections than an ELF header can number."""


def join_objects(objects: Sequence[bytes]) -> bytes:
    """One object with all that these have; they must be for the same system.

    Raises:
        InternalError: two of them define the same function, or one is no ELF object.
    """
    if len(objects) == 1:
        return objects[0]
    joined = _Joined()
    for code in objects:
        file = read_object(code)
        if file is None:
            raise InternalError("expected ELF objects to join, got another format")
        joined.add(file)
    return joined.file(objects[0][:HEADER_BYTES])


@dataclass
class _Joined:
    """The sections and symbols of the objects so far."""

    sections: list[np.void] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    names: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    """The names of sections and symbols, each ended by NUL."""
    places: dict[str, int] = field(default_factory=dict)
    """Where a name begins in ``names``."""
    symbols: list[np.ndarray] = field(default_factory=list)
    """Each object's symbols, with the numbers of sections and names that they have here."""
    owners: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name of a function -> the object that defines it (or asks for it), and its symbol there."""
    relocations: list[tuple[int, int]] = field(default_factory=list)
    """The sections of relocations: their number, and that of their object."""

    def add(self, file: ObjectFile) -> None:
        """Take the sections and symbols of one more object."""
        number, numbers = len(self.symbols), np.zeros(len(file.sections), np.int64)
        kept = [at for at in range(1, len(file.sections)) if _is_kept(file.sections[at])]
        for at in kept:
            numbers[at] = len(self.sections) + kept.index(at) + 1
        for at in kept:
            self._add_section(file, file.sections[at].copy(), numbers, number)
        symbols = file.symbols.copy()
        inside = (symbols["section"] != UNDEFINED) & (symbols["section"] < _FIRST_RESERVED)
        symbols["section"][inside] = numbers[symbols["section"][inside]]
        symbols["name"] = [self._place(name) for name in file.names]
        self.symbols.append(symbols)
        for at, name in enumerate(file.names):
            if symbols["info"][at] >> 4 != LOCAL:
                self._own(name, number, at)

    def _add_section(
        self, file: ObjectFile, section: np.void, numbers: np.ndarray, owner: int
    ) -> None:
        is_empty = section["type"] == NOBITS
        self.contents.append(b"" if is_empty else file.table(section, np.dtype("u1")).tobytes())
        section["name"] = self._place(file.section_name(section))
        if section["type"] == RELA:
            section["info"] = numbers[section["info"]]
            self.relocations.append((len(self.sections), owner))
        elif section["link"]:
            section["link"] = numbers[section["link"]]
        self.sections.append(section)

    def _place(self, name: str) -> int:
        place = self.places.get(name)
        if place is None:
            place = self.places[name] = len(self.names) if name else 0
            if name:
                self.names += name.encode() + b"\0"
        return place

    def _own(self, name: str, number: int, at: int) -> None:
        """Note the symbol of a name; one that is defined goes before one that is asked for."""
        known = self.owners.get(name)
        symbol = self.symbols[number][at]
        if known is None:
            self.owners[name] = number, at
            return
        other = self.symbols[known[0]][known[1]]
        if other["section"] == UNDEFINED:
            self.owners[name] = number, at
        elif symbol["section"] != UNDEFINED:
            bindings = other["info"] >> 4, symbol["info"] >> 4
            if _WEAK not in bindings:
                raise InternalError(f"two objects define {name}")

    def file(self, header: bytes) -> bytes:
        """The object file; the first bytes of one of the objects say for which system."""
        symbols, numbers, local = self._symbol_table()
        for at, owner in self.relocations:
            table = np.frombuffer(self.contents[at], RELOCATION).copy()
            table["symbol"] = numbers[owner][table["symbol"]]
            self.contents[at] = table.tobytes()
            self.sections[at]["link"] = len(self.sections) + 1
        symtab, strtab = self._place(".symtab"), self._place(".strtab")
        count = len(self.sections)
        self._append(symtab, SYMTAB, symbols.tobytes(), count + 2, local, SYMBOL.itemsize)
        self._append(strtab, _STRTAB, bytes(self.names), 0, 0, 0)
        return self._laid_out(header)

    def _symbol_table(self) -> tuple[np.ndarray, list[np.ndarray], int]:
        """All symbols, the number that each object's symbols have there, and how many are local."""
        numbers = [np.zeros(len(table), np.int64) for table in self.symbols]
        parts, count = [np.zeros(1, SYMBOL)], 1
        for table, known in zip(self.symbols, numbers, strict=True):
            local = np.flatnonzero(table["info"] >> 4 == LOCAL)[1:]  # the first one is empty
            known[local] = count + np.arange(len(local))
            parts.append(table[local])
            count += len(local)
        local_count = count
        shared = {name: local_count + at for at, name in enumerate(self.owners)}
        parts.append(np.array([self.symbols[o][at] for o, at in self.owners.values()], SYMBOL))
        by_place = {self._place(name): number for name, number in shared.items()}
        for table, known in zip(self.symbols, numbers, strict=True):
            for at in np.flatnonzero(table["info"] >> 4 != LOCAL):
                known[at] = by_place[int(table["name"][at])]
        return np.concatenate(parts), numbers, local_count

    def _append(
        self, name: int, kind: int, content: bytes, link: int, info: int, entry: int
    ) -> None:
        section = np.zeros(1, SECTION)[0]
        section["name"], section["type"], section["size"] = name, kind, len(content)
        section["link"], section["info"], section["entry"], section["align"] = link, info, entry, 8
        self.sections.append(section)
        self.contents.append(content)

    def _laid_out(self, header: bytes) -> bytes:
        """Header, contents and the table of sections, one after the other."""
        result = bytearray(HEADER_BYTES)
        table = np.zeros(len(self.sections) + 1, SECTION)
        for at, (section, content) in enumerate(zip(self.sections, self.contents, strict=True)):
            alignment = max(int(section["align"]), 1)
            result += bytes(-len(result) % alignment)
            table[at + 1] = section
            table[at + 1]["offset"] = len(result)
            result += content
        result += bytes(-len(result) % 8)
        fields = np.frombuffer(header, np.uint8).copy()
        fields[40:48] = np.frombuffer(len(result).to_bytes(8, "little"), np.uint8)
        fields[60:64] = np.array([len(table), len(table) - 1], "<u2").view(np.uint8)
        result[:HEADER_BYTES] = fields.tobytes()
        return bytes(result) + table.tobytes()


def _is_kept(section: np.void) -> bool:
    """Whether a section goes on: tables of symbols and names are made anew."""
    return int(section["type"]) not in (SYMTAB, _STRTAB, _ADDRESS_SIGNIFICANCE)
