"""Relocatable WebAssembly objects, as LLVM writes them, read into plain data.

The format is that of the tool conventions, "WebAssembly Object File Linking"
(github.com/WebAssembly/tool-conventions). An object is a module with a table of symbols and, for
its code and its data, lists of the places that depend on what the linker decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from weft.backends.wasm.binary import (
    CODE,
    CUSTOM,
    DATA,
    END,
    FUNCTION,
    GLOBAL,
    I32_CONST,
    IMPORT,
    TABLE,
    TYPE,
    Reader,
    sections,
)
from weft.support.errors import InternalError

FUNCTION_SYMBOL, DATA_SYMBOL, GLOBAL_SYMBOL, SECTION_SYMBOL, TAG_SYMBOL, TABLE_SYMBOL = range(6)
_LOCAL, _UNDEFINED, _HAS_NAME = 0x02, 0x10, 0x40
_SEGMENTS, _SYMBOLS = 5, 8
"""Numbers of parts of the section ``linking``: the data segments' names, and the symbols."""
_WITH_ADDEND: Final = frozenset({3, 4, 5, 8, 9, 11, 14, 15, 16, 17, 22, 23})


@dataclass(frozen=True)
class Relocation:
    """A place that depends on a symbol (a type, for ``TYPE_INDEX``): ``at`` is its offset."""

    kind: int
    at: int
    index: int
    addend: int = 0


@dataclass(frozen=True)
class Symbol:
    """A name. ``index`` numbers the function, the global or the data segment that it stands for."""

    kind: int
    name: str
    index: int
    is_defined: bool
    is_local: bool
    offset: int = 0
    """Of data: where it begins in its segment."""


@dataclass(frozen=True)
class Piece:
    """A function's body or a data segment: bytes, and the relocations within, by their offsets."""

    data: bytes
    relocations: tuple[Relocation, ...]
    align: int = 1
    name: str = ""


@dataclass
class ObjectFile:
    """What a linker needs of an object."""

    types: list[bytes] = field(default_factory=list)
    imported: list[int] = field(default_factory=list)
    """The types of the functions that are imported; they have the first numbers."""
    functions: list[int] = field(default_factory=list)
    """The types of the functions that are defined."""
    bodies: list[Piece] = field(default_factory=list)
    segments: list[Piece] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)


