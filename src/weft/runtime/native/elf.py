"""Reading 64-bit little-endian ELF files: the parts of object code that loading it needs.

Layouts are those of the System V ABI (Tool Interface Standard, 1995), as numpy dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.support.errors import CodegenError

MAGIC: Final = b"\x7fELF\x02\x01"
SYMTAB: Final = 2
RELA: Final = 4
NOBITS: Final = 8
UNDEFINED: Final = 0
ABSOLUTE: Final = 0xFFF1
HEADER_BYTES: Final = 64
FUNCTION: Final = 2
LOCAL: Final = 0
_RELOCATABLE: Final = 1
EXECUTABLE: Final = 4
_LARGEST_ALIGNMENT: Final = 1 << 16
_LONGEST_NAME: Final = 1 << 16

Table = np.ndarray

SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
     ("size", "<u8")]
)  # fmt: skip
SECTION: Final = np.dtype(
    [("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8"),
     ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8")]
)  # fmt: skip
RELOCATION: Final = np.dtype(
    [("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
)


@dataclass(frozen=True, eq=False)
class ObjectFile:
    """Sections and symbols of a relocatable object."""

    code: bytes
    machine: int
    sections: Table
    symbols: Table
    names: tuple[str, ...]
    """The names of the symbols."""

    def table(self, section: np.void, entry: np.dtype) -> Table:
        """The entries of a section."""
        return _table(self.code, section, entry)

    def section_name(self, section: np.void) -> str:
        """The name of a section."""
        names = self.sections[int.from_bytes(self.code[62:64], "little")]
        return _text(self.code, int(names["offset"]) + int(section["name"]))

    def symbol_names(self) -> tuple[frozenset[str], frozenset[str]]:
        """The functions that it defines for others, and the names that it does not define."""
        defined, undefined = set[str](), set[str]()
        for symbol, name in zip(self.symbols, self.names, strict=True):
            if not name:
                continue
            if symbol["section"] == UNDEFINED:
                undefined.add(name)
            elif symbol["info"] & 15 == FUNCTION and symbol["info"] >> 4 != LOCAL:
                defined.add(name)
        return frozenset(defined), frozenset(undefined)


def read_object(code: bytes) -> ObjectFile | None:
    """What an ELF file holds; None for another format, CodegenError for one that is cut off."""
    if code[:6] != MAGIC or len(code) < HEADER_BYTES:
        return None
    try:
        sections = _sections(code)
        machine = int.from_bytes(code[18:20], "little")
        for section in sections[sections["type"] == SYMTAB]:
            symbols = _table(code, section, SYMBOL)
            start = int(sections[int(section["link"])]["offset"])
            names = tuple([_text(code, start + int(symbol["name"])) for symbol in symbols])
            return ObjectFile(code, machine, sections, symbols, names)
    except (ValueError, IndexError) as error:
        raise CodegenError("expected object code, got a truncated ELF file") from error
    return ObjectFile(code, machine, sections, np.zeros(0, SYMBOL), ())


def check_object(file: ObjectFile) -> None:
    """Raise ValueError where sections, symbols or relocations leave the file or their section.

    It runs before memory is allocated by numbers that stand in the file.
    """
    if int.from_bytes(file.code[16:18], "little") != _RELOCATABLE:
        raise ValueError("no relocatable object")
    length = len(file.code)
    for number, section in enumerate(file.sections):
        kind, begin, size = (int(section[name]) for name in ("type", "offset", "size"))
        if kind not in (0, NOBITS) and begin + size > length:
            raise ValueError(f"section {number} ends beyond the file")
        align = int(section["align"])
        if align & (align - 1) or align > _LARGEST_ALIGNMENT:
            raise ValueError(f"section {number} is aligned to {align}")
        if kind == RELA:
            _check_relocations(file, section)
    for symbol, name in zip(file.symbols, file.names, strict=True):
        _check_symbol(file, symbol, name)


def _check_relocations(file: ObjectFile, section: np.void) -> None:
    relocations, place = file.table(section, RELOCATION), file.sections[int(section["info"])]
    if not len(relocations):
        return
    if int(relocations["symbol"].max()) >= len(file.symbols):
        raise ValueError("a relocation names a symbol that there is not")
    if int(relocations["offset"].max()) >= int(place["size"]):
        raise ValueError("a relocation lies outside of its section")


def _check_symbol(file: ObjectFile, symbol: np.void, name: str) -> None:
    number, kind = int(symbol["section"]), int(symbol["info"]) & 15
    if number in (UNDEFINED, ABSOLUTE):
        if number == ABSOLUTE and kind == FUNCTION:
            raise ValueError(f"function {name[:60]!r} lies outside of every section")
        return
    if number >= len(file.sections):
        raise ValueError(f"symbol {name[:60]!r} lies in section {number}, which there is not")
    section = file.sections[number]
    end = int(symbol["value"]) + int(symbol["size"])
    if end > int(section["size"]):
        raise ValueError(f"symbol {name[:60]!r} lies outside of its section")
    if kind == FUNCTION and not int(section["flags"]) & EXECUTABLE:
        raise ValueError(f"function {name[:60]!r} lies outside of the code")


def undefined_names(code: bytes) -> frozenset[str]:
    """The names that object code does not define; none of another format than ELF."""
    file = read_object(code)
    return frozenset() if file is None else file.symbol_names()[1]


def elf_section(code: bytes, name: str) -> tuple[int, int] | None:
    """Offset and size of the section of that name in a 64-bit ELF file; None if there is none."""
    if code[:6] != MAGIC or len(code) < HEADER_BYTES:
        return None
    try:
        sections = _sections(code)
        names = int(sections[int.from_bytes(code[62:64], "little")]["offset"])
        for section in sections:
            if _text(code, names + int(section["name"])) == name:
                return int(section["offset"]), int(section["size"])
    except (ValueError, IndexError):
        return None  # a file that is cut off
    return None


def _sections(code: bytes) -> Table:
    start, count = int.from_bytes(code[40:48], "little"), int.from_bytes(code[60:62], "little")
    return np.frombuffer(code, SECTION, count, start)


def _table(code: bytes, section: np.void, entry: np.dtype) -> Table:
    count = int(section["size"]) // entry.itemsize
    return np.frombuffer(code, entry, count, int(section["offset"]))


def _text(code: bytes, begin: int) -> str:
    return code[begin : code.index(b"\0", begin, begin + _LONGEST_NAME)].decode()


def function_bytes(code: bytes) -> dict[str, bytes]:
    """The code of each function of an object, without what relocations fill in.

    Parts of parallel loops are functions of their own. Nothing for another format than ELF.
    """
    file = read_object(code)
    if file is None:
        return {}
    functions = {}
    for symbol, name in zip(file.symbols, file.names, strict=True):
        number = int(symbol["section"])
        if symbol["info"] & 15 == FUNCTION and number not in (UNDEFINED, ABSOLUTE):
            start = int(file.sections[number]["offset"]) + int(symbol["value"])
            functions[name] = code[start : start + int(symbol["size"])]
    return functions
