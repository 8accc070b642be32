"""Several WebAssembly objects become one module.

All that it may import are functions of JavaScript's ``Math`` (``MATH``). What the exported
functions reach is kept, all else is left out. Memory is laid out as the stack, which grows down to
address 0 so that an overflow traps, then data, then the heap. The module has a memory of its own,
exported as ``memory``, that may grow.

A module for several threads imports a shared memory, which has a stack for each, and the top of
the stack that an instance has. Every instance writes the data into the memory, so all of them are
there before one of them runs.

Numbers that a relocation leaves room for in five bytes become as short as they can be: branches in
WebAssembly do not count bytes, so code may move within a function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weft.backends.wasm import binary
from weft.backends.wasm.instructions import made_exact
from weft.backends.wasm.object_file import (
    DATA_SYMBOL,
    FUNCTION_SYMBOL,
    ObjectFile,
    Piece,
    Relocation,
    Symbol,
    read_object,
)
from weft.support.errors import CodegenError, InternalError

MATH: Final = frozenset({"sin", "cos", "tan", "pow"})
"""What a module may import from ``Math``: formulas of weft leave large angles to a C library, and
powers of float64."""
STACK: Final = 1 << 20
"""Bytes of the stack: kernels keep up to 48 KiB on it (``weft.codegen.llvm.allocation``)."""
PAGE: Final = 1 << 16
HEAP: Final = "__heap_base"
"""The symbol behind all data: the heap begins at its address."""
_STACK_POINTER: Final = "__stack_pointer"
# Kinds of relocations.
_FUNCTION, _TABLE_SIGNED, _TABLE, _MEMORY, _MEMORY_SIGNED, _ADDRESS, _TYPE, _GLOBAL = range(8)
_TABLE_NUMBER: Final = 20
_FUNCTIONS: Final = frozenset({_FUNCTION, _TABLE_SIGNED, _TABLE})
_DATA: Final = frozenset({_MEMORY, _MEMORY_SIGNED, _ADDRESS})
_WORDS: Final = frozenset({_TABLE, _ADDRESS})
"""Those that are four bytes, as data are, and not a number in LEB128."""
_SIGNED: Final = frozenset({_TABLE_SIGNED, _MEMORY_SIGNED})
MOST_PAGES: Final = 1 << 16
MOST_THREADS: Final = 32
_SHARED: Final = 3
"""Flags of a memory: it is shared, and has a greatest size."""


class Place(NamedTuple):
    """A function or a data segment: the number of its object, and its number there."""

    object: int
    item: int


@dataclass
class _Program:
    """What is kept of the objects, numbered."""

    objects: list[ObjectFile]
    defined: dict[tuple[int, str], Place]
    """(kind of symbol, name) -> what defines it."""
    functions: dict[Place, int] = field(default_factory=dict)
    segments: dict[Place, int] = field(default_factory=dict)
    """Segment -> its address."""
    table: dict[Place, int] = field(default_factory=dict)
    """Functions whose address is taken -> their places in the table."""
    has_table: bool = False
    """Whether functions are called by address, though there may be none of these."""
    types: dict[bytes, int] = field(default_factory=dict)
    imports: dict[str, int] = field(default_factory=dict)
    """Functions of ``Math`` -> the numbers of their types; they come before all others."""
    missing: set[str] = field(default_factory=set)
    heap: int = 0
    threads: int = 1

    @property
    def is_shared(self) -> bool:
        """Whether instances share a memory, which is imported."""
        return self.threads > 1

    @property
    def pages(self) -> int:
        """The size of stacks and data in pages of memory."""
        return -(-self.heap // PAGE)

    def piece(self, place: Place, is_function: bool) -> Piece:
        """The body of a function, or a segment."""
        file = self.objects[place.object]
        return (file.bodies if is_function else file.segments)[place.item]

    def number(self, place: Place) -> int:
        """The number of a function in the module, once all imports are known."""
        return len(self.imports) + self.functions[place]

    def type_of(self, number: int, index: int) -> int:
        """The number of a type of an object in the module."""
        return self.types.setdefault(self.objects[number].types[index], len(self.types))

    def resolved(self, number: int, symbol: Symbol) -> Place | None:
        """What a symbol of an object stands for; None where no object defines it."""
        if symbol.is_defined:
            imported = len(self.objects[number].imported) if symbol.kind == FUNCTION_SYMBOL else 0
            return Place(number, symbol.index - imported)
        return self.defined.get((symbol.kind, symbol.name))


class Linked(NamedTuple):
    """A module, and how many pages of memory it has from the beginning."""

    code: bytes
    pages: int


def link(objects: Sequence[bytes], exports: Sequence[str], threads: int = 1) -> Linked:
    """The module of some objects that exports these functions, and its memory.

    Args:
        objects: relocatable objects; a name that several define is that of the first.
        exports: names of functions.
        threads: how many instances may share one memory.

    Raises:
        CodegenError: the code calls functions that no object defines, with their names.
        InternalError: an object is none, or lacks an exported function.
    """
    files = [read_object(data) for data in objects]
    program = _Program(files, dict(_definitions(files)), threads=threads)
    roots = [_root(program, name) for name in exports]
    _reach(program, roots)
    if program.missing:
        names = ", ".join(sorted(program.missing))
        raise CodegenError(
            f"WebAssembly has no C library, and the model's code calls {names}; cast to float32 "
            "before a function that float64 has only there, or compile without target="
        )
    _lay_out(program)
    return Linked(_module(program, dict(zip(exports, roots, strict=True))), program.pages)


def _definitions(files: Sequence[ObjectFile]) -> Iterator[tuple[tuple[int, str], Place]]:
    """Every name that an object offers; the first object comes last, so that it counts."""
    for number, file in reversed([*enumerate(files)]):
        for symbol in file.symbols:
            if symbol.is_defined and not symbol.is_local:
                imported = len(file.imported) if symbol.kind == FUNCTION_SYMBOL else 0
                yield (symbol.kind, symbol.name), Place(number, symbol.index - imported)


def _root(program: _Program, name: str) -> Place:
    place = program.defined.get((FUNCTION_SYMBOL, name))
    if place is None:
        raise InternalError(f"expected an object to define the function {name}, found none")
    return place


def _reach(program: _Program, roots: Sequence[Place]) -> None:
    """Number all functions and segments that the roots need, in the order of their discovery."""
    todo = [(place, True) for place in reversed(roots)]
    while todo:
        place, is_function = todo.pop()
        known = program.functions if is_function else program.segments
        if place in known:
            continue
        known[place] = len(known)
        file = program.objects[place.object]
        if is_function:
            program.type_of(place.object, file.functions[place.item])
        for item in program.piece(place, is_function).relocations:
            if item.kind == _TYPE:
                program.type_of(place.object, item.index)
                continue
            program.has_table |= item.kind == _TABLE_NUMBER
            symbol = file.symbols[item.index]
            target = program.resolved(place.object, symbol)
            if target is None and symbol.kind in (FUNCTION_SYMBOL, DATA_SYMBOL):
                _ask_for(program, place.object, symbol)
            elif target is not None and item.kind in _FUNCTIONS:
                if item.kind != _FUNCTION:
                    program.table.setdefault(target, len(program.table) + 1)
                todo.append((target, True))
            elif target is not None and item.kind in _DATA:
                todo.append((target, False))


def _ask_for(program: _Program, number: int, symbol: Symbol) -> None:
    """Import what no object defines, or note that it is missing."""
    if symbol.kind == FUNCTION_SYMBOL and symbol.name in MATH:
        kind = program.objects[number].imported[symbol.index]
        program.imports[symbol.name] = program.type_of(number, kind)
    elif symbol.name != HEAP:
        program.missing.add(symbol.name)


def _lay_out(program: _Program) -> None:
    """Give every segment its address, behind the stacks."""
    at = STACK * program.threads
    for place in program.segments:
        piece = program.piece(place, False)
        at = -(-at // piece.align) * piece.align
        program.segments[place] = at
        at += len(piece.data)
    program.heap = -(-at // 64) * 64


def _value(program: _Program, number: int, item: Relocation) -> int:
    """What is written at a relocation of an object."""
    if item.kind == _TYPE:
        return program.type_of(number, item.index)
    symbol = program.objects[number].symbols[item.index]
    if item.kind == _GLOBAL and symbol.name == _STACK_POINTER:
        return int(program.is_shared)  # behind the imported one
    if item.kind == _TABLE_NUMBER:
        return 0
    place = program.resolved(number, symbol)
    if item.kind in _DATA:
        if place is None:
            return program.heap + item.addend
        return program.segments[place] + _offset_of(program, number, symbol) + item.addend
    if place is None and item.kind == _FUNCTION:
        return [*program.imports].index(symbol.name)
    if place is None or item.kind not in _FUNCTIONS:
        raise InternalError(f"expected no relocation of kind {item.kind} for {symbol.name!r}")
    return program.number(place) if item.kind == _FUNCTION else program.table[place]


def _offset_of(program: _Program, number: int, symbol: Symbol) -> int:
    """Where data begin in the segment that defines them, which may be another object's."""
    if symbol.is_defined:
        return symbol.offset
    place = program.defined[symbol.kind, symbol.name]
    others = program.objects[place.object].symbols
    return next(
        other.offset
        for other in others
        if other.is_defined and (other.kind, other.name) == (symbol.kind, symbol.name)
    )


