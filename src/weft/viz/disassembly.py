"""Assembly of object code of which there is no program: by the system's disassembler, ``objdump``.

llvmlite has no disassembler. GNU's prints addresses; here they become labels, and numbers decimal,
so that the text reads like that of LLVM.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from weft.runtime.native.elf import EXECUTABLE, FUNCTION, ObjectFile, read_object
from weft.runtime.native.object_code import ObjectCode
from weft.support.errors import UnsupportedError

SECONDS: Final = 120
PAGE: Final = 4096
_SECTION: Final = "Disassembly of section "
_INSTRUCTION: Final = re.compile(r"^ *([0-9a-f]+):\t(\S+) *(.*)$")
_RELOCATION: Final = re.compile(r"^\t+ *[0-9a-f]+: R_\w+\t([^\s]+?)(?:[+-]0x[0-9a-f]+)?$")
_ADDRESS: Final = re.compile(r"\b([0-9a-f]+) <[^>]+>")
_CALL: Final = re.compile(r"^(\t(?:call|jmp|bl|b)\w*\t)")
_DISPLACEMENT: Final = re.compile(r"0x([0-9a-f]+)(?=\()")
_COMMA: Final = re.compile(r",(?![^(]*\))")


class Place(NamedTuple):
    """Where a function lies in its section."""

    symbol: str
    begin: int
    end: int


def kernel_of_symbol(symbol: str) -> str:
    """The function of a program that a symbol belongs to.

    >>> kernel_of_symbol("weft__main"), kernel_of_symbol("weft.parallel.matmul.0.part")
    ('main', 'matmul')
    """
    name = symbol.removeprefix("weft__")
    return re.sub(r"^weft\.parallel\.(.*?)\.\d+(?:\.part)?$", r"\1", name)


def disassembled(code: ObjectCode) -> dict[str, str]:
    """The instructions of each function of object code, by its symbol.

    Raises:
        UnsupportedError: there is no ``objdump``, or it cannot read code of this processor.
    """
    file = read_object(code.code)
    if file is None:
        raise UnsupportedError(f"the object code for {code.triple} is no ELF file")
    program = shutil.which("objdump")
    if program is None:
        raise UnsupportedError(
            "there is no objdump on PATH, which disassembles object code; install it (Debian, "
            "Ubuntu: apt install binutils)"
        )
    with tempfile.TemporaryDirectory(prefix="weft") as folder:
        path = Path(folder) / "code.o"
        path.write_bytes(placed(file))
        command = [program, "-dr", "--no-show-raw-insn", str(path)]
        result = subprocess.run(  # noqa: S603 - the system's own program, on a file of ours
            command, capture_output=True, text=True, timeout=SECONDS
        )
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["it gives no reason"])[-1]
        raise UnsupportedError(
            f"objdump cannot disassemble code for {code.triple}: {reason[-200:]}; one for all "
            "processors may (Debian, Ubuntu: apt install binutils-multiarch)"
        )
    return functions_of(result.stdout, places_in(file))


def addresses_of(file: ObjectFile) -> dict[int, int]:
    """An address for each section with code, by its number; they do not overlap."""
    addresses: dict[int, int] = {}
    free = 0
    for number, section in enumerate(file.sections):
        if int(section["flags"]) & EXECUTABLE and int(section["size"]):
            addresses[number] = free
            free += int(section["size"]) + PAGE & -PAGE
    return addresses


def placed(file: ObjectFile) -> bytes:
    """The object with these addresses in it.

    In objects all sections begin at 0, and ``objdump`` would take a symbol of one for the begin of
    an instruction in another.
    """
    sections = file.sections.copy()
    for number, address in addresses_of(file).items():
        sections[number]["addr"] = address
    begin, table = int.from_bytes(file.code[40:48], "little"), sections.tobytes()
    return file.code[:begin] + table + file.code[begin + len(table) :]


def places_in(file: ObjectFile) -> list[list[Place]]:
    """The functions of each section with code, in the order of the sections."""
    addresses = addresses_of(file)
    places: dict[int, list[Place]] = {number: [] for number in addresses}
    for symbol, name in zip(file.symbols, file.names, strict=True):
        number = int(symbol["section"])
        if number in places and int(symbol["info"]) & 15 == FUNCTION:
            begin = addresses[number] + int(symbol["value"])
            places[number].append(Place(name, begin, begin + int(symbol["size"])))
    return list(places.values())


def functions_of(listing: str, sections: Sequence[Sequence[Place]]) -> dict[str, str]:
    r"""The functions in what ``objdump -dr --no-show-raw-insn`` prints, with labels.

    >>> text = '''Disassembly of section .text:
    ... 0000000000000000 <f>:
    ...    0:\tmov    0x40(%rdi),%rax
    ...    8:\tcall   d <f+0xd>
    ... \t\t\t9: R_PLT32\texp-0x4
    ...    d:\tjmp    8 <f+0x8>'''
    >>> print(functions_of(text, [[Place("f", 0, 15)]])["f"].expandtabs(4))
    f:
        mov 64(%rdi), %rax
    .L8:
        call    exp
        jmp .L8
    """
    functions = {}
    for part, places in zip(listing.split(_SECTION)[1:], sections, strict=True):
        rows = _instructions(part.splitlines())
        for place in places:
            own = {at: text for at, text in rows.items() if place.begin <= at < place.end}
            functions[place.symbol] = "\n".join([f"{place.symbol}:", *_text(own, places)])
    return functions


def _instructions(lines: Iterable[str]) -> dict[int, str]:
    """Address -> instruction, which names what the loader fills in."""
    rows: dict[int, str] = {}
    last = -1
    for line in lines:
        relocation, instruction = _RELOCATION.match(line), _INSTRUCTION.match(line)
        if relocation and rows:
            rows[last] = _relocated(rows[last], relocation[1])
        elif instruction:
            last = int(instruction[1], 16)
            rows[last] = f"\t{instruction[2]}\t{instruction[3]}".rstrip()
    return rows


def _relocated(text: str, symbol: str) -> str:
    """An instruction whose address the loader fills in: the symbol is named."""
    call = _CALL.match(text)
    return f"{call[1]}{symbol}" if call else f"{text.partition('#')[0].rstrip()}  # {symbol}"


def _text(rows: dict[int, str], places: Sequence[Place]) -> list[str]:
    """The instructions of a function, with labels where its jumps lead."""
    begin = min(rows, default=0)
    starts = {place.begin: place.symbol for place in places}
    named = {at: starts.get(at, f".L{at - begin:x}") for at in _targets(rows)}
    result = []
    for at, text in rows.items():
        if at in named and at != begin:
            result.append(f"{named[at]}:")
        result.append(_readable(_ADDRESS.sub(lambda match: named[int(match[1], 16)], text)))
    return result


def _targets(rows: dict[int, str]) -> set[int]:
    return {int(address, 16) for text in rows.values() for address in _ADDRESS.findall(text)}


def _readable(text: str) -> str:
    """An instruction with decimal displacements and spaced operands."""
    code, mark, comment = text.partition("#")
    code = _DISPLACEMENT.sub(lambda match: str(int(match[1], 16)), code.rstrip())
    return _COMMA.sub(", ", code) + (f"  # {comment.strip()}" if mark else "")
