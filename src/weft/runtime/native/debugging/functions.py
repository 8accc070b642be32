"""The functions of a loaded object: where each lies in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weft.runtime.native.elf import ABSOLUTE, FUNCTION, UNDEFINED, ObjectFile, Table


class LoadedFunction(NamedTuple):
    """A function in this process's memory."""

    name: str
    address: int
    size: int


def functions_in(file: ObjectFile, addresses: Table) -> Iterator[LoadedFunction]:
    """The functions of a loaded object; ``addresses`` are those of its symbols."""
    for symbol, name, address in zip(file.symbols, file.names, addresses, strict=True):
        is_here = int(symbol["section"]) not in (UNDEFINED, ABSOLUTE)
        if is_here and symbol["info"] & 15 == FUNCTION and name:
            yield LoadedFunction(name, int(address), int(symbol["size"]))