def _written(program: _Program, place: Place, is_function: bool) -> bytes:
    """The bytes of a function or a segment, with all numbers in."""
    piece = program.piece(place, is_function)
    data = made_exact(piece.data) if is_function else piece.data
    parts, at = [], 0
    for item in piece.relocations:
        value = _value(program, place.object, item)
        parts.append(data[at : item.at])
        if item.kind in _WORDS:
            parts.append(value.to_bytes(4, "little"))
            at = item.at + 4
        else:
            parts.append((binary.signed if item.kind in _SIGNED else binary.unsigned)(value))
            at = item.at + 5
    parts.append(data[at:])
    return b"".join(parts)


def _module(program: _Program, exports: dict[str, Place]) -> bytes:
    """The sections of the module, one behind the other."""
    functions = [
        binary.unsigned(program.type_of(place.object, _type(program, place)))
        for place in program.functions
    ]
    bodies = [_written(program, place, True) for place in program.functions]
    segments = [
        b"\0" + binary.constant(at) + binary.unsigned(len(content)) + content
        for place, at in program.segments.items()
        if (content := _written(program, place, False)).strip(b"\0")
    ]
    named = [
        binary.name(name) + b"\0" + binary.unsigned(program.number(place))
        for name, place in exports.items()
    ]
    stack = bytes([binary.I32, 1]) + (
        binary.global_value(0) if program.is_shared else binary.constant(STACK)
    )
    sections = {
        binary.TYPE: [*program.types],
        binary.IMPORT: _imports(program),
        binary.FUNCTION: functions,
        binary.TABLE: _table(program),
        binary.MEMORY: [] if program.is_shared else [_memory(program)],
        binary.GLOBAL: [stack],
        binary.EXPORT: [*named, binary.name("memory") + b"\2\0"],
        binary.ELEMENT: _elements(program),
        binary.CODE: [binary.unsigned(len(body)) + body for body in bodies],
        binary.DATA: segments,
    }
    return binary.MAGIC + b"".join(
        [
            binary.section(number, binary.vector(items))
            for number, items in sections.items()
            if items
        ]
    )