@dataclass
class _Raw:
    """Sections as they come, before relocations are given to the pieces that have them."""

    object: ObjectFile = field(default_factory=ObjectFile)
    import_names: dict[int, list[str]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    bodies: list[tuple[int, bytes]] = field(default_factory=list)
    segments: list[tuple[int, bytes]] = field(default_factory=list)
    described: list[tuple[str, int]] = field(default_factory=list)
    relocations: dict[int, list[Relocation]] = field(default_factory=dict)


def read_object(data: bytes) -> ObjectFile:
    """The object in ``data``.

    Raises:
        InternalError: it has something that LLVM does not write for weft's code.
    """
    raw = _Raw()
    for number, reader in sections(data):
        raw.order.append(number)
        if number == CUSTOM:
            _read_custom(raw, reader)
        elif number in _READERS:
            _READERS[number](raw, reader)
        elif number in (TABLE, GLOBAL):
            raise InternalError(f"expected no section {number} in a WebAssembly object of weft's")
    place = {number: position for position, number in enumerate(raw.order)}
    code = raw.relocations.get(place.get(CODE, -1), [])
    held = raw.relocations.get(place.get(DATA, -1), [])
    described = raw.described or [("", 1)] * len(raw.segments)
    raw.object.bodies = [_piece(at, body, code) for at, body in raw.bodies]
    raw.object.segments = [
        _piece(at, content, held, align, name)
        for (at, content), (name, align) in zip(raw.segments, described, strict=True)
    ]
    return raw.object


def _piece(
    at: int, data: bytes, relocations: list[Relocation], align: int = 1, name: str = ""
) -> Piece:
    """A piece that begins at ``at`` in its section, with the relocations that lie in it."""
    inside = [
        Relocation(item.kind, item.at - at, item.index, item.addend)
        for item in relocations
        if at <= item.at < at + len(data)
    ]
    return Piece(data, tuple(sorted(inside, key=lambda item: item.at)), align, name)


def _read_types(raw: _Raw, reader: Reader) -> None:
    for _ in reader.times():
        begin = reader.at
        reader.byte()
        for _ in range(2):
            reader.take(reader.number())
        raw.object.types.append(reader.data[begin : reader.at])


def _read_imports(raw: _Raw, reader: Reader) -> None:
    for _ in reader.times():
        reader.name()
        name, kind = reader.name(), reader.byte()
        raw.import_names.setdefault(kind, []).append(name)
        if kind == 0:
            raw.object.imported.append(reader.number())
        elif kind == 1:
            reader.byte()
            reader.skip_limits()
        elif kind == 2:
            reader.skip_limits()
        elif kind == 3:
            reader.take(2)
        else:
            raise InternalError(f"expected no import of kind {kind} in a WebAssembly object")


def _read_functions(raw: _Raw, reader: Reader) -> None:
    raw.object.functions = [reader.number() for _ in reader.times()]


def _read_code(raw: _Raw, reader: Reader) -> None:
    begin = reader.at
    for _ in reader.times():
        size = reader.number()
        raw.bodies.append((reader.at - begin, reader.take(size)))


def _read_data(raw: _Raw, reader: Reader) -> None:
    begin = reader.at
    for _ in reader.times():
        mode = reader.number()
        if mode == 0 and reader.byte() == I32_CONST:
            reader.signed()
            if reader.byte() == END:
                size = reader.number()
                raw.segments.append((reader.at - begin, reader.take(size)))
                continue
        raise InternalError("expected data segments of a WebAssembly object at constant places")


def _read_custom(raw: _Raw, reader: Reader) -> None:
    name = reader.name()
    if name == "linking":
        _read_linking(raw, reader)
    elif name.startswith("reloc."):
        target = reader.number()
        items = raw.relocations.setdefault(target, [])
        for _ in reader.times():
            kind, at, index = reader.byte(), reader.number(), reader.number()
            items.append(
                Relocation(kind, at, index, reader.signed() if kind in _WITH_ADDEND else 0)
            )


def _read_linking(raw: _Raw, reader: Reader) -> None:
    version = reader.number()
    if version != 2:
        raise InternalError(f"expected version 2 of the linking section, got {version}")
    while reader:
        kind, size = reader.byte(), reader.number()
        part = Reader(reader.data, reader.at, reader.at + size)
        reader.take(size)
        if kind == _SYMBOLS:
            raw.object.symbols = [_symbol(raw, part) for _ in part.times()]
        elif kind == _SEGMENTS:
            for _ in part.times():
                name, align, _ = part.name(), part.number(), part.number()
                raw.described.append((name, 1 << align))


def _symbol(raw: _Raw, reader: Reader) -> Symbol:
    kind, flags = reader.byte(), reader.number()
    is_defined, is_local = not flags & _UNDEFINED, bool(flags & _LOCAL)
    if kind == DATA_SYMBOL:
        name = reader.name()
        index, offset, _ = (reader.number() for _ in range(3)) if is_defined else (0, 0, 0)
        return Symbol(kind, name, index, is_defined, is_local, offset)
    index = reader.number()
    if kind == SECTION_SYMBOL:
        return Symbol(kind, "", index, True, True)
    if is_defined or flags & _HAS_NAME:
        return Symbol(kind, reader.name(), index, is_defined, is_local)
    imported = {FUNCTION_SYMBOL: 0, TABLE_SYMBOL: 1, GLOBAL_SYMBOL: 3, TAG_SYMBOL: 4}[kind]
    return Symbol(kind, raw.import_names[imported][index], index, is_defined, is_local)


_READERS: Final[dict[int, Callable[[_Raw, Reader], None]]] = {
    TYPE: _read_types, IMPORT: _read_imports, FUNCTION: _read_functions, CODE: _read_code,
    DATA: _read_data,
}  # fmt: skip
