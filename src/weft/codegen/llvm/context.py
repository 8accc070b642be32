"""What the functions of one LLVM module share: declarations, constants, helper functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from weft.backends.cpu.isa.architecture import Intrinsic
from weft.support.errors import CodegenError

FIRST_LOOP = 2
"""Numbers below are the branch weights that every module has."""


@dataclass
class ModuleContext:
    """Collects the text of a module; functions add to it while they are emitted.

    ``signatures`` maps the names of the module's own functions to what a caller must know.
    """

    contract: bool = True
    num_cores: int = 0
    """Parallel loops run on at most so many threads (0: as many as the runtime gives)."""
    vector_bits: int = 128
    """What a vector register of the target holds."""
    scales: bool = False
    """Whether one instruction multiplies by powers of two."""
    masked: bool = False
    """Whether loads and stores leave lanes of a vector out at no cost."""
    any_bits: bool = False
    """Whether one instruction is any function of three bits."""
    has_maximum: bool = False
    """Whether one instruction is the maximum of two floats, NaN where one is."""
    looks_up: int = 0
    """Of how many lanes one instruction picks any; 0: none."""
    fuses: bool = True
    """Whether one instruction multiplies and adds, and so rounds once."""
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=dict)
    """The processor's own instructions, as ``Architecture.intrinsics`` has them."""
    declarations: dict[str, str] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    signatures: dict[str, Any] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    loops: list[str] = field(default_factory=list)
    """Metadata of single loops; the first number is ``FIRST_LOOP``."""
    _serial: int = 0

    def unique(self, stem: str) -> str:
        """A fresh symbol of the module."""
        self._serial += 1
        return f"{stem}.{self._serial}"

    def declare(self, name: str, result: str, params: str, attributes: str = "") -> str:
        """Declare an external function once; return its operand text."""
        operand = symbol(name)
        if name not in self.declarations:
            self.declarations[name] = f"declare {result} {operand}({params}) {attributes}"
        return operand

    def loop(self, how: Literal["full", "enable", "disable"]) -> str:
        """Metadata that tells LLVM how to unroll one loop: wholly, by a factor, or not at all."""
        number = FIRST_LOOP + 2 * len(self.loops)
        kind = f'!{number + 1} = !{{!"llvm.loop.unroll.{how}"}}'
        self.loops.append(f"!{number} = distinct !{{!{number}, !{number + 1}}}\n{kind}")
        return f"!{number}"

    def string(self, text: str) -> str:
        """A pointer to the text as UTF-8 ending in NUL."""
        found = self.strings.get(text)
        if found is None:
            found = f"@.str.{len(self.strings)}"
            data = native_text(text) + b"\0"
            self.strings[text] = found
            self.constants.append(
                f"{found} = private unnamed_addr constant [{len(data)} x i8] {byte_text(data)}"
            )
        return found

    def constant(self, text: str) -> str:
        """The address of a constant, given with its type, which is there once."""
        found = self.tables.get(text)
        if found is None:
            found = self.tables[text] = f"@.table.{len(self.tables)}"
            self.constants.append(f"{found} = private unnamed_addr constant {text}, align 64")
        return found

    def text(self, header: str) -> str:
        """The whole module."""
        parts = [header, *self.constants, *self.declarations.values(), *self.helpers.values()]
        return "\n".join([*parts, *self.functions, *self.loops, ""])


_PLAIN = frozenset(range(32, 127)) - {ord('"'), ord("\\")}


def byte_text(data: bytes) -> str:
    """Bytes as an LLVM string constant."""
    return 'c"' + "".join([chr(b) if b in _PLAIN else f"\\{b:02X}" for b in data]) + '"'


def native_text(text: str) -> bytes:
    """A text as compiled code holds it, UTF-8 that ends at the first NUL; CodegenError else."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise CodegenError(f"expected a text that UTF-8 can write, got {text!r:.80}") from error
    place = data.find(0)
    if place >= 0:
        raise CodegenError(
            f"expected a text without NUL bytes, got {text!r:.80} with one at {place}: in compiled "
            "code a name or a message ends there"
        )
    return data


def symbol(name: str) -> str:
    """``@name``, quoted where LLVM needs it."""
    if not name:
        raise CodegenError("expected the name of a function, got an empty text")
    plain = name.replace("_", "").replace(".", "").replace("$", "")
    if name.isascii() and plain.isalnum() and not name[0].isdigit():
        return f"@{name}"
    return '@"' + byte_text(native_text(name))[2:]