def _imports(program: _Program) -> list[bytes]:
    """Functions of ``Math``; a shared memory, and where the stack of an instance begins."""
    functions = [
        binary.name("Math") + binary.name(name) + b"\0" + binary.unsigned(kind)
        for name, kind in program.imports.items()
    ]
    if not program.is_shared:
        return functions
    memory = binary.name("weft") + binary.name("memory") + b"\2" + _memory(program)
    stack = binary.name("weft") + binary.name("stack") + bytes([3, binary.I32, 0])
    return [*functions, memory, stack]


def _memory(program: _Program) -> bytes:
    """The flags and the limits of the memory."""
    flags = bytes([_SHARED if program.is_shared else 1])
    return flags + binary.unsigned(program.pages) + binary.unsigned(MOST_PAGES)


def _type(program: _Program, place: Place) -> int:
    return program.objects[place.object].functions[place.item]


def _table(program: _Program) -> list[bytes]:
    """The table of functions that are called by address; its place 0 is no function."""
    size = binary.unsigned(len(program.table) + 1)
    is_needed = program.has_table or program.table
    return [bytes([binary.FUNCREF, 1]) + size + size] if is_needed else []


def _elements(program: _Program) -> list[bytes]:
    numbers = [binary.unsigned(program.number(place)) for place in program.table]
    return [b"\0" + binary.constant(1) + binary.vector(numbers)] if numbers else []
