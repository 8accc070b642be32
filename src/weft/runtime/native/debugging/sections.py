"""The tables for debuggers of an object that was loaded, with the addresses that it now has.

An object that was joined of several has each table several times. As a linker does, their contents
are put one behind the other, and every place that names an address in the code, or a place in
another table, gets its value.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.backends.cpu.isa.architecture import Loading
from weft.runtime.native.elf import NOBITS, RELA, RELOCATION, ObjectFile, Table

PREFIX: Final = ".debug_"


def debug_sections(file: ObjectFile, addresses: Table, loading: Loading) -> dict[str, bytes]:
    """Name -> content; none where something in them is not known.

    Args:
        file: the object.
        addresses: those of its symbols.
        loading: the processor's relocations.
    """
    contents: dict[str, bytearray] = {}
    places: dict[int, int] = {}
    names: dict[int, str] = {}
    for number, section in enumerate(file.sections):
        name = file.section_name(section)
        if name.startswith(PREFIX) and section["type"] != NOBITS:
            content = contents.setdefault(name, bytearray())
            content += bytes(-len(content) % max(int(section["align"]), 1))
            places[number], names[number] = len(content), name
            content += file.table(section, np.dtype("u1")).tobytes()
    values = _values(file, addresses, places)
    for section in file.sections[file.sections["type"] == RELA]:
        number = int(section["info"])
        if number in places:
            relocations = file.table(section, RELOCATION)
            if not _fill(contents[names[number]], places[number], relocations, values, loading):
                return {}
    return {name: bytes(content) for name, content in contents.items()}


def _values(file: ObjectFile, addresses: Table, places: dict[int, int]) -> Table:
    """The value of each symbol: its address, or its place in a table."""
    values = addresses.copy()
    for number, symbol in enumerate(file.symbols):
        place = places.get(int(symbol["section"]))
        if place is not None:
            values[number] = place + int(symbol["value"])
    return values


def _fill(
    content: bytearray, start: int, relocations: Table, values: Table, loading: Loading
) -> bool:
    """Write values into the part of a table that begins at ``start``; False if one is not known."""
    sizes = {loading.address: 8, loading.number: 4}
    targets = values[relocations["symbol"]] + relocations["addend"]
    for kind, offset, value in zip(
        relocations["type"].tolist(), relocations["offset"].tolist(), targets.tolist(), strict=True
    ):
        size = sizes.get(kind)
        if size is None or not 0 <= value < 1 << 8 * size:
            return False
        at = start + offset
        content[at : at + size] = value.to_bytes(size, "little")
    return True
